// The schedule, the sequence and what paces them, without Vulkan: a device is played that runs what is planned.
#include "models/schedule.h"

#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "models/sequence.h"

namespace rondo::models::schedule_test {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Steps as a session has them: 8 and 64 rows, decode, logits of 16; each of `n_segments` segments of `cost_ns`.
struct Steps {
  explicit Steps(std::size_t n_segments = 1, double cost_ns = 1e6, std::uint32_t n_sequences = 1) : segments(n_segments, runtime::Segment{0, 1, cost_ns}) {
    for (const Role role : {Role::kPrefill, Role::kPrefillAndSample}) {
      for (const std::uint32_t rows : {8u, 64u}) facts.push_back({role, rows, n_sequences, segments});
    }
    facts.push_back({Role::kDecode, 1, n_sequences, segments});
    facts.push_back({Role::kLogits, 16, n_sequences, segments});
  }
  std::vector<runtime::Segment> segments;
  std::vector<StepFacts> facts;
};

Role role_of(const Steps& steps, const PlannedBatch& batch) { return steps.facts[batch.run.step].role; }

Demand asks(std::uint32_t position, std::uint32_t input_left, std::uint32_t wanted) {
  Demand demand;
  demand.position = position;
  demand.input_left = input_left;
  demand.wanted = wanted;
  demand.n_ctx = 1000;
  return demand;
}

Demand decodes(std::uint32_t position, std::uint32_t wanted) {
  Demand demand = asks(position, 0, wanted);
  demand.decoding = true;
  return demand;
}

PlannedCall plan(const Steps& steps, std::vector<Demand> demands, const SchedulePolicy& policy = {}, const InFlight& in_flight = {}, double ratio = 1,
                 const ScheduleState& state = {}) {
  return plan_call(policy, steps.facts, demands, state, in_flight, ratio);
}

TEST(SchedulePlanTest, NothingIsPlannedForWhoWantsNothing) {
  const Steps steps;
  EXPECT_EQ(plan(steps, {asks(0, 0, 0)}).n_batches, 0u);
  EXPECT_EQ(plan(steps, {decodes(5, 0)}).n_batches, 0u);
  Demand halted = asks(0, 20, 5);
  halted.halted = true;
  EXPECT_EQ(plan(steps, {halted}).n_batches, 0u);
  Demand full = decodes(999, 5);  // the token at 999 is there; one more has no place
  EXPECT_EQ(plan(steps, {full}).n_batches, 0u);
}

TEST(SchedulePlanTest, ChunksAreAsSmallAsTheyCanBe) {
  const Steps steps;
  const struct {
    std::uint32_t left, wanted, count;
    Role role;
    std::uint32_t rows;
  } cases[] = {{1, 1, 1, Role::kPrefillAndSample, 8},  {8, 1, 8, Role::kPrefillAndSample, 8},   {9, 1, 9, Role::kPrefillAndSample, 64},
               {64, 1, 64, Role::kPrefillAndSample, 64}, {65, 1, 64, Role::kPrefill, 64},       {8, 0, 8, Role::kPrefill, 8},
               {500, 0, 64, Role::kPrefill, 64}};
  for (const auto& wanted : cases) {
    const PlannedCall call = plan(steps, {asks(3, wanted.left, wanted.wanted)});
    ASSERT_EQ(call.n_batches, 1u) << wanted.left;  // a chunk is alone in its call
    const PlannedBatch& batch = call.batches[0];
    EXPECT_EQ(role_of(steps, batch), wanted.role);
    EXPECT_EQ(steps.facts[batch.run.step].rows, wanted.rows);
    ASSERT_EQ(batch.run.n_shares, 1u);
    EXPECT_EQ(batch.run.shares[0].position, 3u);
    EXPECT_EQ(batch.run.shares[0].count, wanted.count);
    EXPECT_TRUE(batch.stages && batch.completes);
  }
}

TEST(SchedulePlanTest, BurstsEndAtTheirLimits) {
  const Steps steps;  // a step takes 1 ms
  const auto n_steps = [&](std::uint32_t burst, std::uint32_t wanted, double ratio) {
    SchedulePolicy policy;
    policy.burst = burst;
    return plan(steps, {decodes(5, wanted)}, policy, {}, ratio).n_batches;
  };
  EXPECT_EQ(n_steps(1, 100, 1), 1u);
  EXPECT_EQ(n_steps(7, 100, 1), 7u);
  EXPECT_EQ(n_steps(7, 3, 1), 3u);     // tokens wanted
  EXPECT_EQ(n_steps(64, 100, 1), 64u);
  EXPECT_EQ(n_steps(64, 100, 10), 10u);   // 100 ms a call
  EXPECT_EQ(n_steps(64, 100, 500), 1u);   // one is always possible
  EXPECT_EQ(n_steps(0, 100, 1), 16u);     // auto: at most 16
  EXPECT_EQ(n_steps(0, 100, 5), 5u);      // 25 ms
  EXPECT_EQ(n_steps(0, 100, 64), 1u);
  SchedulePolicy many;
  many.burst = 100;
  EXPECT_EQ(plan(steps, {decodes(5, 100)}, many).n_batches, kMaxCallBatches);
  Demand nearly_full = decodes(996, 100);
  EXPECT_EQ(plan(steps, {nearly_full}).n_batches, 3u);  // tokens at 997, 998 and 999
  const PlannedCall burst = plan(steps, {decodes(5, 3)});
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(burst.batches[i].run.shares[0].position, 5 + i);
    EXPECT_FALSE(burst.batches[i].stages);
  }
}

