#include "models/memory_plan.h"

#include <algorithm>
#include <utility>

#include "graph/cache_layout.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

/// Weights and caches go into few large buffers, but into none larger than this.
constexpr std::uint64_t kLargestBuffer = 1u << 30;

/// Lengths that texts are recorded for: one that is a little longer than another costs little more, since rows beyond a text's end are
/// not computed.
constexpr std::int64_t kTextRows[] = {32, 128, 512, 2048};
/// Rows of a batch of texts: more make steps no faster, but their activations larger.
constexpr std::int64_t kMostBatchRows = 4096;
/// Attention weights of a batch: they are the square of its rows.
constexpr std::int64_t kMostBatchWeights = 1 << 24;

std::vector<std::int64_t> text_rows(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (const std::int64_t rows : kTextRows) {
    if (rows < most) all.push_back(rows);
  }
  all.push_back(most);
  return all;
}

/// How many rows of `floats` a storage range holds, at least 1.
std::int64_t rows_in_range(const runtime::DeviceCaps& caps, std::int64_t floats) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(caps.max_storage_range_bytes / (4 * static_cast<std::uint64_t>(floats))));
}

/// What a buffer of weights or caches holds at most, in one block or in all.
std::uint64_t largest_piece(const runtime::DeviceCaps& caps) { return std::min(caps.max_storage_range_bytes, caps.max_allocation_bytes); }
std::uint64_t largest_buffer(const runtime::DeviceCaps& caps) { return std::max(std::min(kLargestBuffer, caps.max_allocation_bytes), largest_piece(caps)); }

}  // namespace

std::vector<StepKind> step_kinds(const Network& network, const runtime::DeviceCaps& caps, std::int64_t n_ctx, std::int64_t n_source) {
  const std::int64_t most = std::max(rows_in_range(caps, network.widest_row), kPrefillRows[0]);
  std::vector<StepKind> kinds;
  for (std::int64_t rows : kPrefillRows) {
    rows = std::min(rows, most);
    for (const RoleSpec& spec : network.roles) {
      if (spec.role != Role::kDecode && !spec.leaves_output()) kinds.push_back({spec.role, rows});
    }
    if (rows >= n_ctx || rows == most) break;
  }
  if (network.find(Role::kDecode)) kinds.push_back({Role::kDecode, 1});
  if (n_source == 0 || !network.find(Role::kEncode)) return kinds;
  for (const std::int64_t rows : text_rows(n_source)) kinds.push_back({Role::kEncode, rows});
  return kinds;
}

std::vector<StepKind> beam_kinds(const Network& network, std::int64_t n_beams, std::int64_t n_source) {
  std::vector<StepKind> kinds;
  if (network.find(Role::kEncode)) {
    for (const std::int64_t rows : text_rows(n_source)) kinds.push_back({Role::kEncode, rows, 1});
  }
  kinds.push_back({Role::kLogits, 1, n_beams});
  return kinds;
}

std::vector<StepKind> encoder_kinds(const Network& network, const runtime::DeviceCaps& caps, Role role, std::int64_t max_batch, std::int64_t max_tokens) {
  const RoleSpec* spec = network.find(role);
  const std::int64_t widest = std::max({network.widest_row, spec ? spec->output_width : 0, spec ? spec->pooled_width : 0});
  std::vector<StepKind> kinds;
  for (const std::int64_t rows : takes_images(role) ? std::vector{max_tokens} : text_rows(max_tokens)) {
    const std::int64_t weights = (spec ? spec->n_heads : 0) * rows * rows;
    const std::int64_t held = weights > 0 ? std::min(rows_in_range(caps, weights), kMostBatchWeights / weights) : max_batch;
    const std::int64_t most = std::min({max_batch, std::max<std::int64_t>(kMostBatchRows / rows, 1), std::max<std::int64_t>(held, 1)});
    const std::int64_t texts = std::clamp<std::int64_t>(rows_in_range(caps, widest) / rows, 1, most);
    kinds.push_back({role, rows, 1});
    if (texts > 1) kinds.push_back({role, rows, texts});
  }
  return kinds;
}

