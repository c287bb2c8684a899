// What a model, and a session on it, will hold in device memory: worked out before anything is allocated.
//
// Pure functions from a checkpoint's header and a device's caps to plain data; no Vulkan, no weights are read. Model and
// Session creation obey these plans, and `rondo info` and `rondo graph` print them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rondo/model.h>
#include <rondo/status.h>

#include "graph/lowering.h"
#include "models/checkpoint.h"
#include "models/placement.h"
#include "runtime/device_plan.h"

namespace rondo::models {

/// Indices of the buffers that a session's Programs name. Weights follow, then caches.
enum StepBuffer : std::uint32_t { kStateBuffer, kTokensBuffer, kMirrorBuffer, kConstantsBuffer, kActivationsBuffer, kLogitsBuffer, kFirstWeightBuffer };

/// Token capacities of the prefill recordings, smallest first, and of the recording that leaves logits; fewer where a
/// storage range of the device holds fewer rows.
constexpr std::int64_t kPrefillRows[] = {8, 64, 512};
constexpr std::int64_t kLogitsRows = 64;

/// One kind of step: how many tokens it takes, and what it leaves behind.
struct StepKind {
  std::int64_t rows;
  StepHead head;
};
/// The steps that every session records: all prefill capacities with and without sampling, and decode.
std::vector<StepKind> step_kinds(const LlamaConfig& config, const runtime::DeviceCaps& caps, std::int64_t n_ctx);
/// The step that leaves logits of all rows.
StepKind logits_step_kind(const LlamaConfig& config, const runtime::DeviceCaps& caps);

/// Type of the cache's elements.
graph::Type kv_type_of(const ModelOptions& options);
/// How steps are lowered.
graph::LoweringOptions lowering_options_of(const ModelOptions& options);

/// Bytes that a token takes in the caches of all layers, keys and values.
std::uint64_t kv_bytes_per_token(const LlamaConfig& config, graph::Type kv_type);

/// Bytes of all weight blocks as a device without limits keeps them.
std::uint64_t weight_bytes(const Checkpoint& checkpoint);

/// Where the weights go.
struct WeightPlan {
  std::vector<std::vector<graph::StoragePiece>> pieces;  ///< per block of the checkpoint; buffers count from kFirstWeightBuffer
  std::vector<std::uint64_t> buffer_bytes;
  std::uint64_t size_bytes = 0;  ///< of all blocks
};

/// Blocks beyond the storage range are split by rows.
/// Errors: kUnsupported (a row beyond the storage range, or beyond what staging holds), kOutOfMemory (beyond the
/// device's memory), naming file and tensor.
Result<WeightPlan> plan_weights(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps);

/// A session's memory, weights included.
struct MemoryPlan {
  /// One allocation.
  struct Buffer {
    std::string name;              ///< "step state", "weights 0", "KV cache 1", ...
    std::uint64_t size_bytes = 0;  ///< 0: none is made (logits, until they are asked for)
    runtime::MemoryIntent intent = runtime::MemoryIntent::kDevice;
  };
  std::vector<Buffer> buffers;  ///< by the indices that Programs use

  std::uint32_t n_ctx = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;                    ///< 2 x layers x KV heads x head width x context x bytes of an element
  std::uint64_t activation_bytes = 0;            ///< of the step that needs most
  std::uint64_t unaliased_activation_bytes = 0;  ///< what they would be if none shared memory with another
  std::uint64_t constant_bytes = 0;              ///< tables
  std::uint64_t staging_bytes = 0;               ///< at most, while loading, where weights can't be written in place

  /// Bytes of all buffers of this intent.
  std::uint64_t total_bytes(runtime::MemoryIntent intent) const;
  /// "context of 4096 tokens: KV cache 64 MB + weights 500 MB".
  std::string summary() const;
};

/// All that is decided about a session before it is made.
struct SessionPlan {
  /// A table that steps read, equal in all of them.
  struct Constant {
    std::string name;
    runtime::BufferRange place;
    std::vector<std::byte> content;
  };
  MemoryPlan memory;
  StepPlaces places;
  std::vector<Constant> constants;
  std::vector<StepKind> kinds;
  std::vector<graph::Lowered> steps;  ///< one per kind
};

/// Plans a session of `n_ctx` tokens that has these steps.
/// Errors: kOutOfMemory (beyond the device's memory), kUnsupported (something beyond a limit of the device), both beginning
/// with the plan's summary where memory is the matter.
Result<SessionPlan> plan_session(const Checkpoint& checkpoint, const WeightPlan& weights, const runtime::DeviceCaps& caps,
                                 const ModelOptions& options, std::uint32_t n_ctx, std::span<const StepKind> kinds);

/// The memory of a model and a session of `n_ctx` tokens on it. Errors: those of plan_weights and plan_session.
Result<MemoryPlan> plan_memory_of(const Checkpoint& checkpoint, const runtime::DeviceCaps& caps, const ModelOptions& options, std::uint32_t n_ctx);

}  // namespace rondo::models
