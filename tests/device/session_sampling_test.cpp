// Sampling in a session: the seed and the position decide, whatever ran before; stop texts leave a session that goes on.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "tests/device/session_harness.h"

namespace rondo::tests::session_sampling_test {
namespace {

class SessionSamplingTest : public SmallModelTest {
 protected:
  static SessionOptions hot(std::uint64_t seed, std::uint32_t burst = 0) {
    SessionOptions options = without_model_stops(burst);
    options.seed = seed;
    options.sampling.temperature = 1.5f;
    options.sampling.top_p = 0.95f;
    options.sampling.repeat_penalty = 1.2f;
    return options;
  }
};

TEST_F(SessionSamplingTest, BurstsCutsAndChunksChangeNothing) {
  const Tokens input = prompt(20);
  Session plain = make_session(model(), hot(7));
  const Tokens expected = continue_with(plain, input, 40);
  Session greedy = session();
  EXPECT_NE(continue_with(greedy, input, 40), expected);
  for (const std::uint32_t burst : {1u, 3u, 16u}) {
    for (const double segment_us : {1.0, 100'000.0}) {
      SessionOptions options = hot(7, burst);
      options.max_segment_us = segment_us;
      Session other = make_session(model(), options);
      EXPECT_EQ(continue_with(other, input, 40), expected) << "burst " << burst << ", segments of " << segment_us;
    }
  }
  // In two parts: position 33 draws the same whether the session paused before it or not.
  Session paused = make_session(model(), hot(7));
  Tokens parts = continue_with(paused, input, 13);
  const Tokens rest = continue_with(paused, {}, 27);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, expected);
}

TEST_F(SessionSamplingTest, RewindingDrawsTheSameAgain) {
  const Tokens input = prompt(9);
  Session session = make_session(model(), hot(3));
  const Tokens first = continue_with(session, input, 30);
  ASSERT_TRUE(session.rewind(0).ok());
  EXPECT_EQ(continue_with(session, input, 30), first);
  Session other = make_session(model(), hot(4));
  EXPECT_NE(continue_with(other, input, 30), first);
}

TEST_F(SessionSamplingTest, OptionsOutOfRangeAreRefusedByName) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto refusal = [&](auto change) {
    SessionOptions options;
    change(options);
    const Result<Session> made = Session::create(model(), options);
    return made.ok() ? std::string() : made.status().message();
  };
  EXPECT_NE(refusal([](SessionOptions& o) { o.sampling.temperature = -1; }).find("temperature is -1"), std::string::npos);
  EXPECT_NE(refusal([nan](SessionOptions& o) { o.sampling.temperature = nan; }).find("temperature is nan"), std::string::npos);
  EXPECT_NE(refusal([](SessionOptions& o) { o.sampling.top_p = 0; }).find("top_p is 0"), std::string::npos);
  EXPECT_NE(refusal([nan](SessionOptions& o) { o.sampling.top_p = nan; }).find("top_p"), std::string::npos);
  EXPECT_NE(refusal([](SessionOptions& o) { o.sampling.min_p = 2; }).find("min_p is 2"), std::string::npos);
  EXPECT_NE(refusal([](SessionOptions& o) { o.sampling.repeat_penalty = 0; }).find("repeat_penalty is 0"), std::string::npos);
  EXPECT_NE(refusal([](SessionOptions& o) { o.stop_texts = {""}; }).find("stop text"), std::string::npos);
}

/// After a stop text the session stands before the token in which it begins, as if the rest had never been made.
TEST_F(SessionSamplingTest, AStopTextLeavesASessionThatGoesOn) {
  const Tokens input = prompt(12), more = {7, 201, 44};
  Session plain = session();
  const auto whole = plain.generate(input, 40);
  ASSERT_TRUE(whole.ok()) << whole.status().message();
  const std::size_t middle = whole->text.size() / 2;
  const std::string stop = whole->text.substr(middle, 4);
  for (const std::uint32_t burst : {1u, 16u}) {
    SessionOptions options = without_model_stops(burst);
    options.stop_texts = {stop};
    Session stopped = make_session(model(), options);
    std::string seen;
    const auto cut = stopped.generate(input, 40, [&](std::string_view text) {
      seen += text;
      return true;
    });
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_EQ(cut->stop, StopReason::kStopText);
    EXPECT_EQ(cut->text, whole->text.substr(0, whole->text.find(stop)));
    EXPECT_EQ(seen, cut->text);
    EXPECT_EQ(cut->tokens, first_of(whole->tokens, cut->tokens.size()));
    EXPECT_EQ(all_tokens(stopped), joined(input, cut->tokens));
    Session reference = session();
    (void)continue_with(reference, joined(input, cut->tokens), 0);
    EXPECT_EQ(continue_with(stopped, more, 9), continue_with(reference, more, 9));
  }
}

}  // namespace
}  // namespace rondo::tests::session_sampling_test