StepKind output_step_kind(const Network& network, Role role, const runtime::DeviceCaps& caps) {
  const RoleSpec* spec = network.find(role);
  return {role, std::min(kOutputRows, rows_in_range(caps, std::max(spec ? spec->output_width : 0, network.widest_row)))};
}

std::uint32_t default_context(const Network& network) { return std::min(network.facts.context, 4096u); }
std::uint32_t default_source(const Network& network) { return std::min(network.facts.source_context, 512u); }
std::uint32_t default_text(const Network& network) { return std::min(std::max(network.facts.context, network.facts.source_context), 512u); }

graph::Type kv_type_of(const ModelOptions& options) {
  switch (options.kv_type) {
    case KvType::kF16: return graph::Type::kF16;
    case KvType::kF32: return graph::Type::kF32;
    case KvType::kQ8_0: return graph::Type::kQ8_0;
  }
  return graph::Type::kF16;
}

graph::LoweringOptions lowering_options(const PlanOptions& options, std::uint32_t activation_slot) {
  graph::LoweringOptions lowering;
  lowering.fusion = options.fusion;
  lowering.forced_kernels = options.kernels;
  lowering.tuned = options.tuned;
  lowering.measured = options.measured;
  lowering.quarantine = options.quarantine;
  lowering.activations = options.activations;
  lowering.activation_buffer = activation_slot;
  return lowering;
}

Result<WeightPlan> plan_weights(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps) {
  WeightPlan plan;
  std::vector<std::uint64_t> sizes;
  for (const WeightBlock& block : checkpoint.network.blocks) {
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
  RONDO_ASSIGN(Placement placement, place_blocks(sizes, 256, largest_buffer(caps), 0));
  plan.buffer_bytes = std::move(placement.buffer_bytes);
  std::size_t next = 0;
  for (std::vector<graph::StoragePiece>& pieces : plan.pieces) {
    for (graph::StoragePiece& piece : pieces) piece.place = placement.places[next++];
  }
  return plan;
}

std::uint32_t MemoryPlan::add(std::string name, std::uint64_t size_bytes, runtime::MemoryIntent intent) {
  slots.push_back({std::move(name), runtime::allocated_bytes(size_bytes), intent});
  return static_cast<std::uint32_t>(slots.size() - 1);
}

const Slot* MemoryPlan::find(std::string_view name) const {
  const auto found = std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.name == name; });
  return found == slots.end() ? nullptr : &*found;
}

std::uint64_t MemoryPlan::total_bytes(runtime::MemoryIntent intent) const {
  std::uint64_t total = 0;
  for (const Slot& slot : slots) total += slot.intent == intent ? slot.size_bytes : 0;
  return total;
}

std::string MemoryPlan::summary() const {
  return fmt::format("context of {} tokens: KV cache {} MB + weights {} MB", n_ctx, kv_bytes >> 20, weight_bytes >> 20);
}

std::vector<runtime::Kernel> SessionPlan::kernels() const {
  std::vector<runtime::Kernel> all;
  for (const PlannedStep& step : steps) {
    for (const runtime::Kernel& kernel : step.lowered.program.kernels) {
      if (std::find(all.begin(), all.end(), kernel) == all.end()) all.push_back(kernel);
    }
  }
  return all;
}