TEST(SchedulePlanTest, CallsAndTokensInFlightAreBounded) {
  const Steps steps;
  EXPECT_GT(plan(steps, {decodes(5, 9)}, {}, {1, 0, false}).n_batches, 0u);
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, {}, {2, 0, false}).n_batches, 0u);
  SchedulePolicy policy;
  policy.max_expected = 10;
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, policy, {1, 6, false}).n_batches, 4u);
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, policy, {1, 10, false}).n_batches, 0u);
  SchedulePolicy profiled;
  profiled.one_step = true;
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, profiled).n_batches, 1u);
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, profiled, {1, 0, false}).n_batches, 0u);
}

TEST(SchedulePlanTest, LogitsAreReadBeforeTheNextOnesAreMade) {
  const Steps steps;
  Demand logits = asks(0, 40, 0);
  logits.logits = true;
  const PlannedCall call = plan(steps, {logits});
  ASSERT_EQ(call.n_batches, 1u);
  EXPECT_EQ(role_of(steps, call.batches[0]), Role::kLogits);
  EXPECT_EQ(call.batches[0].run.shares[0].count, 16u);
  EXPECT_EQ(plan(steps, {logits}, {}, {0, 0, true}).n_batches, 0u);
  EXPECT_GT(plan(steps, {decodes(5, 9)}, {}, {0, 0, true}).n_batches, 0u);  // others go on
  Steps without = steps;
  without.facts.pop_back();
  EXPECT_EQ(plan(without, {logits}).n_batches, 0u);
}

TEST(SchedulePlanTest, LongStepsAreSpreadOverCalls) {
  const Steps steps(5, 45e6);  // two of five segments fit into 100 ms
  ScheduleState state;
  std::vector<std::uint32_t> firsts;
  Demand demand = asks(0, 8, 1);
  for (int i = 0; i < 3; ++i) {
    const PlannedCall call = plan(steps, {demand}, {}, {}, 1, state);
    ASSERT_EQ(call.n_batches, 1u);
    const PlannedBatch& batch = call.batches[0];
    firsts.push_back(batch.first_segment);
    EXPECT_EQ(batch.stages, i == 0);
    EXPECT_EQ(batch.completes, i == 2);
    EXPECT_EQ(call.after.unfinished, i < 2);
    state = call.after;
  }
  EXPECT_EQ(firsts, (std::vector<std::uint32_t>{0, 2, 4}));
  // What is left of one decode step is followed by the next in the same call.
  const PlannedCall begun = plan(steps, {decodes(5, 9)});
  PlannedCall next = plan(steps, {decodes(5, 9)}, {}, {}, 1, begun.after);
  next = plan(steps, {decodes(5, 9)}, {}, {}, 1, next.after);
  SchedulePolicy burst;
  burst.burst = 4;
  EXPECT_EQ(plan(steps, {decodes(5, 9)}, burst, {}, 1, plan(steps, {decodes(5, 9)}, burst, {}, 1, begun.after).after).n_batches, 2u);
  // Nobody wants the rest any more.
  Demand halted = decodes(5, 9);
  halted.halted = true;
  const PlannedCall dropped = plan(steps, {halted}, {}, {}, 1, begun.after);
  EXPECT_EQ(dropped.n_batches, 0u);
  EXPECT_FALSE(dropped.after.unfinished);
}

