// What a model, and a session on it, will hold in device memory: worked out before anything is allocated.
//
// Pure functions from a checkpoint's header and a device's caps to plain data; no Vulkan, no weights are read. Model and
// Session creation obey these plans, and `rondo info` and `rondo graph` print them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/model.h>
#include <rondo/status.h>

#include "graph/lowering.h"
#include "models/checkpoint.h"
#include "models/placement.h"
#include "runtime/device_plan.h"

namespace rondo::models {

/// Token capacities of the prefill recordings, smallest first, and of recordings that leave an output; fewer where a
/// storage range of the device holds fewer rows.
constexpr std::int64_t kPrefillRows[] = {8, 64, kMostStepRows};
constexpr std::int64_t kOutputRows = 64;

/// One kind of step: what it is for, and how many tokens it takes.
struct StepKind {
  Role role{};
  std::int64_t rows = 0;
  std::int64_t n_texts = 0;  ///< or images, where it encodes; 0: as many as the plan has sequences
};
/// The steps that every session records: every role of the network at its capacities, but those that leave an output; and of an
/// encoder-decoder those that encode sources of up to `n_source` tokens.
std::vector<StepKind> step_kinds(const Network& network, const runtime::DeviceCaps& caps, std::int64_t n_ctx, std::int64_t n_source = 0);
/// The steps of a beam search: those that encode a source, and one that takes a token of each beam and leaves logits.
std::vector<StepKind> beam_kinds(const Network& network, std::int64_t n_beams, std::int64_t n_source);
/// The steps of an encoder: one text and `max_batch` (fewer where a storage range holds fewer), of lengths up to `max_tokens`.
std::vector<StepKind> encoder_kinds(const Network& network, const runtime::DeviceCaps& caps, Role role, std::int64_t max_batch, std::int64_t max_tokens);
/// A step that leaves an output of all rows, recorded when somebody asks for it.
StepKind output_step_kind(const Network& network, Role role, const runtime::DeviceCaps& caps);

/// A model's options, and what its tuning says.
struct PlanOptions : ModelOptions {
  PlanOptions() = default;
  PlanOptions(ModelOptions options) : ModelOptions(std::move(options)) {}
  /// As in graph::LoweringOptions.
  std::map<std::string, std::string, std::less<>> tuned, measured;
};

/// Type of the cache's elements.
graph::Type kv_type_of(const ModelOptions& options);

/// What the options say of lowering.
graph::LoweringOptions lowering_options(const PlanOptions& options, std::uint32_t activation_slot);

/// The context of a session that asks for none.
std::uint32_t default_context(const Network& network);
/// Tokens of the longest source of a session that asks for none; 0: the network takes no source.
std::uint32_t default_source(const Network& network);
/// Tokens of the longest text of an encoder that asks for none.
std::uint32_t default_text(const Network& network);

/// Where the weights go.
struct WeightPlan {
  std::vector<std::vector<graph::StoragePiece>> pieces;  ///< per block of the network; buffers are the first slots of every session
  std::vector<std::uint64_t> buffer_bytes;
  std::uint64_t size_bytes = 0;  ///< of all blocks
};

/// Blocks beyond the storage range are split by rows.
/// Errors: kUnsupported (a row beyond the storage range, or beyond what staging holds), kOutOfMemory (beyond the
/// device's memory), naming file and tensor.
Result<WeightPlan> plan_weights(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps);

/// A buffer that Programs name by its index among the slots of a session: first the weights', then the session's own.
struct Slot {
  std::string name;              ///< "step state", "weights 0", "KV cache 1", ...
  std::uint64_t size_bytes = 0;  ///< 0: none is made (outputs, until they are asked for)
  runtime::MemoryIntent intent = runtime::MemoryIntent::kDevice;
};

/// A session's memory, weights included.
struct MemoryPlan {
  std::vector<Slot> slots;

