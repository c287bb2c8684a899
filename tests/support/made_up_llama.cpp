#include "tests/support/made_up_llama.h"

#include <cstring>

#include "graph/block_format.h"
#include "graph/cache_layout.h"
#include "graph/float16.h"
#include "graph/interpreter.h"
#include "lib/step_state.h"
#include "runtime/fmt.h"
#include "tools/check/op_case.h"

namespace rondo::tests {

using namespace check;

namespace {

enum Buffer : std::uint32_t { kState, kTokens, kMirror, kConstants, kActivations, kLogits, kWeights, kCaches };

/// Adds weights to blocks; `join` appends to the last block.
class BlockBuilder {
 public:
  models::WeightSlice matrix(const std::string& name, graph::Type type, std::int64_t rows, std::int64_t columns, bool join = false) {
    if (!join || blocks_.back().type != type) add(name, type, {0, columns});
    return extend(blocks_.back().matrix[0], rows);
  }
  models::WeightSlice vector(const std::string& name, std::int64_t elements, bool join = false) {
    if (!join) {
      add(name, graph::Type::kF32, {1, 0});
      blocks_.back().is_vector = true;
    }
    return extend(blocks_.back().matrix[1], elements);
  }
  std::vector<models::WeightBlock> take() { return std::move(blocks_); }

 private:
  void add(const std::string& name, graph::Type type, const graph::Shape& matrix) {
    models::WeightBlock& block = blocks_.emplace_back();
    block.name = name;
    block.type = type;
    block.matrix = matrix;
  }
  models::WeightSlice extend(std::int64_t& extent, std::int64_t count) const {
    const models::WeightSlice slice{static_cast<std::int32_t>(blocks_.size() - 1), extent, count};
    extent += count;
    return slice;
  }

  std::vector<models::WeightBlock> blocks_;
};

models::DecoderWeights::Layer add_layer(BlockBuilder& add, const MadeUpOptions& options, std::uint32_t index) {
  models::DecoderWeights::Layer layer;
  const graph::Type type = options.weight_type;
  const std::int64_t kv_rows = 16 * std::int64_t{options.n_kv_heads};
  const auto name = [index](const char* what) { return fmt::format("layer {} {}", index, what); };
  layer.attention_norm.weight = add.vector(name("attention norm"), 64);
  layer.query.weight = add.matrix(name("query"), type, 64, 64);
  layer.key.weight = add.matrix(name("key"), type, kv_rows, 64, true);
  layer.value.weight = add.matrix(name("value"), options.value_type, kv_rows, 64, true);
  if (options.biases) {
    layer.query.bias = add.vector(name("query bias"), 64);
    layer.key.bias = add.vector(name("key bias"), kv_rows, true);
    layer.value.bias = add.vector(name("value bias"), kv_rows, true);
  }
  layer.output.weight = add.matrix(name("output"), type, 64, 64);
  if (options.biases) layer.output.bias = add.vector(name("output bias"), 64);
  layer.ffn_norm.weight = add.vector(name("ffn norm"), 64);
  layer.gate.weight = add.matrix(name("gate"), type, 96, 64);
  layer.up.weight = add.matrix(name("up"), options.up_type, 96, 64, true);
  layer.down.weight = add.matrix(name("down"), type, 64, 96);
  return layer;
}

}  // namespace

MadeUpLlama::MadeUpLlama(const MadeUpOptions& options) {
  models::DecoderConfig config;
  config.facts = {"made up", "", options.n_layers, 64, 4, options.n_kv_heads, 16, 96, 113, 128};
  config.rope.style = graph::RopeStyle::kInterleaved;
  config.rope.dimensions = 16;
  config.layers.resize(options.n_layers);
  BlockBuilder add;
  models::DecoderWeights weights;
  weights.embedding = add.matrix("embedding", options.weight_type, config.facts.n_vocab, 64);
  for (std::uint32_t i = 0; i < options.n_layers; ++i) weights.layers.push_back(add_layer(add, options, i));
  weights.output_norm.weight = add.vector("output norm", 64);
  weights.output.weight = weights.embedding;
  network = models::make_decoder(std::move(config), std::move(weights), add.take());

  std::uint64_t weight_bytes = 0;
  for (const models::WeightBlock& block : network.blocks) {
    const std::uint64_t size = graph::plane_layout(*graph::find_block_format(block.type), block.matrix[0], block.matrix[1]).size_bytes;
    places.weights.push_back({{0, block.matrix[0], {kWeights, weight_bytes, size}}});
    weight_bytes += size;
  }
  places.n_ctx = 128;
  places.kv_type = options.kv_type;
  places.state = {kState, 0, RONDO_STATE_WORDS * 4};
  places.tokens = {kTokens, 0, 512};
  places.mirror = {kMirror, 0, 512};
  places.output = {kLogits, 0, std::uint64_t{4} * 113 * 128};
  std::uint64_t cache_bytes = 0;
  for (const models::CacheSpec& spec : network.caches) {
    const std::uint64_t half = graph::cache_layout(options.kv_type, 128, spec.key_width).size_bytes * static_cast<std::uint64_t>(spec.n_heads);
    const auto piece = [&](std::uint64_t at) { return std::vector<graph::StoragePiece>{{0, spec.n_heads, {kCaches, at, half}}}; };
    places.caches.push_back({128, piece(cache_bytes), piece(cache_bytes + half)});
    cache_bytes += 2 * half;
  }
}

graph::Graph MadeUpLlama::build(models::Role role, std::int64_t rows) const {
  graph::Graph step = network.build(role, rows, places);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kConstant) continue;
    storage.place = {kConstants, at, storage.size_bytes};
    at += (storage.size_bytes + 255) / 256 * 256;
  }
  return step;
}