namespace {

constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Half of a cache: its heads in all sequences, and bytes of each.
struct CacheHalf {
  std::vector<graph::StoragePiece>* pieces;
  std::int64_t n_heads;
  std::uint64_t head_bytes;
};

/// Sets the caches' positions and lists their halves in the order of their places.
std::vector<CacheHalf> list_halves(const Network& network, StepPlaces& places) {
  std::vector<CacheHalf> halves;
  places.caches.resize(network.caches.size());
  for (std::size_t i = 0; i < network.caches.size(); ++i) {
    const CacheSpec& spec = network.caches[i];
    CachePlaces& cache = places.caches[i];
    cache.positions = cache_positions(spec, places.n_ctx, places.n_source);
    const std::int64_t n_heads = (places.one_source && spec.extent == CacheExtent::kSource ? 1 : places.n_sequences) * spec.n_heads;
    halves.push_back({&cache.keys, n_heads, graph::cache_layout(places.kv_type, cache.positions, spec.key_width).size_bytes});
    halves.push_back({&cache.values, n_heads, graph::cache_layout(places.kv_type, cache.positions, spec.value_width).size_bytes});
  }
  return halves;
}

/// Where caches go, in slots of their own.
Status place_caches(const Network& network, const runtime::DeviceCaps& caps, SessionPlan& plan) {
  MemoryPlan& memory = plan.memory;
  const std::vector<CacheHalf> halves = list_halves(network, plan.places);
  for (const CacheHalf& half : halves) memory.kv_bytes += half.head_bytes * static_cast<std::uint64_t>(half.n_heads);
  if (caps.memory_budget_bytes && memory.kv_bytes + memory.weight_bytes > caps.memory_budget_bytes) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("{} do not fit the {} MB of device {}; ask for a smaller context", memory.summary(), caps.memory_budget_bytes >> 20, caps.name));
  }
  std::vector<std::uint64_t> sizes;
  for (const CacheHalf& half : halves) {
    *half.pieces = graph::split_evenly(half.n_heads, static_cast<std::int64_t>(largest_piece(caps) / half.head_bytes));
    if (half.pieces->empty()) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: the keys of one head need {} bytes in one storage buffer but device {} allows {}; ask for a smaller context",
                                                          memory.summary(), half.head_bytes, caps.name, largest_piece(caps)));
    }
    for (const graph::StoragePiece& piece : *half.pieces) sizes.push_back(static_cast<std::uint64_t>(piece.count) * half.head_bytes);
  }
  RONDO_ASSIGN(const Placement placement, place_blocks(sizes, 256, largest_buffer(caps), static_cast<std::uint32_t>(memory.slots.size())));
  for (std::size_t i = 0; i < placement.buffer_bytes.size(); ++i) memory.add(fmt::format("KV cache {}", i), placement.buffer_bytes[i]);
  std::size_t next = 0;
  for (const CacheHalf& half : halves) {
    for (graph::StoragePiece& piece : *half.pieces) piece.place = placement.places[next++];
  }
  return {};
}

/// Slots and places of all that does not depend on the steps. An encoder (`encodes`) has a source and no tokens of its own.
Status place_session(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, SessionPlan& plan, bool encodes) {
  MemoryPlan& memory = plan.memory;
  StepPlaces& places = plan.places;
  memory.weight_bytes = weights.size_bytes;
  memory.staging_bytes = runtime::kStagingSlots * runtime::kStagingSlotBytes;
  places.weights = weights.pieces;
  for (std::size_t i = 0; i < weights.buffer_bytes.size(); ++i) memory.add(fmt::format("weights {}", i), weights.buffer_bytes[i]);
  const auto add = [&](const char* name, std::uint64_t size_bytes, runtime::MemoryIntent intent) {
    return runtime::BufferRange{memory.add(name, size_bytes, intent), 0, size_bytes};
  };
  const auto n_sequences = static_cast<std::uint64_t>(places.n_sequences);
  const std::uint64_t state_bytes = n_sequences * RONDO_STATE_WORDS * 4;
  if (!encodes) {
    const std::uint64_t token_bytes = n_sequences * 4 * memory.n_ctx;
    places.state = add("step state", state_bytes, runtime::MemoryIntent::kDevice);
    places.tokens = add("tokens", token_bytes, runtime::MemoryIntent::kDevice);
    places.mirror = add("token mirror", token_bytes, runtime::MemoryIntent::kReadback);
  }
  if (encodes || memory.n_source > 0) {
    // One slot, so that what a step takes is put there at once.
    const NetworkFacts& facts = network.facts;
    const std::uint64_t id_bytes = aligned(n_sequences * 4 * static_cast<std::uint64_t>(places.n_source));
    const std::uint64_t type_bytes = facts.n_token_types > 0 ? id_bytes : 0, pixel_bytes = encodes ? n_sequences * 4 * facts.image.n_values() : 0;
    const std::uint64_t length_bytes = aligned(n_sequences * 4);
    const runtime::BufferRange whole = add("source", state_bytes + length_bytes + id_bytes + type_bytes + pixel_bytes, runtime::MemoryIntent::kDevice);
    std::uint64_t next = 0;
    const auto take = [&](std::uint64_t size_bytes) { return runtime::BufferRange{whole.buffer, std::exchange(next, next + size_bytes), size_bytes}; };
    places.source_state = take(state_bytes);
    places.source_lengths = take(length_bytes);
    places.source_tokens = take(id_bytes);
    places.source_types = take(type_bytes);
    places.pixels = take(pixel_bytes);
  }
  const auto reserve = [&](const char* name) {  // sized by what the steps turn out to need
    memory.slots.push_back({name, 0, runtime::MemoryIntent::kDevice});
    return static_cast<std::uint32_t>(memory.slots.size() - 1);
  };
  plan.constant_slot = reserve("constants");
  plan.activation_slot = reserve("activations");
  plan.output_slot = reserve("output");
  plan.output_activation_slot = reserve("activations of the output");
  return encodes ? Status() : place_caches(network, caps, plan);
}

