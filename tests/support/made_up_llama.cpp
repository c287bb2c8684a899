#include "tests/support/made_up_llama.h"

#include <cstring>

#include "graph/block_format.h"
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
  explicit BlockBuilder(std::vector<models::WeightBlock>& blocks) : blocks_(blocks) {}

  models::WeightSlice add(const std::string& name, graph::Type type, std::int64_t rows, std::int64_t columns, bool join = false) {
    if (!join || blocks_.back().type != type) {
      models::WeightBlock block;
      block.name = name;
      block.type = type;
      block.matrix = {0, columns};
      blocks_.push_back(block);
    }
    models::WeightBlock& block = blocks_.back();
    const models::WeightSlice slice{static_cast<std::int32_t>(blocks_.size() - 1), block.matrix[0], rows};
    block.matrix[0] += rows;
    return slice;
  }

 private:
  std::vector<models::WeightBlock>& blocks_;
};

}  // namespace

MadeUpLlama::MadeUpLlama(const MadeUpOptions& options) {
  config.n_layers = options.n_layers;
  config.width = 64;
  config.n_heads = 4;
  config.n_kv_heads = options.n_kv_heads;
  config.head_dim = 16;
  config.ffn = 96;
  config.n_vocab = 113;
  config.context = 128;
  config.rope.style = graph::RopeStyle::kInterleaved;
  config.rope.dimensions = 16;
  BlockBuilder add(blocks);
  const graph::Type type = options.weight_type;
  weights.embedding = add.add("embedding", type, config.n_vocab, config.width);
  for (std::uint32_t i = 0; i < options.n_layers; ++i) {
    models::LlamaWeights::Layer layer;
    const auto name = [i](const char* what) { return fmt::format("layer {} {}", i, what); };
    layer.attention_norm = add.add(name("attention norm"), graph::Type::kF32, 1, 64);
    layer.query = add.add(name("query"), type, 64, 64);
    layer.key = add.add(name("key"), type, 16 * options.n_kv_heads, 64, true);
    layer.value = add.add(name("value"), options.value_type, 16 * options.n_kv_heads, 64, true);
    layer.output = add.add(name("output"), type, 64, 64);
    layer.ffn_norm = add.add(name("ffn norm"), graph::Type::kF32, 1, 64);
    layer.gate = add.add(name("gate"), type, 96, 64);
    layer.up = add.add(name("up"), options.up_type, 96, 64, true);
    layer.down = add.add(name("down"), type, 64, 96);
    weights.layers.push_back(layer);
  }
  weights.output_norm = add.add("output norm", graph::Type::kF32, 1, 64);
  weights.output = weights.embedding;
  std::uint64_t weight_bytes = 0;
  for (models::WeightBlock& block : blocks) {
    const std::uint64_t size = graph::plane_layout(*graph::find_block_format(block.type), block.matrix[0], block.matrix[1]).size_bytes;
    block.pieces = {{0, block.matrix[0], {kWeights, weight_bytes, size}}};
    weight_bytes += size;
  }
  places.n_ctx = 128;
  places.kv_type = options.kv_type;
  places.state = {kState, 0, RONDO_STATE_WORDS * 4};
  places.tokens = {kTokens, 0, 512};
  places.mirror = {kMirror, 0, 512};
  places.logits = {kLogits, 0, std::uint64_t{4} * config.n_vocab * 128};
  const std::uint64_t layer_bytes = models::cache_head_bytes(config, options.kv_type, 128) * config.n_kv_heads;
  for (std::uint64_t i = 0; i < options.n_layers; ++i) {
    places.key_caches.push_back({{0, config.n_kv_heads, {kCaches, 2 * i * layer_bytes, layer_bytes}}});
    places.value_caches.push_back({{0, config.n_kv_heads, {kCaches, (2 * i + 1) * layer_bytes, layer_bytes}}});
  }
}

graph::Graph MadeUpLlama::build(std::int64_t rows, models::StepHead head) const {
  graph::Graph step = models::build_llama_step(config, weights, blocks, places, rows, head);
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
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const models::WeightBlock& block = blocks[i];
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
