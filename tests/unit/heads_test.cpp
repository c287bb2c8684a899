// What the logits of heads say.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/heads.h>

namespace rondo::tests::heads_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

TEST(MostProbableTest, IsSoftmaxInOrder) {
  const std::vector<float> logits = {1, 3, 2, 3};
  const std::vector<Choice> best = most_probable(logits, 3);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].id, 1u);
  EXPECT_EQ(best[1].id, 3u) << "of equals the lower id comes first";
  EXPECT_EQ(best[2].id, 2u);
  const double sum = std::exp(-2.0) + 1 + std::exp(-1.0) + 1;
  EXPECT_NEAR(best[0].probability, 1 / sum, 1e-12);
  EXPECT_NEAR(best[2].probability, std::exp(-1.0) / sum, 1e-12);
  EXPECT_EQ(most_probable(logits, 9).size(), 4u);
  EXPECT_TRUE(most_probable(logits, 0).empty());
  EXPECT_TRUE(most_probable({}, 3).empty());
}

TEST(MostProbableTest, OfOneLogitItIsYesOrNo) {
  const std::vector<float> logit = {0.5f};
  ASSERT_EQ(most_probable(logit, 5).size(), 1u);
  EXPECT_NEAR(most_probable(logit, 5)[0].probability, 1 / (1 + std::exp(-0.5)), 1e-12);
}

TEST(MostProbableTest, LargeLogitsAndNan) {
  const std::vector<Choice> best = most_probable(std::vector<float>{1e30f, kNan, -1e30f, kInfinity}, 4);
  EXPECT_EQ(best[0].id, 3u);
  EXPECT_EQ(best[0].probability, 1);
  EXPECT_EQ(best[1].id, 0u);
  EXPECT_EQ(best[1].probability, 0);
  for (const Choice& choice : most_probable(std::vector<float>{kNan, kNan}, 2)) EXPECT_EQ(choice.probability, 0);
}

/// All spans, one by one.
Answer plain_best(const std::vector<float>& logits, std::uint32_t begin, std::uint32_t end, std::uint32_t most) {
  double begins = 0, ends = 0;
  for (std::uint32_t i = begin; i < end; ++i) begins += std::exp(static_cast<double>(logits[2 * i])), ends += std::exp(static_cast<double>(logits[2 * i + 1]));
  Answer best;
  for (std::uint32_t first = begin; first < end; ++first) {
    for (std::uint32_t last = first; last < end && last < first + most; ++last) {
      const double probability = std::exp(static_cast<double>(logits[2 * first])) / begins * std::exp(static_cast<double>(logits[2 * last + 1])) / ends;
      if (probability > best.probability) best = {first, last, probability};
    }
  }
  return best;
}

TEST(BestAnswersTest, AreTheLargestProducts) {
  std::vector<float> logits;
  unsigned seed = 1;
  for (int i = 0; i < 60; ++i) logits.push_back(static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 16) / 8192.0f);
  for (const auto& [begin, end, most] : {std::tuple{0u, 30u, 30u}, std::tuple{5u, 20u, 3u}, std::tuple{29u, 30u, 1u}}) {
    const std::vector<Answer> found = best_answers(logits, begin, end, most, 1);
    const Answer expected = plain_best(logits, begin, end, most);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].first, expected.first);
    EXPECT_EQ(found[0].last, expected.last);
    EXPECT_NEAR(found[0].probability, expected.probability, 1e-9);
  }
  const std::vector<Answer> several = best_answers(logits, 0, 30, 5, 10);
  ASSERT_EQ(several.size(), 10u);
  for (std::size_t i = 1; i < several.size(); ++i) EXPECT_GE(several[i - 1].probability, several[i].probability);
}

TEST(BestAnswersTest, NothingWhereThereIsNothing) {
  const std::vector<float> logits(20);
  EXPECT_TRUE(best_answers(logits, 4, 4, 5).empty());
  EXPECT_TRUE(best_answers(logits, 0, 10, 0).empty());
  EXPECT_TRUE(best_answers(logits, 0, 10, 5, 0).empty());
  EXPECT_EQ(best_answers(logits, 8, 99, 5)[0].first, 8u) << "what is beyond the logits is no token";
}

}  // namespace
}  // namespace rondo::tests::heads_test
