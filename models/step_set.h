// What a session has on the device: its buffers, and the recordings of its steps.
//
// Owns the session's plan, its memory (step state, tokens and their mirror, constants, activations, KV cache, logits) and its
// recordings, and fills them with what they begin with. Knows neither the session's history nor what is in flight. Not
// thread-safe; dropping it while the device works is safe.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <rondo/session.h>

#include "models/loaded_model.h"
#include "models/plan_buffers.h"
#include "runtime/recording.h"
#include "runtime/transfer.h"

namespace rondo::models {

/// One Program with its recording.
struct RecordedStep {
  StepKind kind{};
  const runtime::Program* program = nullptr;  ///< of the plan
  runtime::TimestampPool timestamps;  ///< empty unless the session profiles
  runtime::Recording recording;
};

class StepSet {
 public:
  /// Plans, allocates and records every step but the one that leaves logits; submits the initial step state and zeros.
  /// `model` is loaded; `options` are checked; `stop_ids` are those of the session and, where it uses them, of the model.
  /// Errors: those of plan_session, kOutOfMemory, kDeviceLost, kUnsupported (a profile without timestamps).
  static Result<StepSet> create(std::shared_ptr<const LoadedModel> model, const SessionOptions& options, std::uint32_t n_ctx, std::uint32_t n_source, std::span<const std::int32_t> stop_ids);

  /// Makes the step that leaves logits, with memory of its own, unless it is there. Errors: those of create.
  Status record_logits_step();

  /// Smallest capacity first; as many of either kind.
  std::span<const RecordedStep> prefill() const { return prefill_; }
  std::span<const RecordedStep> prefill_and_sample() const { return prefill_and_sample_; }
  const RecordedStep& decode() const { return decode_; }
  /// Of sources, smallest first; none where the network takes none.
  std::span<const RecordedStep> encode() const { return encode_; }
  /// Null until record_logits_step.
  const RecordedStep* logits_step() const { return logits_step_.get(); }

  const runtime::Buffer& state() const { return slot(plan_->places.state.buffer); }
  const runtime::Buffer& tokens() const { return slot(plan_->places.tokens.buffer); }
  /// What sources' steps take lies in one buffer, at these places.
  const runtime::Buffer& source() const { return slot(plan_->places.source_state.buffer); }
  const StepPlaces& places() const { return plan_->places; }
  const runtime::Buffer& mirror() const { return slot(plan_->places.mirror.buffer); }
  const runtime::Buffer& logits() const { return slot(plan_->output_slot); }
  std::uint32_t n_sequences() const { return static_cast<std::uint32_t>(plan_->places.n_sequences); }
  std::uint64_t kv_bytes() const { return plan_->memory.kv_bytes; }
  std::uint64_t activation_bytes() const { return plan_->memory.activation_bytes; }

  /// Submits made-up numbers for all of the KV cache, and zeros for the tokens.
  Status fill_history();

  /// The Programs as recorded, for proofs.
  std::vector<const runtime::Program*> programs() const;
  /// The plan's slots; buffers that are not made yet are empty.
  std::vector<const runtime::Buffer*> buffer_table() const { return buffers_.table(); }

 private:
  StepSet(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, const SessionOptions& options, PlanBuffers buffers);
  Result<RecordedStep> record_step(const StepKind& kind, const runtime::Program& program) const;
  Status take(RecordedStep step);
  Status write_initial_state(const SessionOptions& options, std::span<const std::int32_t> stop_ids);
  const runtime::Buffer& slot(std::uint32_t index) const { return buffers_.slot(index); }
  /// The buffers that hold caches.
  std::span<const runtime::Buffer> caches() const { return buffers_.slots_from(plan_->output_activation_slot + 1); }

  std::shared_ptr<const LoadedModel> model_;
  runtime::Device* device_;
  std::shared_ptr<const SessionPlan> plan_;
  PlanBuffers buffers_;
  bool profile_ = false;
  double max_segment_ns_ = 0;
  std::vector<RecordedStep> prefill_, prefill_and_sample_, encode_;
  RecordedStep decode_;
  std::unique_ptr<const runtime::Program> logits_program_;
  std::unique_ptr<RecordedStep> logits_step_;
};

}  // namespace rondo::models