const SessionPlan::Constant* find_constant(const SessionPlan& plan, const std::string& name) {
  const auto found = std::find_if(plan.constants.begin(), plan.constants.end(), [&](const SessionPlan::Constant& known) { return known.name == name; });
  return found == plan.constants.end() ? nullptr : &*found;
}

/// Gives equal constants of all graphs one place.
void place_constants(graph::Graph& step, SessionPlan& plan) {
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kConstant) continue;
    if (!find_constant(plan, storage.name)) {
      const runtime::BufferRange place{plan.constant_slot, plan.memory.constant_bytes, storage.size_bytes};
      plan.memory.constant_bytes = (plan.memory.constant_bytes + storage.size_bytes + 255) / 256 * 256;
      plan.constants.push_back({storage.name, place, std::move(storage.content)});
    }
    storage.place = find_constant(plan, storage.name)->place;
    storage.content.clear();
  }
}

}  // namespace

namespace {

/// Bytes that a step of an encoder leaves.
std::uint64_t output_bytes_of(const RoleSpec& spec, std::int64_t rows, std::int64_t n_texts, Pooling pooling) {
  return static_cast<std::uint64_t>(4 * n_texts * spec.n_values(rows, pooling));
}

/// Builds and lowers the steps, whose places are known, and sizes what they share.
Status plan_steps(const Network& network, const runtime::DeviceCaps& caps, const PlanOptions& options, std::span<const StepKind> kinds, SessionPlan& plan) {
  MemoryPlan& memory = plan.memory;
  for (const StepKind& kind : kinds) {
    StepPlaces places = plan.places;
    if (kind.n_texts > 0) places.n_sequences = kind.n_texts;
    const RoleSpec* spec = network.find(kind.role);
    if (spec && spec->leaves_output() && (places.caches.empty() || !encodes(kind.role))) {
      places.output = {plan.output_slot, 0, output_bytes_of(*spec, kind.rows, places.n_sequences, places.pooling)};
      memory.output_bytes = std::max(memory.output_bytes, places.output.size_bytes);
    }
    graph::Graph step = network.build(kind.role, kind.rows, places);
    RONDO_TRY(Status(step.status()));
    place_constants(step, plan);
    RONDO_ASSIGN(graph::Lowered lowered, graph::lower(step, caps, lowering_options(options, plan.activation_slot)));
    memory.activation_bytes = std::max(memory.activation_bytes, lowered.activation_bytes);
    memory.unaliased_activation_bytes = std::max(memory.unaliased_activation_bytes, lowered.unaliased_activation_bytes);
    plan.steps.push_back({kind, std::move(lowered)});
  }
  memory.slots[plan.constant_slot].size_bytes = runtime::allocated_bytes(memory.constant_bytes);
  memory.slots[plan.activation_slot].size_bytes = runtime::allocated_bytes(memory.activation_bytes);
  if (memory.output_bytes > 0) memory.slots[plan.output_slot].size_bytes = runtime::allocated_bytes(memory.output_bytes);
  for (const Slot& slot : memory.slots) {
    if (slot.size_bytes <= caps.max_allocation_bytes) continue;
    return Status(StatusCode::kUnsupported,
                  fmt::format("{}: {} need {} bytes in one allocation but device {} allows {}", memory.summary(), slot.name, slot.size_bytes, caps.name, caps.max_allocation_bytes));
  }
  return {};
}

}  // namespace

