// What calls in any order mean: waiting, cancelling, callbacks, empty handles, devices that stall, and what pacing learns.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "models/session_state.h"
#include "tests/device/allocation_counter.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"
#include "tests/support/cpu_timer.h"

namespace rondo::tests::session_calls_test {
namespace {

using namespace std::chrono_literals;

class SessionCallsTest : public SmallModelTest {
 protected:
  /// A session that has made tokens which nobody took, and more of which are in flight.
  static Session half_done(std::uint32_t n_new) {
    Session session = SessionCallsTest::session(4);
    RONDO_EXPECT_OK(session.append(prompt(10), n_new));
    while (session.tokens().size() < 14) {
      RONDO_EXPECT_OK(session.advance());
      RONDO_EXPECT_OK(session.wait(10s));
    }
    return session;
  }
};

/// The prefill is submitted, not done: it was taken for one token to continue from, and the session was never idle again.
TEST_F(SessionCallsTest, NothingToContinueFromIsKnownWhileThePrefillRuns) {
  const Tokens input = prompt(20);
  Session filled = session();
  RONDO_ASSERT_OK(filled.append(input, 0));
  {
    Gate gate(test_runtime_device());
    RONDO_ASSERT_OK(filled.advance());
    expect_failure(filled.append({}, 4), StatusCode::kInvalidArgument, {"append", "no token to continue from"});
    expect_failure(filled.generate(std::span<const std::int32_t>(), 4).status(), StatusCode::kInvalidArgument, {"generate", "no token to continue from"});
  }
  EXPECT_EQ(take_all(filled), Tokens());
  EXPECT_EQ(filled.stop_reason(), StopReason::kLength);
  const Tokens more = {7, 8};
  EXPECT_EQ(continue_with(filled, more, 4), text_of(joined(input, more), 4));
}

TEST_F(SessionCallsTest, WaitTellsOfTheSameTokensOnce) {
  Session finished = half_done(6);
  for (int i = 0; i < 1000 && finished.stop_reason() == StopReason::kNone; ++i) {
    RONDO_ASSERT_OK(finished.advance());
    (void)finished.wait(10s);
  }
  ASSERT_EQ(finished.stop_reason(), StopReason::kLength);
  int n_ok = 0;
  while (n_ok < 10 && finished.wait(10s).ok()) ++n_ok;
  EXPECT_LE(n_ok, 2);
  EXPECT_EQ(finished.wait(10s).code(), StatusCode::kTimeout);  // at once: nothing is in flight
  EXPECT_FALSE(finished.idle());
  std::int32_t taken[4];
  EXPECT_EQ(finished.take_tokens(taken).value(), 4u);
  RONDO_EXPECT_OK(finished.wait(10s));  // of the others
  EXPECT_EQ(finished.take_tokens(taken).value(), 2u);
  EXPECT_TRUE(finished.idle());
}

TEST_F(SessionCallsTest, WaitEndsAfterACancelThoughTokensAreUntaken) {
  Session cancelled = half_done(1000);
  cancelled.cancel();
  int n_ok = 0;
  Status waited;
  while (n_ok < 200 && (waited = cancelled.wait(10s)).ok()) ++n_ok;
  EXPECT_LE(n_ok, 140);  // once for each token in flight, at most
  EXPECT_EQ(waited.code(), StatusCode::kCancelled);
  EXPECT_EQ(cancelled.stop_reason(), StopReason::kCancelled);
  const std::size_t n_made = cancelled.tokens().size() - 10;
  EXPECT_EQ(take_all(cancelled).size(), n_made);
}

TEST_F(SessionCallsTest, TimeoutsAllocateNothing) {
  Session waiting = session();
  RONDO_ASSERT_OK(waiting.append(prompt(10), 5));
  Gate gate(test_runtime_device());
  RONDO_ASSERT_OK(waiting.advance());
  int n_timeouts = 0;
  const AllocationCounter counter;
  for (int i = 0; i < 20; ++i) n_timeouts += waiting.wait(i % 2 ? 100us : 0us).code() == StatusCode::kTimeout;
  const std::uint64_t n_own_allocations = counter.n_own_allocations;  // validation layers have theirs
  EXPECT_EQ(n_timeouts, 20);
  EXPECT_EQ(n_own_allocations, 0u);
}

TEST_F(SessionCallsTest, ACancelJustBeforeABlockingCallHolds) {
  const Tokens input = prompt(10);
  Session cancelled = session();
  cancelled.cancel();
  const Result<Generation> generation = cancelled.generate(std::span<const std::int32_t>(input), 5);
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(generation->stop, StopReason::kCancelled);
  EXPECT_TRUE(generation->tokens.empty());
  EXPECT_TRUE(cancelled.tokens().empty());
  EXPECT_EQ(cancelled.generate(std::span<const std::int32_t>(input), 5)->tokens, text_of(input, 5));  // for one call only
  cancelled.cancel();
  expect_failure(cancelled.wait_logits(input).status(), StatusCode::kCancelled, {"wait_logits"});
  RONDO_EXPECT_OK(cancelled.wait_logits(input).status());
  // The cancel of a loop has had its effect.
  RONDO_ASSERT_OK(cancelled.append(input, 5));
  cancelled.cancel();
  (void)take_all(cancelled);
  EXPECT_EQ(cancelled.stop_reason(), StopReason::kCancelled);
  EXPECT_EQ(cancelled.generate(std::span<const std::int32_t>(input), 5)->tokens.size(), 5u);
}

TEST_F(SessionCallsTest, GenerateTakesNoTokensOfBefore) {
  const Tokens more = {5, 6};
  Session session = half_done(6);
  for (int i = 0; i < 1000 && session.stop_reason() == StopReason::kNone; ++i) {
    RONDO_ASSERT_OK(session.advance());
    (void)session.wait(10s);
  }
  const Tokens before = all_tokens(session);
  const Result<Generation> generation = session.generate(std::span<const std::int32_t>(more), 5);
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(generation->tokens, text_of(joined(before, more), 5));
  EXPECT_TRUE(session.idle());
}

TEST_F(SessionCallsTest, OnTextMayNotChangeTheSession) {
  const Tokens input = prompt(10);
  Session own = session(1);
  int n_calls = 0;
  const Result<Generation> generation = own.generate(std::span<const std::int32_t>(input), 30, [&](std::string_view) {
    std::int32_t taken[4];
    const std::pair<const char*, Status> refused[] = {{"append", own.append(input, 1)},
                                                      {"advance", own.advance()},
                                                      {"take_tokens", own.take_tokens(taken).status()},
                                                      {"wait", own.wait(1s)},
                                                      {"rewind", own.rewind(0)},
                                                      {"wait_logits", own.wait_logits(input).status()},
                                                      {"generate", own.generate("text", 1).status()}};
    for (const auto& [name, status] : refused) expect_failure(status, StatusCode::kFailedPrecondition, {name, "on_text"});
    EXPECT_GT(own.tokens().size(), input.size());
    ++n_calls;
    return true;
  });
  RONDO_ASSERT_OK(generation.status());
  EXPECT_GT(n_calls, 0);
  EXPECT_EQ(generation->tokens, text_of(input, 30));
  RONDO_EXPECT_OK(own.rewind(0));  // afterwards it may
}

TEST_F(SessionCallsTest, OnTextMayDestroyTheSession) {
  const Tokens input = prompt(10);
  std::optional<Session> own(session(1, 2000));
  int n_calls = 0;
  const Result<Generation> generation = own->generate(std::span<const std::int32_t>(input), Session::kUnlimited, [&](std::string_view) {
    ++n_calls;
    own.reset();
    return true;
  });
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(n_calls, 1);
  EXPECT_EQ(generation->stop, StopReason::kCancelled);
  EXPECT_EQ(generation->tokens, text_of(input, static_cast<std::uint32_t>(generation->tokens.size())));
}

TEST_F(SessionCallsTest, OnTextMayMoveTheSession) {
  const Tokens input = prompt(10);
  Session first = session();
  std::optional<Session> second;
  const Result<Generation> generation = first.generate(std::span<const std::int32_t>(input), 30, [&](std::string_view) {
    if (!second) second.emplace(std::move(first));
    return true;
  });
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(generation->tokens, text_of(input, 30));
  ASSERT_TRUE(second);
  EXPECT_EQ(all_tokens(*second), joined(input, generation->tokens));
}

TEST_F(SessionCallsTest, AMovedFromSessionRefusesEverything) {
  Session gone = session();
  const Session other = std::move(gone);
  const Tokens input = prompt(3);
  std::int32_t taken[4];
  const std::pair<const char*, Status> refused[] = {{"append", gone.append(input, 1)},
                                                    {"advance", gone.advance()},
                                                    {"take_tokens", gone.take_tokens(taken).status()},
                                                    {"wait", gone.wait(1s)},
                                                    {"rewind", gone.rewind(0)},
                                                    {"wait_logits", gone.wait_logits(input).status()},
                                                    {"generate", gone.generate("text", 1).status()},
                                                    {"generate", gone.generate(std::span<const std::int32_t>(input), 1).status()}};
  for (const auto& [name, status] : refused) expect_failure(status, StatusCode::kFailedPrecondition, {name, "moved from"});
  gone.cancel();
  EXPECT_TRUE(gone.idle());
  EXPECT_EQ(gone.stop_reason(), StopReason::kNone);
  EXPECT_TRUE(gone.tokens().empty());
  EXPECT_EQ(gone.n_ctx(), 0u);
  EXPECT_EQ(gone.statistics().n_steps, 0u);
  EXPECT_TRUE(gone.take_profile().empty());
}

TEST_F(SessionCallsTest, StopIdsOutsideTheVocabularyAreRefused) {
  for (const std::int32_t id : {-1, static_cast<std::int32_t>(model().info().n_vocab)}) {
    SessionOptions options;
    options.stop_ids = {5, id};
    expect_failure(Session::create(model(), options).status(), StatusCode::kInvalidArgument, {"stop id 1 is " + std::to_string(id), "299"});
  }
}

TEST_F(SessionCallsTest, WaitLogitsSpeaksOfItself) {
  Session busy = session(4, 100);
  expect_failure(busy.wait_logits(prompt(101)).status(), StatusCode::kInvalidArgument, {"wait_logits", "101", "100"});
  RONDO_ASSERT_OK(busy.append(prompt(10), 50));
  Gate gate(test_runtime_device());
  RONDO_ASSERT_OK(busy.advance());
  expect_failure(busy.wait_logits(prompt(1)).status(), StatusCode::kFailedPrecondition, {"wait_logits"});
}

TEST_F(SessionCallsTest, AFailedSubmissionChangesNothing) {
  const Tokens input = prompt(70);
  Session retrying = session(4);
  RONDO_ASSERT_OK(retrying.append(input, 20));
  Tokens text;
  for (int i = 0; !retrying.idle(); ++i) {
    ASSERT_LT(i, 1000);
    {
      const Hooks<QueueSubmit> hooks(test_runtime_device());
      QueueSubmit::fail(VK_ERROR_OUT_OF_HOST_MEMORY);
      const Status failed = retrying.advance();
      EXPECT_TRUE(failed.ok() || failed.code() == StatusCode::kOutOfMemory) << describe(failed);
    }
    RONDO_ASSERT_OK(retrying.advance());
    RONDO_ASSERT_OK(retrying.wait(10s));
    std::int32_t taken[64];
    const std::size_t n = retrying.take_tokens(taken).value();
    text.insert(text.end(), taken, taken + n);
  }
  EXPECT_EQ(text, text_of(input, 20));
}

TEST_F(SessionCallsTest, ADeviceThatDoesNothingIsToldOf) {
  const Tokens input = prompt(10);
  SessionOptions options = without_model_stops(4);
  options.stall_timeout_ms = 400;
  Session stalled = make_session(model(), options);
  options.stall_timeout_ms = 0;
  Session patient = make_session(model(), options);
  (void)continue_with(patient, input, 1);
  (void)continue_with(stalled, input, 1);
  {
    Gate gate(test_runtime_device());
    RONDO_ASSERT_OK(stalled.append({}, 20));
    RONDO_ASSERT_OK(stalled.advance());
    EXPECT_EQ(stalled.wait(1ms).code(), StatusCode::kTimeout);
    const auto begin = std::chrono::steady_clock::now();
    expect_failure(stalled.wait(60s), StatusCode::kInternal, {"finished nothing for 0.4 s", "stall_timeout_ms"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    EXPECT_EQ(stalled.advance().code(), StatusCode::kInternal);
    RONDO_ASSERT_OK(patient.append({}, 20));
    RONDO_ASSERT_OK(patient.advance());
    EXPECT_EQ(patient.wait(100ms).code(), StatusCode::kTimeout);
    RONDO_EXPECT_OK(patient.advance());
  }
  EXPECT_EQ(take_all(stalled), take_all(patient));  // it was only slow
}

/// As Mesa's drivers are on devices that Mesa's shims make up: every wait ends at once, and the timeline stands still.
TEST_F(SessionCallsTest, ADriverThatRunsNothingIsToldOfWithoutABusyLoop) {
  SessionOptions options = without_model_stops(4);
  options.stall_timeout_ms = 500;
  Session stalled = make_session(model(), options);
  (void)continue_with(stalled, prompt(10), 1);
  {
    Gate gate(test_runtime_device());
    const Hooks<WaitSemaphores> hooks(test_runtime_device());
    WaitSemaphores::fail(VK_SUCCESS, 0, WaitSemaphores::kForever);
    RONDO_ASSERT_OK(stalled.append({}, 20));
    const testing::CpuTimer timer;
    Status status;
    while (status.ok() || status.code() == StatusCode::kTimeout) {
      status = stalled.advance();
      if (status.ok()) status = stalled.wait(10s);
    }
    expect_failure(status, StatusCode::kInternal, {"finished nothing for 0.5 s"});
    EXPECT_LT(timer.seconds(), 0.25);
    EXPECT_LT(WaitSemaphores::n_calls, 200u);
  }
  EXPECT_EQ(take_all(stalled).size(), 20u);  // it was only slow
}

/// Observed / predicted time of steps, after tokens for which a loop looks once a frame, or as soon as there is something.
double ratio_after(Session& session, std::chrono::milliseconds frame) {
  RONDO_EXPECT_OK(session.append(made_up_tokens(10, 300), 16));
  std::int32_t taken[64];
  while (!session.idle()) {
    RONDO_EXPECT_OK(session.advance());
    if (frame.count() > 0) {
      std::this_thread::sleep_for(frame);
    } else {
      RONDO_EXPECT_OK(session.wait(10s));
    }
    EXPECT_TRUE(session.take_tokens(taken).ok());
  }
  return session.internal().pacing().ratio();
}

class SessionPacingTest : public ::testing::TestWithParam<bool> {};

TEST_P(SessionPacingTest, FramesAreNotMistakenForWork) {
  // Predictions so slow that ratios are far below their bound.
  Device device(make_second_device(test_runtime_device(), [](runtime::Device::Parts& parts) {
    if (!GetParam()) parts.plan.caps.timestamp_bits = 0;
    parts.plan.caps.bytes_per_s /= 300;
    parts.plan.caps.flops_per_s /= 300;
  }));
  if (GetParam() && device.internal().caps().timestamp_bits == 0) GTEST_SKIP() << "the device has no timestamps";
  const std::string bytes = SmallLlama().build();
  Result<Model> model = Model::create(device, memory_source(std::as_bytes(std::span(bytes)), "model.gguf"));
  RONDO_ASSERT_OK(model.status());
  RONDO_ASSERT_OK(model->wait_loaded());
  double waiting = 0, in_frames = 1e9;  // a busy machine makes some loops slow
  for (int i = 0; i < 3; ++i) {
    Session session = make_session(*model, without_model_stops(1));
    (void)ratio_after(session, 0ms);
    waiting = std::max(waiting, ratio_after(session, 0ms));
    in_frames = std::min(in_frames, ratio_after(session, 50ms));
  }
  EXPECT_LT(in_frames, std::max(6 * waiting, 0.2)) << waiting;  // a frame would be some 0.5
}

INSTANTIATE_TEST_SUITE_P(Timestamps, SessionPacingTest, ::testing::Bool(), [](const auto& each) { return std::string(each.param ? "With" : "Without"); });

}  // namespace
}  // namespace rondo::tests::session_calls_test
