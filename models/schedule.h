// What to submit next: pure functions from plain structs to plain structs, without Vulkan.
//
// A step is one run of a recording; it takes some tokens of one or more sequences (shares). A call is one vkQueueSubmit: batches,
// each of them segments of one step. Whoever obeys a PlannedCall (models/step_runner.h) passes its `after` to the next plan, so
// a call that could not be submitted is as if never planned. Steps of any number of sequences up to kMaxSequences are planned;
// sessions have one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "models/role.h"
#include "runtime/program.h"

namespace rondo::models {

constexpr std::size_t kMaxSequences = 4, kMaxCallBatches = 64, kMaxCallSegments = 256;

/// A recorded step, as far as the schedule is concerned.
struct StepFacts {
  Role role = Role::kPrefill;
  std::uint32_t rows = 1;        ///< most tokens that it takes of a sequence
  std::uint32_t n_sequences = 1; ///< most sequences that it takes tokens of
  std::span<const runtime::Segment> segments;
};

/// What a sequence asks for, after all that is submitted.
struct Demand {
  std::uint32_t source_left = 0; ///< tokens of a source to encode before all else
  std::uint32_t position = 0;    ///< tokens in the cache
  std::uint32_t input_left = 0;  ///< tokens to take
  std::uint32_t wanted = 0;      ///< tokens to make
  std::uint32_t n_ctx = 0;
  bool decoding = false;         ///< its last token is where the next decode step finds it
  bool logits = false;           ///< of its input
  bool halted = false;           ///< stopped or cancelled: nothing of it is submitted any more
};

/// The tokens of one sequence that a step takes; of its source, from position 0 on, where the step encodes.
struct Share {
  std::uint32_t sequence, position, count;
};
struct StepRun {
  std::uint32_t step;  ///< index of its facts
  std::uint32_t n_shares;
  std::array<Share, kMaxSequences> shares;
};

/// What a plan leaves to the next one.
struct ScheduleState {
  bool unfinished = false;         ///< `run` is submitted up to segment `next_segment`
  StepRun run{};
  std::uint32_t next_segment = 0;
  std::uint32_t first_sequence = 0;  ///< whose turn it is
};

/// Segments of one step; together they signal a value.
struct PlannedBatch {
  StepRun run;
  std::uint32_t first_segment, n_segments;
  bool stages;     ///< position, count and tokens of its shares are put into the step state before it
  bool completes;  ///< with its last segment
};
struct PlannedCall {
  std::array<PlannedBatch, kMaxCallBatches> batches;  ///< valid up to n_batches
  std::size_t n_batches = 0;  ///< 0: there is nothing to submit now
  double cost_ns = 0;         ///< predicted, before the observed ratio is applied
  ScheduleState after;
};

/// Bounds on calls.
struct SchedulePolicy {
  std::uint32_t burst = 0;          ///< most decode steps of a call; 0: as many as fit auto_burst_ns, up to max_auto_burst
  std::uint32_t max_auto_burst = 16;
  std::uint32_t max_calls = 2;      ///< in flight
  std::size_t max_expected = 256;   ///< tokens in flight
  double max_call_ns = 100e6;       ///< most predicted time of a call; one segment may be more
  double auto_burst_ns = 25e6;
  bool one_step = false;            ///< one step a call and in flight: its times are read before the next overwrites them
};

/// What is submitted and not yet seen to be done.
struct InFlight {
  std::uint32_t n_calls = 0;
  std::size_t n_expected = 0;    ///< tokens
  bool results_unread = false;   ///< a completed step left logits that the host has not copied
};

/// The next call. Steps of a role come smallest `rows` first. `ratio`: observed / predicted time, see Pacing.
PlannedCall plan_call(const SchedulePolicy& policy, std::span<const StepFacts> steps, std::span<const Demand> demands, const ScheduleState& state,
                      const InFlight& in_flight, double ratio);

/// How far off predicted times are: a ratio that what is observed corrects.
class Pacing {
 public:
  /// Observed / predicted time, from 1/64 to 64.
  double ratio() const { return ratio_; }
  /// Work of a predicted `cost_ns` took `took_ns`; where that is only known to be the most it can have taken, not `exact`:
  /// then it may only correct downwards. Slower is believed at once, because a watchdog may be waiting; faster slowly.
  void observe(double cost_ns, double took_ns, bool exact);

 private:
  double ratio_ = 1;
};

/// Finds out from the host's clock what calls take, on devices without timestamps: a completion has a time only where a
/// blocked wait ended with it; else it is known to have been before it was seen.
class CompletionClock {
 public:
  struct Duration {
    double took_ns;
    bool exact;
  };
  /// A call that was submitted at `submitted_ns` is seen to be done at `now_ns`, `blocked` if a wait for it ended just then.
  Duration complete(std::uint64_t submitted_ns, std::uint64_t now_ns, bool blocked);

 private:
  std::uint64_t last_done_ns_ = 0;
  bool last_exact_ = true;
};

/// Tells a device that does nothing from one that is busy.
class StallWatch {
 public:
  /// 0: never stalled.
  explicit StallWatch(std::uint64_t timeout_ns) : timeout_ns_(timeout_ns) {}
  /// The timeline is at `done`, our first call in flight begins with value `first` and was submitted at `submitted_ns`.
  /// Nanoseconds until the device counts as stalled, 0 if it does; ~0 while other work is before ours, or without a timeout.
  std::uint64_t left_ns(std::uint64_t done, std::uint64_t first, std::uint64_t submitted_ns, std::uint64_t now_ns);

 private:
  std::uint64_t timeout_ns_;
  std::uint64_t done_ = ~std::uint64_t{0}, moved_at_ns_ = 0;
};

}  // namespace rondo::models
