// Obeys the schedule: stages input, submits calls, follows the timeline, and reads what came back.
//
// Borrows a StepSet, which outlives it, and the Sequences it is given, always the same ones in the same order. Owns what is in
// flight: calls, staging lists, expected tokens. The device advances on its own (graph/ops/step_end.cpp); the host reads the
// mirror at the places that it knows a step wrote, once the timeline says that the step is done. Not thread-safe; dropping it
// while the device works is safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <rondo/session.h>

#include "models/schedule.h"
#include "models/sequence.h"
#include "models/step_set.h"
#include "runtime/call_timer.h"
#include "runtime/transfer.h"

namespace rondo::models {

class StepRunner {
 public:
  /// Errors: kOutOfMemory, kDeviceLost.
  static Result<StepRunner> create(runtime::Device& device, const StepSet& steps, const SessionOptions& options);

  /// Submits as many calls as the bounds allow; nothing more of a sequence that is `cancelled`. A failure leaves everything as
  /// it was before the call that failed.
  Status submit(std::span<Sequence> sequences, bool cancelled);
  /// Sees what is done: tells the sequences of their tokens and ends.
  Status poll(std::span<Sequence> sequences, bool cancelled);
  /// Sleeps until the next token or call is done, at most `timeout_ns`; something is in flight. Does not see it: poll does.
  /// Errors: kTimeout (which allocates nothing), kInternal (the device does nothing at all), kDeviceLost.
  Status wait(std::uint64_t timeout_ns);
  /// kInternal if, at the last poll, the device had done nothing for as long as the session allows, while the work that heads
  /// its queue is ours.
  Status check_stalled();

  /// No more of this sequence's tokens are expected, and its unfinished step is dropped: it has ended, or is rewound.
  void forget(std::uint32_t sequence);
  /// Whether tokens of a sequence are to come, or a step of it is submitted in part.
  bool awaits(std::uint32_t sequence) const;
  bool in_flight() const { return n_calls_ > 0; }
  /// Whether a call has ended, so that another may be submitted, since the last submit or the last time this was asked.
  bool take_call_ended() { return std::exchange(call_ended_, false); }

  /// What left logits, once it is done: until they are read nothing else leaves any.
  const Share* results() const { return results_state_ == ResultsState::kReady ? &results_ : nullptr; }
  void drop_results() { results_state_ = ResultsState::kNone; }

  const Pacing& pacing() const { return pacing_; }
  SessionStatistics& statistics() { return statistics_; }
  const SessionStatistics& statistics() const { return statistics_; }
  std::vector<ProfiledStep> take_profile() { return std::exchange(profile_, {}); }

 private:
  /// A step with a token to come: which timeline value announces it.
  struct ExpectedToken {
    std::uint64_t value;
    std::uint32_t sequence, position;
  };
  /// One vkQueueSubmit in flight.
  struct Call {
    std::uint64_t first = 0, last = 0;  ///< its timeline values
    double cost_ns = 0;
    std::uint64_t submitted_ns = 0;
    std::uint32_t slot = 0;             ///< of the timer
    const RecordedStep* profiled = nullptr;
  };
  enum class ResultsState : std::uint8_t { kNone, kSubmitted, kReady };
  struct Commands;

  StepRunner(runtime::Device& device, const StepSet& steps, const SessionOptions& options);
  void list_steps();
  std::uint32_t list_demands(std::span<const Sequence> sequences, bool cancelled, std::span<Demand> demands) const;
  void stage_source(const Sequence& sequence, const Share& share, runtime::CommandList& list) const;
  Status stage(std::span<const Sequence> sequences, const StepRun& run, VkCommandBuffer& commands);
  Status submit_call(std::span<Sequence> sequences, const PlannedCall& call);
  void note_submitted(std::span<Sequence> sequences, const PlannedBatch& batch, std::uint64_t value);
  std::uint64_t until_stalled_ns(std::uint64_t now);
  Status end_call(const Call& call);
  Status read_tokens(std::span<Sequence> sequences, std::uint64_t done);
  Status read_profile(const RecordedStep& step);
  std::uint64_t next_value() const;

  static constexpr std::size_t kMaxExpected = 4 * kMaxCallBatches;

  runtime::Device* device_;
  const StepSet* steps_;
  SchedulePolicy policy_;
  std::vector<const RecordedStep*> recorded_;  ///< with the facts of each
  std::vector<StepFacts> facts_;
  runtime::CallTimer timer_;                   ///< empty where the device has no timestamps
  std::vector<std::pair<std::uint64_t, runtime::CommandList>> staging_lists_;  ///< with the value that ends their use

  ScheduleState schedule_;
  Pacing pacing_;
  CompletionClock clock_;
  StallWatch stall_;
  double stall_timeout_s_;
  std::array<Call, 2> calls_;
  std::size_t n_calls_ = 0;
  std::uint32_t next_slot_ = 0;
  std::uint64_t done_ = 0;  ///< the timeline as last seen
  std::uint64_t blocked_for_ = 0, blocked_until_ns_ = 0;  ///< the value that a wait ended with, and when
  std::array<ExpectedToken, kMaxExpected> expected_;
  std::size_t expected_head_ = 0, n_expected_ = 0;
  std::array<std::uint64_t, kMaxSequences> busy_until_{};  ///< the last value with work of each sequence
  ResultsState results_state_ = ResultsState::kNone;
  Share results_{};
  std::uint64_t results_value_ = 0;
  bool call_ended_ = false;
  std::vector<ProfiledStep> profile_;
  SessionStatistics statistics_;
};

}  // namespace rondo::models
