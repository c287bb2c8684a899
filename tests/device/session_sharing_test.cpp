// Sessions side by side and on threads, cancelling, dropping with work in flight, generate(), and what create refuses.
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/device/allocation_counter.h"
#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::session_sharing_test {
namespace {

/// One round of a session's loop; its tokens go behind `text`.
void step(Session& session, Tokens& text) {
  RONDO_EXPECT_OK(session.advance());
  const Status waited = session.wait(std::chrono::seconds(10));
  EXPECT_TRUE(waited.ok() || waited.code() == StatusCode::kCancelled) << describe(waited);
  std::int32_t taken[64];
  const Result<std::size_t> n = session.take_tokens(taken);
  RONDO_ASSERT_OK(n.status());
  text.insert(text.end(), taken, taken + *n);
}

class SessionSharingTest : public SmallModelTest {};

TEST_F(SessionSharingTest, InterleavedSessionsMakeTheTextsTheyMakeAlone) {
  const Tokens inputs[] = {prompt(9), prompt(70), Tokens{140, 2, 7}};
  std::vector<Tokens> alone, texts(std::size(inputs));
  std::vector<Session> sessions;
  for (std::uint32_t i = 0; i < std::size(inputs); ++i) {
    alone.push_back(text_of(inputs[i], 40));
    sessions.push_back(session(1 + 2 * i));
    RONDO_ASSERT_OK(sessions[i].append(inputs[i], 40));
  }
  EXPECT_NE(alone[0], alone[1]);
  for (int round = 0; round < 1000; ++round) {
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      if (!sessions[i].idle()) step(sessions[i], texts[i]);
    }
  }
  EXPECT_EQ(texts, alone);
}

