#include "models/stop_filter.h"

#include <gtest/gtest.h>

namespace rondo::models::stop_filter_test {
namespace {

struct Outcome {
  std::string shown;
  bool stopped;
  std::size_t n_before;
};

Outcome filtered(std::vector<std::string> stops, const std::vector<std::string>& tokens) {
  StopFilter filter(std::move(stops));
  Outcome outcome{};
  for (const std::string& token : tokens) outcome.shown += filter.add_token(token);
  outcome.shown += filter.finish();
  outcome.stopped = filter.stopped();
  outcome.n_before = filter.n_tokens_before();
  return outcome;
}

TEST(StopFilterTest, PassesTextWithoutAStop) {
  const Outcome outcome = filtered({"END", "###"}, {"the E", "N", "d of #", "# ", "E"});
  EXPECT_EQ(outcome.shown, "the ENd of ## E");
  EXPECT_FALSE(outcome.stopped);
}

TEST(StopFilterTest, StopsInsideOneToken) {
  const Outcome outcome = filtered({"END"}, {"a ", "b END c", "d"});
  EXPECT_EQ(outcome.shown, "a b ");
  EXPECT_TRUE(outcome.stopped);
  EXPECT_EQ(outcome.n_before, 1u);
}

TEST(StopFilterTest, StopsAcrossTokens) {
  const Outcome outcome = filtered({"\n\nQ:"}, {"yes", ".", "\n", "\nQ", ":", " what"});
  EXPECT_EQ(outcome.shown, "yes.");
  EXPECT_EQ(outcome.n_before, 2u);
}

TEST(StopFilterTest, TheFirstOfSeveralWins) {
  EXPECT_EQ(filtered({"cd", "abcd"}, {"xabcd"}).shown, "x");
  EXPECT_EQ(filtered({"abcd", "b"}, {"a", "b"}).shown, "a");
}

TEST(StopFilterTest, SelfOverlappingTextsAreFound) {
  EXPECT_EQ(filtered({"aab"}, {"a", "a", "a", "b"}).shown, "a");
  EXPECT_EQ(filtered({"abab"}, {"ab", "a", "c", "abab"}).shown, "abac");
}

TEST(StopFilterTest, AStopAtTheBeginningLeavesNothing) {
  const Outcome outcome = filtered({"a"}, {"", "abc"});
  EXPECT_EQ(outcome.shown, "");
  EXPECT_EQ(outcome.n_before, 1u);  // the empty token lies before it
}

TEST(StopFilterTest, HoldsBackNoMoreThanItMust) {
  StopFilter filter({"stop"});
  EXPECT_EQ(filter.add_token("go st"), "go ");
  EXPECT_EQ(filter.add_token("ay"), "stay");
}

}  // namespace
}  // namespace rondo::models::stop_filter_test