  std::uint32_t n_ctx = 0;  ///< of an encoder: tokens of the longest text
  std::uint32_t n_source = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;                    ///< of all caches
  std::uint64_t activation_bytes = 0;            ///< of the step that needs most
  std::uint64_t output_bytes = 0;                ///< of an encoder's
  std::uint64_t unaliased_activation_bytes = 0;  ///< what they would be if none shared memory with another
  std::uint64_t constant_bytes = 0;              ///< tables
  std::uint64_t staging_bytes = 0;               ///< at most, while loading, where weights can't be written in place

  /// Adds a slot and returns its index.
  std::uint32_t add(std::string name, std::uint64_t size_bytes, runtime::MemoryIntent intent = runtime::MemoryIntent::kDevice);
  /// The slot of this name, or null.
  const Slot* find(std::string_view name) const;
  /// Bytes of all slots of this intent.
  std::uint64_t total_bytes(runtime::MemoryIntent intent) const;
  /// "context of 4096 tokens: KV cache 64 MB + weights 500 MB".
  std::string summary() const;
};

/// A step of a plan.
struct PlannedStep {
  StepKind kind;
  graph::Lowered lowered;
};

/// All that is decided about a session before it is made; shared by the sessions that are made alike.
struct SessionPlan {
  /// A table that steps read, equal in all of them.
  struct Constant {
    std::string name;
    runtime::BufferRange place;
    std::vector<std::byte> content;
  };
  MemoryPlan memory;
  StepPlaces places;
  std::uint32_t constant_slot = 0, activation_slot = 0;
  std::uint32_t output_slot = 0, output_activation_slot = 0;  ///< of plan_output_step
  std::vector<Constant> constants;
  std::vector<PlannedStep> steps;

  /// Every kernel of the steps, once.
  std::vector<runtime::Kernel> kernels() const;
};

/// Plans a session of `n_sequences` of `n_ctx` tokens each, with sources of up to `n_source`, or one for all, that has these steps.
/// Errors: kOutOfMemory (beyond the device's memory), kUnsupported (something beyond a limit of the device), both beginning
/// with the plan's summary where memory is the matter.
Result<SessionPlan> plan_session(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options,
                                 std::uint32_t n_ctx, std::span<const StepKind> kinds, std::int64_t n_sequences = 1, std::uint32_t n_source = 0, bool one_source = false);

/// What an encoder is for.
struct EncoderShape {
  std::int64_t max_batch = 1;
  std::uint32_t max_tokens = 0;  ///< rows of an image
  Pooling pooling = Pooling::kModel;
  bool normalize = false;
  std::uint32_t attention_layer = 0;
};
/// Plans an encoder: steps that leave their output, without caches. Errors: as plan_session.
Result<SessionPlan> plan_encoder(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options, const EncoderShape& shape,
                                 std::span<const StepKind> kinds);

/// Plans one more step for a session, of a role that leaves something in the output. The sizes of the two slots that it needs
/// besides the plan's come out in `output_bytes` and the result's activation_bytes. Errors: as plan_session, kUnsupported (the
/// network has no such role), kInternal.
Result<graph::Lowered> plan_output_step(const Network& network, const runtime::DeviceCaps& caps, const PlanOptions& options, const SessionPlan& plan,
                                        const StepKind& kind, std::uint64_t& output_bytes);

/// The plan of a model that only encodes, as its options' defaults have it: vectors. Errors: as plan_encoder.
Result<SessionPlan> plan_default_encoder(const Network& network, const WeightPlan& weights, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t max_tokens);

/// A model and a session of `n_ctx` tokens on it, or an encoder of texts of so many. Errors: those of plan_weights, plan_session and plan_encoder.
Result<SessionPlan> plan_whole(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t n_ctx);
/// Its memory.
Result<MemoryPlan> plan_memory_of(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const PlanOptions& options, std::uint32_t n_ctx);

}  // namespace rondo::models