TEST_F(SessionSharingTest, SessionsOnThreadsMakeTheTextsTheyMakeAlone) {
  const Tokens inputs[] = {prompt(9), prompt(30)};
  Tokens alone[2], texts[2];
  for (std::size_t i = 0; i < 2; ++i) alone[i] = text_of(inputs[i], 60);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      for (int repeat = 0; repeat < 3; ++repeat) {  // sessions are made, and dropped, on threads too
        Session own = session(i == 0 ? 1 : 16);
        const Tokens text = continue_with(own, inputs[i], 60);
        if (repeat == 0 || text != texts[i]) texts[i] = text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(texts[0], alone[0]);
  EXPECT_EQ(texts[1], alone[1]);
}

class SessionCancelTest : public SmallModelTest {};

TEST_F(SessionCancelTest, FromAnotherThreadWhileDecoding) {
  const Tokens input = prompt(10), more = {8, 90, 3};
  for (const std::uint32_t burst : {1u, 16u}) {
    Session cancelled = session(burst, 4000);
    RONDO_ASSERT_OK(cancelled.append(input, Session::kUnlimited));
    Tokens text;
    while (text.size() < 20) step(cancelled, text);
    std::thread([&] { cancelled.cancel(); }).join();
    const std::uint64_t n_steps = cancelled.statistics().n_steps;
    while (!cancelled.idle()) step(cancelled, text);
    EXPECT_EQ(cancelled.statistics().n_steps, n_steps);  // nothing new was submitted
    EXPECT_EQ(cancelled.stop_reason(), StopReason::kCancelled);
    EXPECT_EQ(cancelled.wait(std::chrono::seconds(1)).code(), StatusCode::kCancelled);
    EXPECT_EQ(all_tokens(cancelled), joined(input, text));
    EXPECT_EQ(text, text_of(input, static_cast<std::uint32_t>(text.size())));
    EXPECT_EQ(continue_with(cancelled, more, 9), text_of(joined(joined(input, text), more), 9)) << "burst " << burst;
    EXPECT_EQ(cancelled.stop_reason(), StopReason::kLength);
  }
}

TEST_F(SessionCancelTest, InTheMiddleOfAPrefill) {
  const Tokens input = prompt(1100);
  SessionOptions options = without_model_stops(16, 1200);
  options.max_segment_us = 1e9;  // a chunk is one call, however slow the device
  Session cancelled = make_session(model(), options);
  RONDO_ASSERT_OK(cancelled.append(input, 5));
  {
    Gate gate(test_runtime_device());
    RONDO_ASSERT_OK(cancelled.advance());  // one chunk or two, of three
    std::thread([&] { cancelled.cancel(); }).join();
    RONDO_ASSERT_OK(cancelled.advance());
    EXPECT_FALSE(cancelled.idle());
  }
  EXPECT_EQ(take_all(cancelled), Tokens());
  EXPECT_EQ(cancelled.stop_reason(), StopReason::kCancelled);
  const std::size_t n_kept = cancelled.tokens().size();  // what is in the cache
  EXPECT_EQ(n_kept % 512, 0u);
  ASSERT_GT(n_kept, 0u);
  ASSERT_LT(n_kept, 1100u);
  EXPECT_EQ(all_tokens(cancelled), first_of(input, n_kept));
  RONDO_ASSERT_OK(cancelled.rewind(40));
  EXPECT_EQ(continue_with(cancelled, std::span(input).subspan(40, 30), 5), text_of(std::span(input).first(70), 5));
}

TEST_F(SessionCancelTest, BetweenTheSegmentsOfAStep) {
  const Tokens input = prompt(30);
  SessionOptions options = without_model_stops(1);
  options.max_segment_us = 1;
  Session cancelled = make_session(model(), options);
  Tokens text;
  RONDO_ASSERT_OK(cancelled.append(input, 50));
  for (int i = 0; i < 3; ++i) step(cancelled, text);
  cancelled.cancel();
  while (!cancelled.idle()) step(cancelled, text);
  EXPECT_EQ(all_tokens(cancelled), joined(input, text));
  EXPECT_EQ(continue_with(cancelled, {}, 9), Tokens(text_of(joined(input, text), 9)));
}

TEST_F(SessionCancelTest, BeforeTheFirstStep) {
  const Tokens input = prompt(12);
  Session cancelled = session();
  RONDO_ASSERT_OK(cancelled.append(input, 5));
  cancelled.cancel();
  EXPECT_EQ(take_all(cancelled), Tokens());
  EXPECT_EQ(cancelled.stop_reason(), StopReason::kCancelled);
  EXPECT_EQ(cancelled.statistics().n_steps, 0u);
  EXPECT_EQ(continue_with(cancelled, input, 5), text_of(input, 5));
}

TEST_F(SessionCancelTest, APendingCancelIsForgottenByAppend) {
  const Tokens input = prompt(12);
  Session cancelled = session();
  cancelled.cancel();
  EXPECT_EQ(continue_with(cancelled, input, 5), text_of(input, 5));
  EXPECT_EQ(cancelled.stop_reason(), StopReason::kLength);
}

class SessionDropTest : public SmallModelTest {};

TEST_F(SessionDropTest, WithWorkInFlight) {
  const Tokens input = prompt(40);
  const Tokens expected = text_of(input, 8);
  drain(test_runtime_device());  // what earlier sessions left is not counted below
  {
    Gate gate(test_runtime_device());
    {
      Session dropped = session(16);
      RONDO_ASSERT_OK(dropped.append(input, 100));
      RONDO_ASSERT_OK(dropped.advance());
      const Hooks<DestroyBuffer, WaitSemaphores> hooks(test_runtime_device());
      { const Session gone = std::move(dropped); }
      EXPECT_EQ(DestroyBuffer::n_calls + WaitSemaphores::n_calls, 0u);  // neither too early nor by waiting
    }
  }
  drain(test_runtime_device());
  EXPECT_EQ(text_of(input, 8), expected);
}

TEST_F(SessionDropTest, TheModelMayGoBeforeItsSessions) {
  const Tokens input = prompt(12);
  const Tokens expected = text_of(input, 10);
  const std::string bytes = SmallLlama().build();
  std::optional<Model> own(load_model_from(bytes));
  Session orphan = make_session(*own, without_model_stops());
  (void)continue_with(orphan, std::span(input).first(5), 0);
  own.reset();
  drain(test_runtime_device());
  EXPECT_EQ(continue_with(orphan, std::span(input).subspan(5), 10), expected);
}

TEST_F(SessionDropTest, SessionsMayBeMoved) {
  const Tokens input = prompt(12);
  Session first = session(), second = session();
  RONDO_ASSERT_OK(first.append(input, 10));
  RONDO_ASSERT_OK(first.advance());
  second = std::move(first);
  EXPECT_EQ(take_all(second), text_of(input, 10));
}

class GenerateTest : public TinyModelTest {};

TEST_F(GenerateTest, TokensAndTextAreThoseOfTheSession) {
  const Tokens input = prompt(8);
  Session own = session(16);
  std::string streamed;
  const Result<Generation> generation = own.generate(std::span<const std::int32_t>(input), 30, [&](std::string_view text) {
    streamed += text;
    return true;
  });
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(generation->prompt_tokens, input);
  EXPECT_EQ(generation->tokens, text_of(input, 30));
  EXPECT_EQ(generation->stop, StopReason::kLength);
  EXPECT_EQ(generation->text, streamed);
  EXPECT_FALSE(streamed.empty());
}

TEST_F(GenerateTest, FalseCancelsAndIsTheLastCall) {
  const Tokens input = prompt(8);
  Session own = session(1, 2000);
  int n_calls = 0;
  const Result<Generation> generation = own.generate(std::span<const std::int32_t>(input), Session::kUnlimited, [&](std::string_view) { return ++n_calls < 3; });
  RONDO_ASSERT_OK(generation.status());
  EXPECT_EQ(n_calls, 3);
  EXPECT_EQ(generation->stop, StopReason::kCancelled);
  EXPECT_TRUE(own.idle());
  EXPECT_EQ(all_tokens(own), joined(input, generation->tokens));
  // The session goes on as if it had been asked for just these tokens.
  const Tokens more = {5, 6};
  EXPECT_EQ(continue_with(own, more, 5), text_of(joined(joined(input, generation->tokens), more), 5));
}

TEST_F(GenerateTest, RefusalsArriveUnchanged) {
  Session own = session();
  expect_failure(own.generate(std::span<const std::int32_t>(), 5).status(), StatusCode::kInvalidArgument, {"no token"});
  const Tokens outside = {99'999};
  expect_failure(own.generate(std::span<const std::int32_t>(outside), 5).status(), StatusCode::kInvalidArgument, {"99999"});
  EXPECT_TRUE(own.tokens().empty());
}

class SessionOptionsTest : public TinyModelTest {};

TEST_F(SessionOptionsTest, BadOnesAreRefused) {
  SessionOptions options;
  options.burst = 65;
  expect_failure(Session::create(model(), options).status(), StatusCode::kInvalidArgument, {"65", "64"});
  for (const double us : {0.0, -1.0, std::nan("")}) {
    options = {};
    options.max_segment_us = us;
    expect_failure(Session::create(model(), options).status(), StatusCode::kInvalidArgument, {"max_segment_us"});
  }
}

/// Said before anything large is allocated, on the device or on the host.
TEST_F(SessionOptionsTest, AContextThatDoesNotFitIsRefusedWithNumbers) {
  for (const std::uint32_t n_ctx : {1u << 24, 1u << 30, std::numeric_limits<std::uint32_t>::max()}) {
    SessionOptions options;
    options.n_ctx = n_ctx;
    const Hooks<AllocateMemory> hooks(test_runtime_device());
    const AllocationCounter counter;
    const Result<Session> refused = Session::create(model(), options);
    EXPECT_LT(counter.largest_bytes, 1u << 20);
    EXPECT_EQ(AllocateMemory::n_calls, 0u);
    ASSERT_FALSE(refused.ok());
    const StatusCode code = refused.status().code();
    EXPECT_TRUE(code == StatusCode::kOutOfMemory || code == StatusCode::kUnsupported) << describe(refused.status());
    expect_failure(refused.status(), code, {std::to_string(n_ctx), "MB", "ask for a smaller context"});
  }
}

TEST_F(SessionOptionsTest, StatisticsTellWhatIsThere) {
  const Session small = session(0, 64), large = session(0, 128);
  EXPECT_EQ(large.statistics().kv_bytes, 2 * small.statistics().kv_bytes);
  EXPECT_GT(small.statistics().activation_bytes, 0u);
  EXPECT_GT(small.statistics().dispatches_per_decode_step, 0u);
  EXPECT_EQ(small.statistics().segments_per_decode_step, 1u);
  EXPECT_EQ(small.statistics().n_steps, 0u);
}

}  // namespace
}  // namespace rondo::tests::session_sharing_test