Result<std::vector<std::vector<std::byte>>> MadeUpLlama::interpret(graph::Graph step, std::int32_t n_past, std::int32_t count) const {
  RONDO_TRY(step.status());
  graph::HostTensors host(step, [this](const graph::Storage& storage, std::vector<float>& values) -> Status {
    for (std::size_t i = 0; i < network.blocks.size(); ++i) {
      const models::WeightBlock& block = network.blocks[i];
      if (block.name != storage.name) continue;
      const std::int64_t n = block.matrix[0], k = block.matrix[1];
      values = weight_values(block.type, n, k, weight_rows(block.type, n, k, static_cast<std::uint32_t>(i), WeightValues::kRandom));
      return {};
    }
    return Status(StatusCode::kInternal, "no weight " + storage.name);
  });
  std::vector<std::int32_t> state(RONDO_STATE_WORDS, 0);
  state[RONDO_STATE_POSITION] = n_past;
  state[RONDO_STATE_COUNT] = count;
  state[RONDO_STATE_ACTIVE] = 1;
  std::memcpy(host.bytes(step.state).data(), state.data(), state.size() * 4);
  std::vector<std::byte>& tokens = host.bytes(step.tensor(step.nodes().front().inputs[0]).storage);
  for (std::int32_t i = 0; i < 128; ++i) {
    const std::int32_t id = i * 37 % 113;
    std::memcpy(tokens.data() + 4 * i, &id, 4);
  }
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    const auto id = static_cast<graph::StorageId>(i);
    if (step.storage(id).kind != graph::StorageKind::kCache) continue;
    std::vector<std::byte>& cache = host.bytes(id);
    // Of q8_0 whatever quants these words make, and scales that keep their elements near 1.
    const graph::Type type = step.storage(id).type;
    const std::vector<float> past = random_values(cache.size() / 4, static_cast<std::uint32_t>(i), type == graph::Type::kQ8_0 ? 0x1p-7f : 1.0f);
    for (std::size_t k = 0; k < past.size(); ++k) {
      const auto half = graph::float_to_half(past[k]);
      const std::uint32_t pair = half | static_cast<std::uint32_t>(half) << 16;
      std::memcpy(cache.data() + 4 * k, type == graph::Type::kF32 ? static_cast<const void*>(&past[k]) : &pair, 4);
    }
  }
  const std::size_t n_storages = step.n_storages();
  RONDO_TRY(graph::interpret(step, host));
  std::vector<std::vector<std::byte>> after;
  for (std::size_t i = 0; i < n_storages; ++i) after.push_back(host.bytes(static_cast<graph::StorageId>(i)));
  return after;
}

}  // namespace rondo::tests