TEST(SchedulePlanTest, ACallHoldsNoMoreSegmentsThanThereIsRoomFor) {
  const Steps steps(300, 1);
  const PlannedCall call = plan(steps, {decodes(5, 9)});
  ASSERT_EQ(call.n_batches, 1u);
  EXPECT_EQ(call.batches[0].n_segments, kMaxCallSegments);
  EXPECT_TRUE(call.after.unfinished);
}

/// Sequences take turns with steps of one; a step of two takes both where they need the same.
TEST(SchedulePlanTest, SeveralSequences) {
  const Steps alone;
  SchedulePolicy policy;
  policy.burst = 4;
  const PlannedCall turns = plan(alone, {decodes(5, 9), decodes(70, 9)}, policy);
  ASSERT_EQ(turns.n_batches, 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(turns.batches[i].run.shares[0].sequence, i % 2);
  const Steps both(1, 1e6, 2);
  const PlannedCall together = plan(both, {decodes(5, 9), decodes(70, 2)}, policy);
  ASSERT_EQ(together.n_batches, 4u);
  EXPECT_EQ(together.batches[0].run.n_shares, 2u);
  EXPECT_EQ(together.batches[0].run.shares[1].position, 70u);
  EXPECT_EQ(together.batches[2].run.n_shares, 1u);  // the second has what it wanted
  const PlannedCall mixed = plan(both, {asks(0, 20, 1), decodes(70, 2)}, policy);
  ASSERT_EQ(mixed.n_batches, 1u);
  EXPECT_EQ(mixed.batches[0].run.n_shares, 1u);
  EXPECT_EQ(mixed.after.first_sequence, 1u);  // it is the other's turn
}

TEST(PacingTest, SlowerAtOnceAndFasterSlowly) {
  Pacing pacing;
  EXPECT_EQ(pacing.ratio(), 1);
  pacing.observe(10e6, 100e6, true);
  EXPECT_EQ(pacing.ratio(), 10);
  pacing.observe(10e6, 100e6, true);
  EXPECT_EQ(pacing.ratio(), 10);  // predictions that were made before do not count twice
  pacing.observe(10e6, 20e6, true);
  EXPECT_EQ(pacing.ratio(), 8);
  pacing.observe(10e6, 500e6, false);  // it took at most that
  EXPECT_EQ(pacing.ratio(), 8);
  pacing.observe(10e6, 40e6, false);
  EXPECT_EQ(pacing.ratio(), 7);
  pacing.observe(0, 1e9, true);
  EXPECT_EQ(pacing.ratio(), 7);
  pacing.observe(1, 1e9, true);
  EXPECT_EQ(pacing.ratio(), 64);
}

TEST(CompletionClockTest, OnlyWaitsThatBlockedTellTheTime) {
  CompletionClock clock;
  EXPECT_TRUE(clock.complete(100, 150, true).exact);
  // Submitted before the last one ended: it began when that one did.
  const CompletionClock::Duration second = clock.complete(110, 200, true);
  EXPECT_EQ(second.took_ns, 50);
  EXPECT_TRUE(second.exact);
  // Seen late, by somebody who slept: at most that long.
  const CompletionClock::Duration late = clock.complete(210, 9000, false);
  EXPECT_EQ(late.took_ns, 8790);
  EXPECT_FALSE(late.exact);
  // Behind one whose end is not known: since its submission, at most.
  const CompletionClock::Duration behind = clock.complete(220, 9100, true);
  EXPECT_EQ(behind.took_ns, 8880);
  EXPECT_FALSE(behind.exact);
  EXPECT_TRUE(clock.complete(9200, 9300, true).exact);
}

TEST(StallWatchTest, CountsWhileOurWorkHeadsTheQueue) {
  StallWatch watch(1000);
  EXPECT_EQ(watch.left_ns(4, 5, 100, 100), 1000u);
  EXPECT_EQ(watch.left_ns(4, 5, 100, 700), 400u);
  EXPECT_EQ(watch.left_ns(4, 5, 100, 1100), 0u);
  EXPECT_EQ(watch.left_ns(5, 5, 100, 1200), 1000u);  // it moves
  EXPECT_EQ(watch.left_ns(5, 7, 100, 9000), ~0ull);  // other work is before ours
  EXPECT_EQ(watch.left_ns(5, 6, 8900, 9000), 900u);  // since it was submitted
  StallWatch off(0);
  EXPECT_EQ(off.left_ns(4, 5, 100, 1'000'000), ~0ull);
}

/// A device that makes token 7 + 3 * position % 11 at each position, and the loop of a runner around the schedule.
class Machine {
 public:
  Machine(std::uint32_t burst, std::size_t n_segments, std::vector<std::int32_t> stop_ids = {}, std::uint32_t n_ctx = 60)
      : steps_(n_segments, 60e6 / static_cast<double>(n_segments)), sequence_(n_ctx, stop_ids), stop_ids_(std::move(stop_ids)), n_ctx_(n_ctx) {
    policy_.burst = burst;
  }
  static std::int32_t token_at(std::uint32_t position) { return static_cast<std::int32_t>(7 + 3 * position % 11 + 20 * (position / 11)); }

  Sequence& sequence() { return sequence_; }
  bool cancelled = false;
  bool busy() const { return !calls_.empty() || !expected_.empty() || state_.unfinished; }
  bool can_append() const { return sequence_.ended() || (expected_.empty() && !state_.unfinished); }

  void submit() {
    while (true) {
      const Demand demand = sequence_.demand(cancelled);
      const PlannedCall call = plan_call(policy_, steps_.facts, {&demand, 1}, state_, {static_cast<std::uint32_t>(calls_.size()), expected_.size(), false}, 1);
      state_ = call.after;
      if (call.n_batches == 0) return;
      for (std::size_t i = 0; i < call.n_batches; ++i) {
        const PlannedBatch& batch = call.batches[i];
        const Share share = batch.run.shares[0];
        ++value_;
        if (batch.stages) sequence_.staged(share);
        batches_.push_back({value_, share, batch.stages, batch.completes, samples(role_of(steps_, batch))});
        if (batch.completes && sequence_.submitted(share, samples(role_of(steps_, batch)))) expected_.push_back({value_, share.position + share.count});
      }
      calls_.push_back(value_);
    }
  }
  /// The device runs one more batch.
  bool run() {
    if (batches_.empty()) return false;
    const Batch batch = batches_.front();
    batches_.pop_front();
    done_ = batch.value;
    if (batch.stages) {
      position_ = batch.share.position;
      count_ = batch.share.count;
      active_ = true;
    }
    if (!batch.completes || !active_) return true;
    EXPECT_EQ(position_, batch.share.position);  // the host knows where the device is
    EXPECT_EQ(count_, batch.share.count);
    position_ += count_;
    count_ = 1;
    if (!batch.samples || position_ >= n_ctx_) return true;
    mirror_.resize(n_ctx_);
    mirror_[position_] = token_at(position_);
    active_ = position_ + 1 < n_ctx_ && std::find(stop_ids_.begin(), stop_ids_.end(), token_at(position_)) == stop_ids_.end();
    return true;
  }
  void poll() {
    while (!calls_.empty() && calls_.front() <= done_) calls_.pop_front();
    while (!expected_.empty() && expected_.front().first <= done_) {
      const std::uint32_t position = expected_.front().second;
      expected_.pop_front();
      sequence_.add_token(position, mirror_[position]);
      if (sequence_.ended()) forget();
    }
    if (sequence_.ended() || value_ > done_ || ((!expected_.empty() || state_.unfinished) && !cancelled)) return;
    sequence_.settle(cancelled);
    if (sequence_.ended()) forget();
  }
  void forget() {
    expected_.clear();
    state_.unfinished = false;
  }
  void rewind(std::uint32_t position) {
    EXPECT_TRUE(sequence_.rewind(position).ok());
    forget();
  }
  /// Until it has ended.
  void finish() {
    for (int i = 0; !sequence_.ended(); ++i) {
      ASSERT_LT(i, 10'000) << "it never ends";
      submit();
      (void)run();
      poll();
    }
  }
  Tokens history() const { return Tokens(sequence_.history().begin(), sequence_.history().end()); }

 private:
  struct Batch {
    std::uint64_t value;
    Share share;
    bool stages, completes, samples;
  };
  Steps steps_;
  SchedulePolicy policy_;
  Sequence sequence_;
  std::vector<std::int32_t> stop_ids_;
  std::uint32_t n_ctx_;
  ScheduleState state_;
  std::deque<std::uint64_t> calls_;
  std::deque<Batch> batches_;
  std::deque<std::pair<std::uint64_t, std::uint32_t>> expected_;
  std::uint64_t value_ = 0, done_ = 0;
  std::uint32_t position_ = 0, count_ = 0;
  bool active_ = false;
  Tokens mirror_;
};

/// Input, then what the device makes after it.
Tokens text(Tokens history, std::size_t n_new) {
  for (std::size_t i = 0; i < n_new; ++i) history.push_back(Machine::token_at(static_cast<std::uint32_t>(history.size())));
  return history;
}

constexpr std::uint32_t kBursts[] = {1, 2, 3, 5, 16, 64, 0};
const Tokens kInput = {1, 2, 3, 4, 5};

TEST(ScheduledSequenceTest, EveryLengthAfterEveryInput) {
  for (const std::uint32_t burst : kBursts) {
    for (const std::size_t n_segments : {1u, 4u}) {
      for (std::uint32_t n_new = 0; n_new < 20; ++n_new) {
        Machine machine(burst, n_segments);
        ASSERT_TRUE(machine.sequence().append(kInput, n_new, false, "test").ok());
        machine.finish();
        EXPECT_EQ(machine.history(), text(kInput, n_new)) << "burst " << burst;
        EXPECT_EQ(machine.sequence().stop(), StopReason::kLength);
        EXPECT_EQ(machine.sequence().n_ready(), n_new);
      }
    }
  }
}

TEST(ScheduledSequenceTest, StopsAtEveryPlace) {
  for (const std::uint32_t burst : kBursts) {
    for (std::uint32_t place = 5; place < 40; ++place) {
      Machine machine(burst, 1, {Machine::token_at(place)});
      ASSERT_TRUE(machine.sequence().append(kInput, 50, false, "test").ok());
      machine.finish();
      EXPECT_EQ(machine.sequence().stop(), StopReason::kStopId);
      EXPECT_EQ(machine.history(), text(kInput, place - 5)) << "burst " << burst;
      // More input comes while the rest of the burst is still in flight, and goes on where the text stopped.
      ASSERT_TRUE(machine.sequence().append(Tokens{9}, 0, false, "test").ok());
      machine.finish();
      EXPECT_EQ(machine.history().size(), place + 1);
      EXPECT_EQ(machine.sequence().stop(), StopReason::kLength);
    }
  }
}

TEST(ScheduledSequenceTest, FillsEveryContext) {
  for (const std::uint32_t burst : kBursts) {
    for (std::uint32_t n_ctx = 5; n_ctx < 30; ++n_ctx) {
      Machine machine(burst, 1, {}, n_ctx);
      EXPECT_FALSE(machine.sequence().append(Tokens(n_ctx + 1), 1, false, "test").ok());
      ASSERT_TRUE(machine.sequence().append(kInput, Session::kUnlimited, false, "test").ok());
      machine.finish();
      EXPECT_EQ(machine.sequence().stop(), StopReason::kContext);
      EXPECT_EQ(machine.history(), text(kInput, n_ctx - 5));
      machine.rewind(4);
      ASSERT_TRUE(machine.sequence().append(Tokens{5}, 1, false, "test").ok());
      machine.finish();
      EXPECT_EQ(machine.history(), text(kInput, n_ctx > 5 ? 1 : 0));
    }
  }
}

/// After `n_batches` of the device's work, polled or not, something else is wanted.
template <typename Interrupt>
void at_every_place(const Interrupt& interrupt) {
  for (const std::uint32_t burst : kBursts) {
    for (const std::size_t n_segments : {1u, 4u}) {
      for (int n_batches = 0; n_batches < 40; ++n_batches) {
        for (const bool polled : {false, true}) {
          Machine machine(burst, n_segments);
          ASSERT_TRUE(machine.sequence().append(kInput, 30, false, "test").ok());
          for (int i = 0; i < n_batches && !machine.sequence().ended(); ++i) {
            machine.submit();
            (void)machine.run();
            if (polled) machine.poll();
          }
          SCOPED_TRACE(::testing::Message() << "burst " << burst << ", " << n_segments << " segments, " << n_batches << " batches, polled " << polled);
          interrupt(machine);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(ScheduledSequenceTest, CancelsAtEveryPlace) {
  at_every_place([](Machine& machine) {
    machine.cancelled = true;
    machine.finish();
    machine.cancelled = false;
    if (machine.history().empty()) return;  // the input was not in
    const std::size_t n = machine.history().size();
    ASSERT_GT(n, 5u);
    EXPECT_EQ(machine.history(), text(kInput, n - 5));
    ASSERT_TRUE(machine.sequence().append({}, 3, false, "test").ok());
    machine.finish();
    EXPECT_EQ(machine.history(), text(kInput, n - 5 + 3));
  });
}

TEST(ScheduledSequenceTest, RewindsAtEveryPlace) {
  at_every_place([](Machine& machine) {
    machine.poll();
    std::uint32_t position = 0;  // as far as is known to be in the cache
    while (position < 40 && machine.sequence().rewind(40 - position).ok() == false) ++position;
    position = 40 - position;
    machine.rewind(std::min(position, 3u));
    const Tokens kept = machine.history();
    ASSERT_TRUE(machine.sequence().append(Tokens{41, 42}, 7, false, "test").ok());
    machine.finish();
    Tokens input = kept;
    input.insert(input.end(), {41, 42});
    EXPECT_EQ(machine.history(), text(input, 7));
    EXPECT_EQ(machine.sequence().n_ready(), 7u);
  });
}

TEST(ScheduledSequenceTest, AppendsAtEveryPlace) {
  at_every_place([](Machine& machine) {
    machine.poll();
    if (!machine.can_append()) return;
    const std::size_t n = machine.history().size();
    ASSERT_TRUE(machine.sequence().append(Tokens{41}, 4, false, "test").ok());
    machine.finish();
    Tokens input = text(kInput, n - 5);
    input.push_back(41);
    EXPECT_EQ(machine.history(), text(input, 4));
  });
}

/// The prefill that only fills the cache is submitted but not done: there will be no token to continue from.
TEST(ScheduledSequenceTest, NothingToContinueFromIsKnownBeforeThePrefillIsDone) {
  Machine machine(0, 1);
  ASSERT_TRUE(machine.sequence().append(kInput, 0, false, "test").ok());
  machine.submit();
  EXPECT_FALSE(machine.sequence().append({}, 4, false, "test").ok());
  machine.finish();
  EXPECT_FALSE(machine.sequence().append({}, 4, false, "test").ok());
  EXPECT_EQ(machine.history(), kInput);
}

TEST(ScheduledSequenceTest, CancelledInputIsForgottenAndOutputStays) {
  Machine machine(0, 1);
  ASSERT_TRUE(machine.sequence().append(kInput, 3, false, "test").ok());
  machine.finish();
  ASSERT_TRUE(machine.sequence().append(Tokens{41, 42}, 3, false, "test").ok());
  machine.cancelled = true;
  machine.finish();
  EXPECT_EQ(machine.history(), text(kInput, 3));  // also the last, which is not in the cache
  EXPECT_EQ(machine.sequence().stop(), StopReason::kCancelled);
}

TEST(SequenceTest, TakesInOrderAndInParts) {
  Machine machine(0, 1);
  ASSERT_TRUE(machine.sequence().append(kInput, 5, false, "test").ok());
  machine.finish();
  Tokens taken(3);
  EXPECT_EQ(machine.sequence().take(taken), 3u);
  EXPECT_EQ(taken, (Tokens{Machine::token_at(5), Machine::token_at(6), Machine::token_at(7)}));
  EXPECT_EQ(machine.sequence().take(taken), 2u);
  EXPECT_EQ(machine.sequence().take(taken), 0u);
}

}  // namespace
}  // namespace rondo::models::schedule_test
