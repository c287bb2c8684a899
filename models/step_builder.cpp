#include "models/step_builder.h"

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

using graph::Op;
using graph::TensorId;

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
                                       {graph_.n_sequences, spec.n_heads, places_.caches[index].positions, width});
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

TensorId StepBuilder::step_tensor(const char* name, const runtime::BufferRange& place, const graph::Shape& shape) {
  const TensorId id = graph_.add_tensor(name, graph::StorageKind::kStep, graph::Type::kI32, shape);
  if (id != graph::kNone) graph_.storage(graph_.tensor(id).storage).place = place;
  return id;
}

StepBuilder::Tokens StepBuilder::begin() {
  const std::int64_t sequences = graph_.n_sequences;
  state_ = step_tensor("state", places_.state, {sequences, RONDO_STATE_WORDS});
  tokens_ = step_tensor("tokens", places_.tokens, {sequences, places_.n_ctx});
  mirror_ = step_tensor("mirror", places_.mirror, {sequences, places_.n_ctx});
  if (!graph_.status().ok()) return {};
  graph_.state = graph_.tensor(state_).storage;
  graph_.add(Op::step_begin, {tokens_, state_}, graph::StepBeginAttributes{rows_});
  if (!graph_.status().ok()) return {};
  const std::vector<TensorId>& made = graph_.last_outputs();
  return {made[0], made[1], made[2], made[3], made[4], made[5]};
}

TensorId StepBuilder::rows_for_head(const Tokens& tokens, TensorId hidden) {
  if (!graph_.status().ok() || !samples(role_)) return hidden;
  const TensorId all = graph_.reshape(hidden, {graph_.n_sequences * rows_, graph_.tensor(hidden).shape.last()});
  return rows_ == 1 ? all : graph_.add(Op::embedding, {tokens.last, all});
}

graph::Graph StepBuilder::finish(TensorId result) {
  TensorId token = graph::kNone;
  if (samples(role_)) {
    token = graph_.add(Op::sample, {result, tokens_, state_});
  } else if (result != graph::kNone && graph_.status().ok()) {
    graph::Storage& output = graph_.storage(graph_.tensor(result).storage);
    output.kind = graph::StorageKind::kOutput;
    output.place = places_.output;
  }
  graph_.add(Op::step_end, {token, tokens_, mirror_, state_});
  return std::move(graph_);
}

}  // namespace rondo::models
