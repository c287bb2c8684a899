#include "models/memory_plan.h"

#include <algorithm>
#include <utility>

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

/// Weights and caches go into few large buffers, but into none larger than this.
constexpr std::uint64_t kLargestBuffer = 1u << 30;

graph::PlaneLayout layout_of(const WeightBlock& block) { return graph::plane_layout(*graph::find_block_format(block.type), block.matrix[0], block.matrix[1]); }

}  // namespace

namespace {

/// How many rows of `floats` a storage range holds, at least 1.
std::int64_t rows_in_range(const runtime::DeviceCaps& caps, std::int64_t floats) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(caps.max_storage_range_bytes / (4 * static_cast<std::uint64_t>(floats))));
}

/// What a buffer of weights or caches holds at most, in one block or in all.
std::uint64_t largest_piece(const runtime::DeviceCaps& caps) { return std::min(caps.max_storage_range_bytes, caps.max_allocation_bytes); }
std::uint64_t largest_buffer(const runtime::DeviceCaps& caps) { return std::max(std::min(kLargestBuffer, caps.max_allocation_bytes), largest_piece(caps)); }

}  // namespace

std::vector<StepKind> step_kinds(const LlamaConfig& config, const runtime::DeviceCaps& caps, std::int64_t n_ctx) {
  const std::int64_t most = std::max(rows_in_range(caps, widest_row(config)), kPrefillRows[0]);
  std::vector<StepKind> kinds;
  for (std::int64_t rows : kPrefillRows) {
    rows = std::min(rows, most);
    kinds.push_back({rows, StepHead::kNone});
    kinds.push_back({rows, StepHead::kSample});
    if (rows >= n_ctx || rows == most) break;
  }
  kinds.push_back({1, StepHead::kSample});
  return kinds;
}

StepKind logits_step_kind(const LlamaConfig& config, const runtime::DeviceCaps& caps) {
  return {std::min(kLogitsRows, rows_in_range(caps, std::max<std::int64_t>(config.n_vocab, widest_row(config)))), StepHead::kLogits};
}

graph::Type kv_type_of(const ModelOptions& options) {
  switch (options.kv_type) {
    case KvType::kF16: return graph::Type::kF16;
    case KvType::kF32: return graph::Type::kF32;
    case KvType::kQ8_0: return graph::Type::kQ8_0;
  }
  return graph::Type::kF16;
}

graph::LoweringOptions lowering_options_of(const ModelOptions& options) {
  graph::LoweringOptions lowering;
  lowering.fusion = options.fusion;
  lowering.forced_kernels = options.kernels;
  lowering.activation_buffer = kActivationsBuffer;
  return lowering;
}

std::uint64_t kv_bytes_per_token(const LlamaConfig& config, graph::Type kv_type) { return 2 * cache_head_bytes(config, kv_type, 1) * config.n_kv_heads * config.n_layers; }

std::uint64_t weight_bytes(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const WeightBlock& block : checkpoint.blocks) total += layout_of(block).size_bytes;
  return total;
}

Result<WeightPlan> plan_weights(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps) {
  WeightPlan plan;
  std::vector<std::uint64_t> sizes;
  for (const WeightBlock& block : checkpoint.blocks) {
    const graph::BlockFormat& format = *graph::find_block_format(block.type);
    const graph::PlaneLayout row = graph::plane_layout(format, 1, block.matrix[1]);
    // One row of planes must fit the staging ring.
    if (std::uint64_t{row.row_words + row.scale_row_words} * 4 > runtime::kStagingSlotBytes) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}' has rows of {} columns, which is not there yet", checkpoint.file.name(), block.name, block.matrix[1]));
    }
    plan.pieces.push_back(graph::split_rows(format, block.matrix[0], block.matrix[1], largest_piece(caps)));
    if (plan.pieces.back().empty()) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}' has rows of {} bytes but a storage buffer of device {} holds {}", checkpoint.file.name(), block.name,
                                                          row.size_bytes, caps.name, largest_piece(caps)));
    }
    for (const graph::StoragePiece& piece : plan.pieces.back()) {
      sizes.push_back(graph::plane_layout(format, piece.count, block.matrix[1]).size_bytes);
      plan.size_bytes += sizes.back();
    }
  }
  if (caps.memory_budget_bytes && plan.size_bytes > caps.memory_budget_bytes) {
    return Status(StatusCode::kOutOfMemory, fmt::format("{}: its weights need {} MB but device {} has {} MB", checkpoint.file.name(), plan.size_bytes >> 20,
                                                        caps.name, caps.memory_budget_bytes >> 20));
  }
  RONDO_ASSIGN(Placement placement, place_blocks(sizes, 256, largest_buffer(caps), kFirstWeightBuffer));
  plan.buffer_bytes = std::move(placement.buffer_bytes);
  std::size_t next = 0;
  for (std::vector<graph::StoragePiece>& pieces : plan.pieces) {
    for (graph::StoragePiece& piece : pieces) piece.place = placement.places[next++];
  }
  return plan;
}

