#include "models/step_builder.h"

#include <cmath>

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

using graph::Op;
using graph::TensorId;

namespace {

constexpr std::int64_t kWidestPooledHead = 64;

}  // namespace

StepBuilder::StepBuilder(std::span<const WeightBlock> blocks, std::span<const CacheSpec> caches, const StepPlaces& places, Role role, std::int64_t rows)
    : blocks_(blocks), caches_(caches), places_(places), role_(role), rows_(rows), made_(blocks.size(), graph::kNone) {
  graph_.name = fmt::format("{} {}", role_name(role), rows);
  graph_.n_sequences = places.n_sequences;
}

void StepBuilder::place_pieces(TensorId id, const std::vector<graph::StoragePiece>& pieces) {
  if (id == graph::kNone || pieces.empty()) return;
  graph::Storage& storage = graph_.storage(graph_.tensor(id).storage);
  storage.size_bytes = 0;
  for (const graph::StoragePiece& piece : pieces) storage.size_bytes += piece.place.size_bytes;
  if (pieces.size() == 1) storage.place = pieces[0].place;
  else storage.pieces = pieces;
}

TensorId StepBuilder::block(std::int32_t index) {
  const auto i = static_cast<std::size_t>(index);
  if (made_[i] != graph::kNone || !graph_.status().ok()) return made_[i];
  made_[i] = graph_.add_weight(blocks_[i].name, blocks_[i].type, blocks_[i].matrix);
  if (!places_.weights.empty()) place_pieces(made_[i], places_.weights[i]);
  return made_[i];
}

TensorId StepBuilder::matrix(const WeightSlice& slice) { return slice.is_there() ? graph_.slice(block(slice.block), 0, slice.first, slice.first + slice.count) : graph::kNone; }

TensorId StepBuilder::vector(const WeightSlice& slice) {
  if (!slice.is_there()) return graph::kNone;
  const TensorId whole = block(slice.block);
  const std::int64_t elements = blocks_[static_cast<std::size_t>(slice.block)].matrix[1];
  return graph_.slice(graph_.reshape(whole, {elements}), 0, slice.first, slice.first + slice.count);
}

TensorId StepBuilder::cache(std::size_t index, const char* half, std::int64_t width, const std::vector<graph::StoragePiece>& pieces) {
  const CacheSpec& spec = caches_[index];
  const TensorId id = graph_.add_cache(fmt::format("{} {}", spec.name, half), graph::StorageKind::kCache, places_.kv_type,
                                       {spec.extent == CacheExtent::kSource ? n_sources() : graph_.n_sequences, spec.n_heads, places_.caches[index].positions, width});
  place_pieces(id, pieces);
  return id;
}

TensorId StepBuilder::keys(std::size_t index) { return cache(index, "keys", caches_[index].key_width, places_.caches[index].keys); }
TensorId StepBuilder::values(std::size_t index) { return cache(index, "values", caches_[index].value_width, places_.caches[index].values); }

TensorId StepBuilder::split_heads(TensorId input, std::int64_t n_heads) {
  if (!graph_.status().ok()) return graph::kNone;
  const graph::Shape shape = graph_.tensor(input).shape;
  return graph_.transpose(graph_.reshape(input, {shape[0], shape[1], n_heads, shape[2] / n_heads}), {0, 2, 1, 3});
}

