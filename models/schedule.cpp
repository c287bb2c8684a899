#include "models/schedule.h"

#include <algorithm>

namespace rondo::models {

namespace {

constexpr std::uint32_t kNoStep = ~0u;

/// The smallest step of a role that takes `n` tokens, else its largest.
std::uint32_t find_step(std::span<const StepFacts> steps, Role role, std::uint32_t n) {
  std::uint32_t found = kNoStep;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i].role != role) continue;
    found = i;
    if (steps[i].rows >= n) break;
  }
  return found;
}

/// The step that a sequence needs next.
std::uint32_t needed_step(std::span<const StepFacts> steps, const Demand& demand) {
  if (demand.halted) return kNoStep;
  if (demand.source_left > 0) return find_step(steps, Role::kEncode, demand.source_left);
  if (demand.decoding) {
    const bool more = demand.wanted > 0 && demand.position + 1 < demand.n_ctx;
    return more ? find_step(steps, Role::kDecode, 1) : kNoStep;
  }
  if (demand.input_left == 0) return kNoStep;
  if (demand.logits) return find_step(steps, Role::kLogits, demand.input_left);
  const std::uint32_t fills = find_step(steps, Role::kPrefill, demand.input_left);
  const bool ends = demand.wanted > 0 && demand.input_left <= steps[fills].rows;
  return ends ? find_step(steps, Role::kPrefillAndSample, demand.input_left) : fills;
}

/// The next run: of the sequence whose turn it is, and of as many others as need the same step and fit into it.
bool choose_run(std::span<const StepFacts> steps, std::span<const Demand> demands, ScheduleState& state) {
  state.run = {kNoStep, 0, {}};
  for (std::uint32_t i = 0; i < demands.size(); ++i) {
    const auto sequence = static_cast<std::uint32_t>((state.first_sequence + i) % demands.size());
    const Demand& demand = demands[sequence];
    const std::uint32_t step = needed_step(steps, demand);
    if (step == kNoStep || (state.run.n_shares > 0 && step != state.run.step)) continue;
    const bool encodes = demand.source_left > 0;
    const std::uint32_t count = encodes ? demand.source_left : demand.decoding ? 1 : std::min(demand.input_left, steps[step].rows);
    state.run.step = step;
    state.run.shares[state.run.n_shares++] = {sequence, encodes ? 0 : demand.position, count};
    if (encodes || state.run.n_shares == steps[step].n_sequences) break;  // sources are encoded one by one
  }
  if (state.run.n_shares == 0) return false;
  state.first_sequence = static_cast<std::uint32_t>((state.run.shares[state.run.n_shares - 1].sequence + 1) % demands.size());
  state.next_segment = 0;
  return true;
}

/// What the sequences ask for once a run is done.
void apply(const StepRun& run, Role role, std::span<Demand> demands) {
  for (std::uint32_t i = 0; i < run.n_shares; ++i) {
    Demand& demand = demands[run.shares[i].sequence];
    if (role == Role::kEncode) {
      demand.source_left = 0;
      continue;
    }
    demand.position += run.shares[i].count;
    if (!demand.decoding) demand.input_left -= run.shares[i].count;
    if (!samples(role)) continue;
    demand.decoding = true;
    --demand.wanted;
  }
}

std::uint32_t burst_limit(const SchedulePolicy& policy, std::span<const StepFacts> steps, double ratio) {
  if (policy.burst > 0) return policy.burst;
  double step_ns = 0;
  for (const StepFacts& step : steps) {
    if (step.role != Role::kDecode) continue;
    for (const runtime::Segment& segment : step.segments) step_ns += segment.cost_ns * ratio;
  }
  return std::clamp(static_cast<std::uint32_t>(std::min(policy.auto_burst_ns / std::max(step_ns, 1.0), 1e6)), 1u, policy.max_auto_burst);
}

/// A call that is being planned.
class Planner {
 public:
  Planner(const SchedulePolicy& policy, std::span<const StepFacts> steps, std::span<const Demand> demands, const InFlight& in_flight, double ratio, PlannedCall& call)
      : policy_(policy), steps_(steps), demands_(demands_storage_.data(), demands.size()), in_flight_(in_flight), ratio_(ratio), call_(call) {
    std::copy(demands.begin(), demands.end(), demands_.begin());
    burst_ = burst_limit(policy, steps, ratio);
  }

