// What a session has in its cache: chunks of every length, rewinding, and appending in the middle.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/device/faults.h"
#include "tests/device/session_harness.h"

namespace rondo::tests::session_history_test {
namespace {

class SessionChunkTest : public SmallModelTest {};

/// The chunks of 8, 64 and 512 rows, with every number of rows in use around their edges, against one token at a time.
TEST_F(SessionChunkTest, EveryLengthEqualsOneTokenAtATime) {
  const Tokens input = prompt(70);
  Session chunks = session(), one_by_one = session();
  std::set<Tokens> texts;
  for (std::uint32_t length = 1; length <= input.size(); ++length) {
    const Tokens expected = continue_with(one_by_one, std::span(input).subspan(length - 1, 1), 2);
    ASSERT_EQ(expected.size(), 2u);
    texts.insert(expected);
    RONDO_ASSERT_OK(one_by_one.rewind(length));
    RONDO_ASSERT_OK(chunks.rewind(0));
    EXPECT_EQ(continue_with(chunks, std::span(input).first(length), 2), expected) << length << " tokens";
  }
  EXPECT_GT(texts.size(), 35u);  // the text depends on what came before
}

TEST_F(SessionChunkTest, LongPromptsTakeSeveralChunks) {
  const Tokens input = prompt(517);
  Session chunks = session(0, 600), parts = session(0, 600);
  const Tokens text = continue_with(chunks, input, 6);
  EXPECT_EQ(chunks.statistics().n_steps, 2u + 5u);  // 512 + 5 rows, then five decode steps
  for (std::size_t at = 0; at < input.size(); at += 47) {
    const std::size_t n = std::min<std::size_t>(47, input.size() - at);
    const Tokens made = continue_with(parts, std::span(input).subspan(at, n), at + n == input.size() ? 6 : 0);
    EXPECT_EQ(made, at + n == input.size() ? text : Tokens());
  }
}

/// Logits of the same chunks have the same bits, whatever the session did before.
std::vector<float> logits_of(Session& session, std::span<const std::int32_t> tokens) {
  Result<std::vector<float>> logits = session.wait_logits(tokens);
  EXPECT_TRUE(logits.ok()) << describe(logits.status());
  return std::move(logits).value();
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class SessionRewindTest : public SmallModelTest {};

TEST_F(SessionRewindTest, TheRestIsForgotten) {
  const Tokens input = prompt(20), more = {19, 140, 5, 77, 3};
  const Tokens history = joined(input, text_of(input, 10));
  for (const std::uint32_t position : {0u, 1u, 9u, 19u, 20u, 23u, 29u}) {
    Session rewound = session(16);
    (void)continue_with(rewound, input, 10);
    RONDO_ASSERT_OK(rewound.rewind(position));
    EXPECT_TRUE(rewound.idle());
    EXPECT_EQ(all_tokens(rewound), first_of(history, position));
    const Tokens text = continue_with(rewound, more, 8);

    Session fresh = session(16);
    (void)continue_with(fresh, first_of(history, position), 0);
    EXPECT_EQ(text, continue_with(fresh, more, 8)) << "rewound to " << position;
    EXPECT_EQ(all_tokens(rewound), all_tokens(fresh));
    // Another history has another text: the comparison can fail.
    Session other = session(16);
    (void)continue_with(other, first_of(history, position == 0 ? 5 : position / 2), 0);
    EXPECT_NE(text, continue_with(other, more, 8));
  }
}

TEST_F(SessionRewindTest, TheSameChunksHaveTheSameBits) {
  const Tokens input = prompt(20), more = prompt(12);
  Session rewound = session(), fresh = session();
  (void)continue_with(rewound, input, 10);
  RONDO_ASSERT_OK(rewound.rewind(14));
  (void)continue_with(fresh, std::span(input).first(14), 0);  // a chunk of 64 rows in either case
  const std::vector<float> expected = logits_of(fresh, more);
  EXPECT_TRUE(same_bits(logits_of(rewound, more), expected));
  RONDO_ASSERT_OK(rewound.rewind(13));
  EXPECT_FALSE(same_bits(logits_of(rewound, more), expected));
}

TEST_F(SessionRewindTest, BeyondTheCacheIsRefused) {
  Session short_one = session();
  expect_failure(short_one.rewind(1), StatusCode::kInvalidArgument, {"1", "0"});
  (void)continue_with(short_one, prompt(6), 3);
  // The last token is known but not in the cache.
  expect_failure(short_one.rewind(9), StatusCode::kInvalidArgument, {"9", "8"});
  EXPECT_EQ(short_one.tokens().size(), 9u);
  RONDO_EXPECT_OK(short_one.rewind(8));
}

TEST_F(SessionRewindTest, WhileDecodeStepsAreInFlight) {
  const Tokens input = prompt(20), more = {19, 140, 5};
  Session fresh = session(16);
  (void)continue_with(fresh, input, 0);
  const Tokens expected = continue_with(fresh, more, 30);
  for (const std::uint32_t burst : {1u, 16u}) {
    Session rewound = session(burst);
    (void)continue_with(rewound, input, 4);
    RONDO_ASSERT_OK(rewound.append({}, 100));
    Gate gate(test_runtime_device());
    RONDO_ASSERT_OK(rewound.advance());
    EXPECT_FALSE(rewound.idle());
    RONDO_ASSERT_OK(rewound.rewind(20));
    RONDO_ASSERT_OK(rewound.append(more, 30));
    RONDO_ASSERT_OK(rewound.advance());
    gate.open();
    EXPECT_EQ(take_all(rewound), expected) << "burst " << burst;
  }
}

TEST_F(SessionRewindTest, WhileAPrefillIsInFlight) {
  const Tokens input = prompt(600), more = prompt(30);  // chunks of 512 and 88 rows
  const Tokens expected = text_of(more, 12);
  Session rewound = session(16, 700);
  RONDO_ASSERT_OK(rewound.append(input, 10));
  Gate gate(test_runtime_device());
  RONDO_ASSERT_OK(rewound.advance());
  RONDO_ASSERT_OK(rewound.rewind(0));
  EXPECT_TRUE(rewound.tokens().empty());
  RONDO_ASSERT_OK(rewound.append(more, 12));
  gate.open();
  EXPECT_EQ(take_all(rewound), expected);
}

class SessionAppendTest : public SmallModelTest {};

TEST_F(SessionAppendTest, IsRefusedWhileTokensAreToCome) {
  const Tokens input = prompt(10);
  const Tokens expected = text_of(input, 50);
  Session busy = session(16);
  RONDO_ASSERT_OK(busy.append(input, 50));
  {
    Gate gate(test_runtime_device());
    RONDO_ASSERT_OK(busy.advance());
    expect_failure(busy.append(Tokens{1}, 1), StatusCode::kFailedPrecondition, {"still to come"});
    expect_failure(busy.append({}, 1), StatusCode::kFailedPrecondition, {"still to come"});
    EXPECT_FALSE(busy.wait_logits(Tokens{1}).ok());
    EXPECT_EQ(busy.wait(std::chrono::nanoseconds(0)).code(), StatusCode::kTimeout);
    EXPECT_EQ(busy.wait(std::chrono::milliseconds(1)).code(), StatusCode::kTimeout);
    std::int32_t taken[1];
    EXPECT_EQ(busy.take_tokens(taken).value(), 0u);
  }
  EXPECT_EQ(take_all(busy), expected);  // the refusals changed nothing
}

TEST_F(SessionAppendTest, MayInterruptBetweenBursts) {
  const Tokens input = prompt(10), more = {5, 6, 7};
  Session interrupted = session(3);
  RONDO_ASSERT_OK(interrupted.append(input, 1000));
  Tokens text;
  while (text.size() < 8) {
    RONDO_ASSERT_OK(interrupted.advance());
    RONDO_ASSERT_OK(interrupted.wait(std::chrono::seconds(10)));
    std::int32_t taken[64];
    const std::size_t n = interrupted.take_tokens(taken).value();
    text.insert(text.end(), taken, taken + n);
  }
  // All that is in flight has to be seen before there may be new input.
  (void)test_runtime_device().vk().vkDeviceWaitIdle(test_runtime_device().handle());
  RONDO_ASSERT_OK(interrupted.append(more, 12));
  const Tokens before = all_tokens(interrupted);
  const Tokens after = take_all(interrupted);
  ASSERT_GE(after.size(), 12u);  // tokens seen but not taken come first
  EXPECT_EQ(Tokens(after.end() - 12, after.end()), text_of(before, 12));
  EXPECT_EQ(joined(before, std::span(after).last(12)), all_tokens(interrupted));
  EXPECT_EQ(Tokens(before.end() - 3, before.end()), more);
}

TEST_F(SessionAppendTest, InputMayComeInPiecesBeforeTheFirstStep) {
  const Tokens input = prompt(24);
  Session pieces = session();
  RONDO_ASSERT_OK(pieces.append(std::span(input).first(10), 5));
  RONDO_ASSERT_OK(pieces.append(std::span(input).subspan(10), 7));
  EXPECT_EQ(take_all(pieces), text_of(input, 7));
}

TEST_F(SessionAppendTest, IdsOutsideTheVocabularyAreRefused) {
  Session unchanged = session();
  const auto n_vocab = static_cast<std::int32_t>(model().info().n_vocab);
  for (const std::int32_t id : {-1, n_vocab, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()}) {
    expect_failure(unchanged.append(Tokens{3, id, 5}, 1), StatusCode::kInvalidArgument,
                   {"token 1 is " + std::to_string(id), std::to_string(n_vocab - 1)});
    EXPECT_FALSE(unchanged.wait_logits(Tokens{id}).ok());
  }
  EXPECT_TRUE(unchanged.tokens().empty());
  EXPECT_TRUE(unchanged.idle());
  const Tokens input = {0, n_vocab - 1};
  EXPECT_EQ(continue_with(unchanged, input, 3), text_of(input, 3));
}

TEST_F(SessionAppendTest, LogitsMayComeBetweenGenerations) {
  const Tokens input = prompt(15), more = prompt(5);
  Session mixed = session(), fresh = session();
  const Tokens text = continue_with(mixed, input, 6);
  const std::vector<float> logits = logits_of(mixed, more);  // after the last token, which was not in the cache yet
  const std::vector<float> all = logits_of(fresh, joined(joined(input, text), more));
  const std::size_t n_vocab = model().info().n_vocab;
  ASSERT_EQ(logits.size(), 5 * n_vocab);
  EXPECT_LE(relative_to_range(logits, std::span(all).last(5 * n_vocab)), 1e-3);
  EXPECT_GT(relative_to_range(logits, std::span(all).subspan(15 * n_vocab, 5 * n_vocab)), 1e-3);
  EXPECT_EQ(continue_with(mixed, input, 6), text_of(joined(joined(joined(input, text), more), input), 6));
}

}  // namespace
}  // namespace rondo::tests::session_history_test