Result<SessionPlan> plan_session(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options,
                                 std::uint32_t n_ctx, std::span<const StepKind> kinds, std::int64_t n_sequences, std::uint32_t n_source, bool one_source) {
  SessionPlan plan;
  plan.places.one_source = one_source;
  plan.memory.n_ctx = n_ctx;
  plan.memory.n_source = n_source;
  plan.places.n_ctx = n_ctx;
  plan.places.n_source = n_source;
  plan.places.n_sequences = n_sequences;
  plan.places.kv_type = kv_type_of(options);
  RONDO_TRY(place_session(network, weights, caps, plan, false));
  RONDO_TRY(plan_steps(network, caps, options, kinds, plan));
  return plan;
}

Result<SessionPlan> plan_encoder(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options, const EncoderShape& shape,
                                 std::span<const StepKind> kinds) {
  SessionPlan plan;
  plan.memory.n_ctx = shape.max_tokens;
  plan.places.n_ctx = plan.places.n_source = shape.max_tokens;
  plan.places.n_sequences = 1;
  for (const StepKind& kind : kinds) plan.places.n_sequences = std::max(plan.places.n_sequences, kind.n_texts);
  plan.places.pooling = shape.pooling;
  plan.places.normalize = shape.normalize;
  plan.places.attention_layer = shape.attention_layer;
  RONDO_TRY(place_session(network, weights, caps, plan, true));
  RONDO_TRY(plan_steps(network, caps, options, kinds, plan));
  return plan;
}

Result<SessionPlan> plan_default_encoder(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t max_tokens) {
  std::vector<StepKind> kinds;
  const EncoderOptions usual;
  for (const Role role : {Role::kPool, Role::kPoolImage}) {
    if (!network.find(role)) continue;
    const std::vector<StepKind> more = encoder_kinds(network, caps, role, usual.max_batch, takes_images(role) ? network.facts.image_rows : max_tokens);
    kinds.insert(kinds.end(), more.begin(), more.end());
  }
  return plan_encoder(network, weights, caps, options, {usual.max_batch, max_tokens, usual.pooling, usual.normalize}, kinds);
}

Result<graph::Lowered> plan_output_step(const Network& network, const runtime::DeviceCaps& caps, const PlanOptions& options, const SessionPlan& plan,
                                        const StepKind& kind, std::uint64_t& output_bytes) {
  StepPlaces places = plan.places;
  const RoleSpec* spec = network.find(kind.role);
  if (!spec || !spec->leaves_output()) return Status(StatusCode::kUnsupported, fmt::format("session: {} has no step that leaves {}", network.facts.architecture, role_name(kind.role)));
  output_bytes = output_bytes_of(*spec, kind.rows, places.n_sequences, places.pooling);
  places.output = {plan.output_slot, 0, output_bytes};
  graph::Graph step = network.build(kind.role, kind.rows, places);
  RONDO_TRY(Status(step.status()));
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kConstant) continue;
    const SessionPlan::Constant* known = find_constant(plan, storage.name);
    if (!known) return Status(StatusCode::kInternal, fmt::format("session: constant {} is new", storage.name));
    storage.place = known->place;
  }
  return graph::lower(step, caps, lowering_options(options, plan.output_activation_slot));
}

Result<SessionPlan> plan_whole(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t n_ctx) {
  const Network& network = checkpoint.network;
  RONDO_ASSIGN(const WeightPlan weights, plan_weights(checkpoint, caps));
  if (!network.find(Role::kDecode)) return plan_default_encoder(network, weights, caps, options, n_ctx);
  const std::uint32_t n_source = default_source(network);
  return plan_session(network, weights, caps, options, n_ctx, step_kinds(network, caps, n_ctx, n_source), 1, n_source);
}

Result<MemoryPlan> plan_memory_of(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t n_ctx) {
  RONDO_ASSIGN(SessionPlan plan, plan_whole(checkpoint, caps, options, n_ctx));
  return std::move(plan.memory);
}

}  // namespace rondo::models