  /// Adds what fits of the unfinished or the next step. False: the call is full, or there is nothing more to do.
  bool add_step() {
    ScheduleState next = call_.after;
    const bool fresh = !next.unfinished;
    if (fresh && !choose_run(steps_, demands_, next)) return false;
    const StepFacts& facts = steps_[next.run.step];
    const bool decodes = facts.role == Role::kDecode;
    if (fresh && !may_begin(facts.role)) return false;
    const std::size_t n_segments = fit_segments(facts, next.next_segment);
    if (n_segments == 0) return false;
    const std::size_t end = next.next_segment + n_segments;
    const bool completes = end == facts.segments.size();
    call_.batches[call_.n_batches++] = {next.run, next.next_segment, static_cast<std::uint32_t>(n_segments), fresh && !decodes, completes};
    n_segments_ += n_segments;
    n_decode_ += decodes ? 1 : 0;
    next.unfinished = !completes;
    next.next_segment = static_cast<std::uint32_t>(end);
    call_.after = next;
    if (!completes) return false;
    if (samples(facts.role)) n_sampled_ += next.run.n_shares;
    apply(next.run, facts.role, demands_);
    return decodes && !policy_.one_step;
  }

 private:
  bool may_begin(Role role) const {
    if (role == Role::kLogits && in_flight_.results_unread) return false;
    if (in_flight_.n_expected + n_sampled_ + demands_.size() > policy_.max_expected) return false;
    // A chunk of input begins a call of its own: a decode call stays a burst.
    if (role != Role::kDecode) return call_.n_batches == 0;
    return n_decode_ < burst_ && call_.n_batches < kMaxCallBatches;
  }

  /// Segments of a step, from `first` on, that fit into the call: at least one where the call is empty.
  std::size_t fit_segments(const StepFacts& facts, std::size_t first) {
    std::size_t n = 0;
    while (first + n < facts.segments.size() && n_segments_ + n < kMaxCallSegments) {
      const double cost_ns = facts.segments[first + n].cost_ns;
      if (n_segments_ + n > 0 && (call_.cost_ns + cost_ns) * ratio_ > policy_.max_call_ns) break;
      call_.cost_ns += cost_ns;
      ++n;
    }
    return n;
  }

  const SchedulePolicy& policy_;
  std::span<const StepFacts> steps_;
  std::array<Demand, kMaxSequences> demands_storage_;
  std::span<Demand> demands_;
  const InFlight& in_flight_;
  double ratio_;
  PlannedCall& call_;
  std::uint32_t burst_ = 1, n_decode_ = 0;
  std::size_t n_segments_ = 0, n_sampled_ = 0;
};

}  // namespace

PlannedCall plan_call(const SchedulePolicy& policy, std::span<const StepFacts> steps, std::span<const Demand> demands, const ScheduleState& state,
                      const InFlight& in_flight, double ratio) {
  PlannedCall call;
  call.after = state;
  if (in_flight.n_calls >= (policy.one_step ? 1 : policy.max_calls)) return call;
  // A step that is not wanted any more is dropped: without its last segment it has changed nothing that counts.
  for (std::uint32_t i = 0; state.unfinished && i < state.run.n_shares; ++i) {
    if (demands[state.run.shares[i].sequence].halted) call.after.unfinished = false;
  }
  Planner planner(policy, steps, demands, in_flight, ratio, call);
  while (planner.add_step()) {
  }
  return call;
}

void Pacing::observe(double cost_ns, double took_ns, bool exact) {
  if (cost_ns <= 0) return;
  const double ratio = std::clamp(took_ns / cost_ns, 1.0 / 64, 64.0);
  if (ratio > ratio_) ratio_ = exact ? ratio : ratio_;
  else ratio_ = 0.75 * ratio_ + 0.25 * ratio;
}

CompletionClock::Duration CompletionClock::complete(std::uint64_t submitted_ns, std::uint64_t now_ns, bool blocked) {
  // It began when the one before it ended, or when it was submitted: whichever was later. If that end is not known exactly,
  // it was earlier than we know.
  const bool after_other = last_done_ns_ > submitted_ns;
  const Duration duration{static_cast<double>(now_ns - std::max(submitted_ns, last_done_ns_)), blocked && (!after_other || last_exact_)};
  const Duration most{static_cast<double>(now_ns - submitted_ns), false};
  const bool known = !after_other || last_exact_;
  last_done_ns_ = now_ns;
  last_exact_ = blocked;
  return known ? duration : most;
}

std::uint64_t StallWatch::left_ns(std::uint64_t done, std::uint64_t first, std::uint64_t submitted_ns, std::uint64_t now_ns) {
  if (done != done_) {
    done_ = done;
    moved_at_ns_ = now_ns;
  }
  if (timeout_ns_ == 0 || done + 1 < first) return ~std::uint64_t{0};
  const std::uint64_t stalled_ns = now_ns - std::max(moved_at_ns_, submitted_ns);
  return stalled_ns >= timeout_ns_ ? 0 : timeout_ns_ - stalled_ns;
}

}  // namespace rondo::models
