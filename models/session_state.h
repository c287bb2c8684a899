// What a Session is made of: device memory, recordings, and the host's picture of the step state.
//
// The device advances on its own (graph/ops/step_end.cpp); the host follows by reading the mirror at the places that it
// knows a step wrote, once the timeline says that the step is done. See include/rondo/session.h for threads and errors.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include <rondo/session.h>

#include "models/loaded_model.h"

namespace rondo::models {

/// One Program with its recording.
struct RecordedStep {
  StepKind kind{};
  runtime::Program program;
  runtime::TimestampPool timestamps;  ///< empty unless the session profiles
  runtime::Recording recording;
};

class SessionState {
 public:
  static Result<std::unique_ptr<SessionState>> create(std::shared_ptr<LoadedModel> model, const SessionOptions& options);

  Status append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens);
  Status advance();
  Result<std::size_t> take_tokens(std::span<std::int32_t> out);
  Status wait(std::uint64_t timeout_ns);
  void cancel() { cancelled_ = true; }
  bool idle() const;
  StopReason stop_reason() const { return stop_; }
  Status rewind(std::uint32_t position);
  Result<std::vector<float>> wait_logits(std::span<const std::int32_t> tokens);

  std::span<const std::int32_t> tokens() const { return history_; }
  std::uint32_t n_ctx() const { return n_ctx_; }
  const SessionStatistics& statistics() const { return statistics_; }
  /// For measurements at a depth: token ids and cache rows up to `position` hold made-up numbers, as if prefilled.
  Status pretend_depth(std::uint32_t position);
  std::vector<ProfiledStep> take_profile() { return std::exchange(profile_, {}); }
  const LoadedModel& model() const { return *model_; }
  const SessionOptions& options() const { return options_; }
  /// The Programs as recorded, for proofs.
  std::vector<const runtime::Program*> programs() const;
  /// What the indices of the Programs' ranges mean; buffers that are not made yet are empty.
  std::vector<const runtime::Buffer*> buffer_table() const;

 private:
  /// A step with a token to come: which timeline value announces it.
  struct ExpectedToken {
    std::uint64_t value;
    std::uint32_t index;  ///< of the token in the history
  };
  /// One vkQueueSubmit in flight.
  struct Call {
    std::uint64_t value = 0;  ///< its last timeline value
    double predicted_ns = 0;
    std::uint64_t submitted_at_ns = 0;
  };
  /// A step being submitted, possibly over several calls.
  struct CurrentStep {
    const RecordedStep* step = nullptr;
    std::size_t next_segment = 0;
    std::uint32_t count = 0;
    bool samples = false;
  };
  /// Batches of the call being built; fixed size, so that decoding allocates nothing.
  struct CallBuilder {
    std::array<runtime::Batch, runtime::Device::kMaxBatches> batches;
    VkCommandBuffer staged = VK_NULL_HANDLE;  ///< the transfer before a chunk of input
    std::array<std::int64_t, runtime::Device::kMaxBatches> token_index;  ///< -1: the batch completes no sampled token
    std::size_t n = 0;
    std::uint32_t n_decode = 0;
    double predicted_ns = 0;
    void add(const runtime::Batch& batch, std::int64_t index) {
      batches[n] = batch;
      token_index[n++] = index;
    }
  };

  SessionState(std::shared_ptr<LoadedModel> model, const SessionOptions& options);
  Status allocate(const SessionPlan& plan);
  Status upload_constants(const SessionPlan& plan);
  Status find_constants(graph::Graph& step) const;
  Status record_steps(SessionPlan plan);
  Result<RecordedStep> record_step(const StepKind& kind, runtime::Program program, std::span<const runtime::Buffer* const> buffers);
  Status record_logits_step();
  Status write_initial_state();

  bool choose_next_step(CurrentStep& next);
  Status stage_chunk(const CurrentStep& step, VkCommandBuffer& commands);
  std::size_t fit_segments(const CallBuilder& call, double& cost_ns) const;
  Result<bool> add_step(CallBuilder& call, std::uint32_t burst);
  Status submit_call(CallBuilder& call);
  Status poll();
  void observe(const Call& call);
  Status read_profile();
  void finish(StopReason reason);
  std::uint32_t burst_limit() const;
  Status check_tokens(std::span<const std::int32_t> tokens) const;

  std::shared_ptr<LoadedModel> model_;
  runtime::Device& device_;
  SessionOptions options_;
  std::uint32_t n_ctx_ = 0;
  std::vector<std::int32_t> stop_ids_;

  runtime::Buffer state_, tokens_, mirror_, constants_, activations_, logits_, logits_activations_;
  std::vector<runtime::Buffer> caches_;
  StepPlaces places_;
  std::vector<std::pair<std::string, runtime::BufferRange>> constant_places_;
  std::vector<RecordedStep> prefill_, prefill_and_sample_;
  RecordedStep decode_;
  std::unique_ptr<RecordedStep> logits_step_;
  std::vector<std::pair<std::uint64_t, runtime::CommandList>> staging_lists_;  ///< with the value that ends their use

  std::vector<std::int32_t> history_;   ///< tokens known to the host
  std::uint32_t planned_position_ = 0;  ///< the device's position after all that is submitted
  std::uint32_t position_ = 0;          ///< the device's position as the host knows it
  std::uint32_t n_staged_ = 0;          ///< tokens of the history that are in the device's token array
  std::uint32_t tokens_planned_ = 0, tokens_wanted_ = 0, tokens_seen_ = 0;  ///< since the last append
  bool decoding_ = false;               ///< the input is in; further steps feed on their own output
  bool just_polled_ = false;            ///< by wait: the next advance need not ask the driver again
  bool state_is_stale_ = true;          ///< position and active must be staged with the next chunk
  StopReason stop_ = StopReason::kNone;
  std::atomic<bool> cancelled_{false};

  CurrentStep current_;
  const RecordedStep* profiled_ = nullptr;  ///< completed by the call in flight, times still to be read
  std::vector<ProfiledStep> profile_;
  std::array<Call, 2> calls_;
  std::size_t n_calls_ = 0;
  std::array<ExpectedToken, 4 * runtime::Device::kMaxBatches> expected_;
  std::size_t expected_head_ = 0, n_expected_ = 0;
  std::vector<std::int32_t> ready_;     ///< tokens seen but not yet taken, from ready_head_ on
  std::size_t ready_head_ = 0;
  std::uint64_t last_done_ns_ = 0;
  double observed_ratio_ = 1;           ///< observed / predicted time
  SessionStatistics statistics_;
};

}  // namespace rondo::models