std::uint64_t MemoryPlan::total_bytes(runtime::MemoryIntent intent) const {
  std::uint64_t total = 0;
  for (const Buffer& buffer : buffers) total += buffer.intent == intent ? buffer.size_bytes : 0;
  return total;
}

std::string MemoryPlan::summary() const {
  return fmt::format("context of {} tokens: KV cache {} MB + weights {} MB", n_ctx, kv_bytes >> 20, weight_bytes >> 20);
}

namespace {

/// Where caches, state and token arrays go; the sizes of the caches' buffers.
Result<std::vector<std::uint64_t>> place_step(const LlamaConfig& config, const WeightPlan& weights, const runtime::DeviceCaps& caps, graph::Type kv_type, SessionPlan& plan) {
  MemoryPlan& memory = plan.memory;
  const std::uint64_t head_bytes = cache_head_bytes(config, kv_type, memory.n_ctx);
  memory.weight_bytes = weights.size_bytes;
  memory.kv_bytes = 2 * head_bytes * config.n_kv_heads * config.n_layers;
  if (caps.memory_budget_bytes && memory.kv_bytes + memory.weight_bytes > caps.memory_budget_bytes) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("{} do not fit the {} MB of device {}; ask for a smaller context", memory.summary(), caps.memory_budget_bytes >> 20, caps.name));
  }
  const std::vector<graph::StoragePiece> pieces = graph::split_evenly(config.n_kv_heads, static_cast<std::int64_t>(largest_piece(caps) / head_bytes));
  if (pieces.empty()) {
    return Status(StatusCode::kUnsupported, fmt::format("{}: the keys of one head need {} bytes in one storage buffer but device {} allows {}; ask for a smaller context",
                                                        memory.summary(), head_bytes, caps.name, largest_piece(caps)));
  }
  std::vector<std::uint64_t> sizes;
  for (std::uint32_t i = 0; i < 2 * config.n_layers; ++i) {
    for (const graph::StoragePiece& piece : pieces) sizes.push_back(static_cast<std::uint64_t>(piece.count) * head_bytes);
  }
  const auto first_cache = static_cast<std::uint32_t>(kFirstWeightBuffer + weights.buffer_bytes.size());
  RONDO_ASSIGN(Placement placement, place_blocks(sizes, 256, largest_buffer(caps), first_cache));
  const std::uint64_t token_bytes = std::uint64_t{4} * memory.n_ctx;
  StepPlaces& places = plan.places;
  places.n_ctx = memory.n_ctx;
  places.kv_type = kv_type;
  places.state = {kStateBuffer, 0, RONDO_STATE_WORDS * 4};
  places.tokens = {kTokensBuffer, 0, token_bytes};
  places.mirror = {kMirrorBuffer, 0, token_bytes};
  std::size_t next = 0;
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    for (auto* caches : {&places.key_caches, &places.value_caches}) {
      caches->push_back(pieces);
      for (graph::StoragePiece& piece : caches->back()) piece.place = placement.places[next++];
    }
  }
  return std::move(placement.buffer_bytes);
}