TensorId StepBuilder::merge_heads(TensorId input) {
  if (!graph_.status().ok()) return graph::kNone;
  const graph::Shape shape = graph_.tensor(input).shape;
  return graph_.reshape(graph_.transpose(input, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

TensorId StepBuilder::step_tensor(const char* name, const runtime::BufferRange& place, const graph::Shape& shape, graph::Type type) {
  const TensorId id = graph_.add_tensor(name, graph::StorageKind::kStep, type, shape);
  if (id != graph::kNone) graph_.storage(graph_.tensor(id).storage).place = place;
  return id;
}

StepBuilder::Tokens StepBuilder::begin() {
  const std::int64_t sequences = graph_.n_sequences;
  if (encodes(role_)) {
    state_ = step_tensor("source state", places_.source_state, {sequences, RONDO_STATE_WORDS});
    tokens_ = step_tensor("source tokens", places_.source_tokens, {sequences, rows_});
  } else {
    state_ = step_tensor("state", places_.state, {sequences, RONDO_STATE_WORDS});
    tokens_ = step_tensor("tokens", places_.tokens, {sequences, places_.n_ctx});
    mirror_ = step_tensor("mirror", places_.mirror, {sequences, places_.n_ctx});
  }
  if (!graph_.status().ok()) return {};
  graph_.state = graph_.tensor(state_).storage;
  graph_.add(Op::step_begin, {tokens_, state_}, graph::StepBeginAttributes{rows_});
  if (!graph_.status().ok()) return {};
  const std::vector<TensorId>& made = graph_.last_outputs();
  return {made[0], made[1], made[2], made[3], made[4], made[5]};
}

TensorId StepBuilder::types() { return step_tensor("source types", places_.source_types, {graph_.n_sequences, rows_}); }

TensorId StepBuilder::begin_images(const ImageShape& image) {
  state_ = step_tensor("source state", places_.source_state, {graph_.n_sequences, RONDO_STATE_WORDS});
  if (state_ != graph::kNone) graph_.state = graph_.tensor(state_).storage;
  return step_tensor("pixels", places_.pixels, {graph_.n_sequences, image.channels, image.height, image.width}, graph::Type::kF32);
}

TensorId StepBuilder::pooled(const Tokens& tokens, TensorId hidden, Pooling pooling) {
  if (!graph_.status().ok()) return graph::kNone;
  const graph::Shape shape = graph_.tensor(hidden).shape;
  const std::int64_t batch = shape[0], width = shape[2];
  if (pooling == Pooling::kLast && tokens.last != graph::kNone) return graph_.add(Op::embedding, {tokens.last, graph_.reshape(hidden, {batch * shape[1], width})});
  if (pooling != Pooling::kMean) {
    const std::int64_t row = pooling == Pooling::kLast ? shape[1] - 1 : 0;
    return graph_.reshape(graph_.slice(hidden, 1, row, row + 1), {batch, width});
  }
  // The mean of the rows is what a query of zeros attends to.
  std::int64_t n_heads = (width + kWidestPooledHead - 1) / kWidestPooledHead;
  while (width % n_heads != 0) ++n_heads;
  const std::vector<float> zeros(static_cast<std::size_t>(batch * width));
  const TensorId query = graph_.add_constant(fmt::format("{} zeros for {} heads", zeros.size(), n_heads), {batch, n_heads, 1, width / n_heads}, zeros);
  const TensorId rows = split_heads(hidden, n_heads);
  const TensorId mean = graph_.add(Op::attention, {query, rows, rows, graph::kNone, tokens.lengths}, graph::AttentionAttributes{});
  return graph_.status().ok() ? graph_.reshape(merge_heads(mean), {batch, width}) : graph::kNone;
}

TensorId StepBuilder::normalized(TensorId vectors) {
  if (!graph_.status().ok() || !places_.normalize) return vectors;
  const std::int64_t width = graph_.tensor(vectors).shape.last();
  const std::vector<float> weights(static_cast<std::size_t>(width), static_cast<float>(1 / std::sqrt(static_cast<double>(width))));
  constexpr double kEpsilon = 1e-24;  // far below any square that f32 tells from 0
  return graph_.add(Op::rms_norm, {vectors, graph_.add_constant(fmt::format("weights of length {}", width), {width}, weights)}, graph::RmsNormAttributes{kEpsilon, 0});
}

TensorId StepBuilder::rows_for_head(const Tokens& tokens, TensorId hidden) {
  if (!graph_.status().ok() || !samples(role_)) return hidden;
  const TensorId all = graph_.reshape(hidden, {graph_.n_sequences * rows_, graph_.tensor(hidden).shape.last()});
  return rows_ == 1 ? all : graph_.add(Op::embedding, {tokens.last, all});
}

graph::Graph StepBuilder::finish(TensorId result) {
  TensorId token = graph::kNone;
  if (result != graph::kNone && !samples(role_) && graph_.status().ok() && graph_.tensor(result).shape.n_elements() * element_bytes(graph_.tensor(result).type) != static_cast<std::int64_t>(graph_.storage_of(result).size_bytes)) {
    result = graph_.add(Op::copy, {result});
  }
  if (samples(role_)) {
    token = graph_.add(Op::sample, {result, tokens_, state_});
  } else if (result != graph::kNone && graph_.status().ok()) {
    graph::Storage& output = graph_.storage(graph_.tensor(result).storage);
    output.kind = graph::StorageKind::kOutput;
    output.place = places_.output;
    if (encodes(role_) && output.place.size_bytes > 0 && output.place.size_bytes != output.size_bytes) graph_.fail(fmt::format("the step {} leaves {} bytes where {} are planned", graph_.name, output.size_bytes, output.place.size_bytes));
  }
  if (!encodes(role_)) graph_.add(Op::step_end, {token, tokens_, mirror_, state_});
  return std::move(graph_);
}

}  // namespace rondo::models
