// How a session ends a generation: stop ids, limits, a full context; and how it goes on afterwards.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/device/session_harness.h"

namespace rondo::tests::session_stop_test {
namespace {

class SessionStopTest : public SmallModelTest {
 protected:
  static constexpr std::uint32_t kPlaces = 18;  // the prefill's token, a burst of 16, and the beginning of the next

  /// A prompt whose first kPlaces generated tokens all differ, so that each can be a stop id of its own place.
  static void SetUpTestSuite() {
    SmallModelTest::SetUpTestSuite();
    Session search = session();
    const Tokens candidates = prompt(200);
    for (std::size_t i = 0; i + 3 <= candidates.size(); i += 3) {
      input_.assign(candidates.begin() + static_cast<std::ptrdiff_t>(i), candidates.begin() + static_cast<std::ptrdiff_t>(i + 3));
      EXPECT_TRUE(search.rewind(0).ok());
      text_ = continue_with(search, input_, kPlaces);
      if (std::set<std::int32_t>(text_.begin(), text_.end()).size() == kPlaces) return;
    }
    ADD_FAILURE() << "no prompt makes " << kPlaces << " different tokens";
  }
  static inline Tokens input_, text_;
};

TEST_F(SessionStopTest, AtEachPlaceOfABurst) {
  const Tokens input = input_, text = text_;
  ASSERT_EQ(text.size(), kPlaces);
  const Tokens more = {7, 201, 44};
  for (std::uint32_t place = 0; place < kPlaces; ++place) {
    Tokens after[2];
    for (const std::uint32_t burst : {1u, 16u}) {
      SessionOptions options = without_model_stops(burst);
      options.stop_ids = {text[place]};
      Session stopped = make_session(model(), options);
      EXPECT_EQ(continue_with(stopped, input, 40), first_of(text, place)) << "burst " << burst;
      EXPECT_EQ(stopped.stop_reason(), StopReason::kStopId);
      EXPECT_EQ(all_tokens(stopped), joined(input, first_of(text, place)));  // the stop id is not kept
      after[burst == 16] = continue_with(stopped, more, 9);
    }
    EXPECT_EQ(after[0], after[1]) << "after a stop at place " << place;
    // As if the text had never gone on to its stop id.
    Session reference = session();
    (void)continue_with(reference, joined(input, first_of(text, place)), 0);
    const Tokens expected = continue_with(reference, more, 9);
    const auto end = std::find(expected.begin(), expected.end(), text[place]);
    EXPECT_EQ(after[0], Tokens(expected.begin(), end));
  }
}

TEST_F(SessionStopTest, TheStopIdMayBeAppendedByTheCaller) {
  const Tokens input = input_, text = text_;
  SessionOptions options = without_model_stops(16);
  options.stop_ids = {text[5]};
  Session stopped = make_session(model(), options);
  (void)continue_with(stopped, input, 40);
  EXPECT_EQ(continue_with(stopped, Tokens{text[5]}, 10), Tokens(text.begin() + 6, text.begin() + 16));
}

TEST_F(SessionStopTest, SixteenIdsAndNotOneMore) {
  const Tokens input = input_, text = text_;
  SessionOptions options = without_model_stops(16);
  for (std::int32_t id = 0; options.stop_ids.size() < 15; ++id) {
    if (std::find(text.begin(), text.end(), id) == text.end()) options.stop_ids.push_back(id);
  }
  options.stop_ids.push_back(text[9]);  // the last of 16
  Session stopped = make_session(model(), options);
  EXPECT_EQ(continue_with(stopped, input, 40), first_of(text, 9));
  options.stop_ids.push_back(1);
  expect_failure(Session::create(model(), options).status(), StatusCode::kInvalidArgument, {"17", "16"});
}

TEST_F(SessionStopTest, TheModelsOwnIds) {
  SmallLlama file;
  file.eos = static_cast<std::uint32_t>(text_[6]);
  const std::string bytes = file.build();
  const Model ending = load_model_from(bytes);
  ASSERT_EQ(ending.tokenizer().eos(), text_[6]);
  Session stopped = make_session(ending);
  EXPECT_EQ(continue_with(stopped, input_, 18), first_of(text_, 6));
  EXPECT_EQ(stopped.stop_reason(), StopReason::kStopId);
  SessionOptions options;
  options.stop_ids = {text_[3]};  // beside the model's own
  Session earlier = make_session(ending, options);
  EXPECT_EQ(continue_with(earlier, input_, 18), first_of(text_, 3));
  Session ignoring = make_session(ending, without_model_stops());
  EXPECT_EQ(continue_with(ignoring, input_, 18), text_);
}

class SessionLimitTest : public SmallModelTest {};

TEST_F(SessionLimitTest, ALimitIsKeptAndTheTextContinues) {
  const Tokens input = prompt(11), whole = text_of(input, 60);
  ASSERT_EQ(whole.size(), 60u);
  for (const std::uint32_t burst : {1u, 3u, 16u, 64u}) {
    Session parts = session(burst);
    Tokens text = continue_with(parts, input, 1);
    EXPECT_EQ(text.size(), 1u);
    for (const std::uint32_t n : {1u, 2u, 15u, 16u, 17u, 8u}) {
      const Tokens part = continue_with(parts, {}, n);
      EXPECT_EQ(part.size(), n);
      EXPECT_EQ(parts.stop_reason(), StopReason::kLength);
      text = joined(text, part);
    }
    EXPECT_EQ(text, whole) << "burst " << burst;
    EXPECT_EQ(all_tokens(parts), joined(input, whole));
  }
}

TEST_F(SessionLimitTest, NewInputAfterALimitComesAfterAllTokens) {
  const Tokens input = prompt(11), more = {3, 77, 250, 12};
  const Tokens text = text_of(input, 10);
  for (const std::uint32_t burst : {1u, 16u}) {
    Session continued = session(burst);
    (void)continue_with(continued, input, 10);
    EXPECT_EQ(continue_with(continued, more, 12), text_of(joined(joined(input, text), more), 12));
  }
}

TEST_F(SessionLimitTest, ZeroOnlyFillsTheCache) {
  const Tokens input = prompt(30);
  Session filled = session();
  EXPECT_EQ(continue_with(filled, std::span(input).first(29), 0), Tokens());
  EXPECT_EQ(filled.stop_reason(), StopReason::kLength);
  EXPECT_EQ(filled.statistics().n_steps, 1u);
  expect_failure(filled.append({}, 5), StatusCode::kInvalidArgument, {"no token to continue from"});
  EXPECT_EQ(continue_with(filled, std::span(input).last(1), 6), text_of(input, 6));
}

TEST_F(SessionLimitTest, NothingToContinueFromIsRefused) {
  Session empty = session();
  EXPECT_TRUE(empty.idle());
  expect_failure(empty.append({}, 5), StatusCode::kInvalidArgument, {"no token to continue from"});
  EXPECT_TRUE(empty.idle());
  RONDO_EXPECT_OK(empty.append({}, 0));
  EXPECT_TRUE(empty.idle());
}

class SessionContextTest : public SmallModelTest {};

TEST_F(SessionContextTest, AFullContextStops) {
  const Tokens input = prompt(9);
  const Tokens text = text_of(input, 40);
  for (const std::uint32_t n_ctx : {10u, 11u, 26u, 40u}) {
    for (const std::uint32_t burst : {1u, 3u, 16u}) {
      Session full = session(burst, n_ctx);
      EXPECT_EQ(full.n_ctx(), n_ctx);
      EXPECT_EQ(continue_with(full, input, Session::kUnlimited), first_of(text, n_ctx - 9)) << "context " << n_ctx << ", burst " << burst;
      EXPECT_EQ(full.stop_reason(), StopReason::kContext);
      EXPECT_EQ(full.tokens().size(), n_ctx);
      expect_failure(full.append(Tokens{1}, 1), StatusCode::kInvalidArgument, {std::to_string(n_ctx)});
      // There is room again after a rewind.
      RONDO_ASSERT_OK(full.rewind(5));
      EXPECT_EQ(continue_with(full, std::span(input).last(4), 1), first_of(text, 1));
    }
  }
}

TEST_F(SessionContextTest, PromptsThatJustFit) {
  for (const std::uint32_t n_ctx : {1u, 7u, 8u, 9u, 64u, 65u}) {
    const Tokens input = prompt(n_ctx + 1);
    Session exact = session(16, n_ctx);
    EXPECT_EQ(continue_with(exact, std::span(input).first(n_ctx), 5), Tokens()) << n_ctx;
    EXPECT_EQ(exact.stop_reason(), StopReason::kContext);
    EXPECT_EQ(exact.tokens().size(), n_ctx);

    Session longer = session(16, n_ctx);
    expect_failure(longer.append(input, 5), StatusCode::kInvalidArgument, {std::to_string(n_ctx + 1), std::to_string(n_ctx)});
    EXPECT_TRUE(longer.tokens().empty());
    if (n_ctx == 1) continue;
    const std::span<const std::int32_t> shorter = std::span(input).first(n_ctx - 1);
    EXPECT_EQ(continue_with(longer, shorter, 5), text_of(shorter, 1));  // which the refusal did not disturb
    EXPECT_EQ(longer.stop_reason(), StopReason::kContext);
    EXPECT_EQ(longer.tokens().size(), n_ctx);
  }
}

}  // namespace
}  // namespace rondo::tests::session_stop_test