/// Gives equal constants of all graphs one place.
void place_constants(graph::Graph& step, SessionPlan& plan) {
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kConstant) continue;
    auto found = std::find_if(plan.constants.begin(), plan.constants.end(), [&](const SessionPlan::Constant& known) { return known.name == storage.name; });
    if (found == plan.constants.end()) {
      const runtime::BufferRange place{kConstantsBuffer, plan.memory.constant_bytes, storage.size_bytes};
      plan.memory.constant_bytes = (plan.memory.constant_bytes + storage.size_bytes + 255) / 256 * 256;
      plan.constants.push_back({storage.name, place, std::move(storage.content)});
      found = plan.constants.end() - 1;
    }
    storage.place = found->place;
    storage.content.clear();
  }
}

/// The list of allocations, each within the device's limit.
Status list_buffers(const WeightPlan& weights, const std::vector<std::uint64_t>& cache_bytes, const runtime::DeviceCaps& caps, SessionPlan& plan) {
  MemoryPlan& memory = plan.memory;
  const auto add = [&](std::string name, std::uint64_t size_bytes, runtime::MemoryIntent intent = runtime::MemoryIntent::kDevice) {
    memory.buffers.push_back({std::move(name), runtime::allocated_bytes(size_bytes), intent});
  };
  add("step state", plan.places.state.size_bytes);
  add("tokens", plan.places.tokens.size_bytes);
  add("token mirror", plan.places.mirror.size_bytes, runtime::MemoryIntent::kReadback);
  add("constants", memory.constant_bytes);
  add("activations", memory.activation_bytes);
  memory.buffers.push_back({"logits", 0, runtime::MemoryIntent::kDevice});
  for (std::size_t i = 0; i < weights.buffer_bytes.size(); ++i) add(fmt::format("weights {}", i), weights.buffer_bytes[i]);
  for (std::size_t i = 0; i < cache_bytes.size(); ++i) add(fmt::format("KV cache {}", i), cache_bytes[i]);
  for (const MemoryPlan::Buffer& buffer : memory.buffers) {
    if (buffer.size_bytes <= caps.max_allocation_bytes) continue;
    return Status(StatusCode::kUnsupported, fmt::format("{}: {} need {} bytes in one allocation but device {} allows {}", memory.summary(), buffer.name, buffer.size_bytes,
                                                        caps.name, caps.max_allocation_bytes));
  }
  return {};
}

}  // namespace

Result<SessionPlan> plan_session(const Checkpoint& checkpoint, const WeightPlan& weights, const runtime::DeviceCaps& caps,
                                 const ModelOptions& options, std::uint32_t n_ctx, std::span<const StepKind> kinds) {
  SessionPlan plan;
  plan.memory.n_ctx = n_ctx;
  plan.memory.staging_bytes = runtime::kStagingSlots * runtime::kStagingSlotBytes;
  plan.kinds.assign(kinds.begin(), kinds.end());
  RONDO_ASSIGN(const std::vector<std::uint64_t> cache_bytes, place_step(checkpoint.config, weights, caps, kv_type_of(options), plan));
  std::vector<WeightBlock> blocks = checkpoint.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].pieces = weights.pieces[i];
  const graph::LoweringOptions lowering = lowering_options_of(options);
  for (const StepKind& kind : kinds) {
    graph::Graph step = build_llama_step(checkpoint.config, checkpoint.weights, blocks, plan.places, kind.rows, kind.head);
    RONDO_TRY(step.status());
    place_constants(step, plan);
    RONDO_ASSIGN(graph::Lowered lowered, graph::lower(step, caps, lowering));
    plan.memory.activation_bytes = std::max(plan.memory.activation_bytes, lowered.activation_bytes);
    plan.memory.unaliased_activation_bytes = std::max(plan.memory.unaliased_activation_bytes, lowered.unaliased_activation_bytes);
    plan.steps.push_back(std::move(lowered));
  }
  RONDO_TRY(list_buffers(weights, cache_bytes, caps, plan));
  return plan;
}

Result<MemoryPlan> plan_memory_of(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const ModelOptions& options, std::uint32_t n_ctx) {
  RONDO_ASSIGN(const WeightPlan weights, plan_weights(checkpoint, caps));
  RONDO_ASSIGN(SessionPlan plan, plan_session(checkpoint, weights, caps, options, n_ctx, step_kinds(checkpoint.config, caps, n_ctx)));
  return std::move(plan.memory);
}

}  // namespace rondo::models
