// Beam search on made-up languages, beside the same written plainly.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "models/beam_search.h"

namespace rondo::tests::beam_search_test {
namespace {

using models::BeamSearch;
using Tokens = std::vector<std::int32_t>;

constexpr std::size_t kVocabulary = 7;
constexpr std::int32_t kEnd = 2;

/// Logits that depend on all tokens before, the same each time.
std::vector<float> logits_after(const Tokens& tokens, std::uint32_t language) {
  std::vector<float> logits;
  for (std::uint32_t i = 0; i < kVocabulary; ++i) {
    std::uint32_t hash = language * 2654435761u + i;
    for (const std::int32_t token : tokens) hash = (hash ^ static_cast<std::uint32_t>(token + 11)) * 16777619u + 12345u;
    logits.push_back(static_cast<float>((hash >> 9) & 0xffffu) / 16384.0f);
  }
  return logits;
}

/// The best result, and its score, the way the header says it.
BeamSearch::Result plain(std::uint32_t language, std::uint32_t beams, double penalty, std::uint32_t most) {
  struct Hypothesis {
    Tokens tokens;
    double sum = 0;
  };
  std::vector<Hypothesis> running(1);
  std::vector<BeamSearch::Result> results;
  const auto keep = [&](BeamSearch::Result result) {
    results.push_back(std::move(result));
    std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
    if (results.size() > beams) results.pop_back();
  };
  for (std::uint32_t n = 1; n <= most; ++n) {
    std::vector<std::tuple<double, std::size_t, std::int32_t>> all;
    for (std::size_t i = 0; i < running.size(); ++i) {
      const std::vector<float> logits = logits_after(running[i].tokens, language);
      double total = 0;
      for (const float logit : logits) total += std::exp(static_cast<double>(logit));
      for (std::size_t token = 0; token < kVocabulary; ++token) all.emplace_back(-(running[i].sum + static_cast<double>(logits[token]) - std::log(total)), i, static_cast<std::int32_t>(token));
    }
    std::sort(all.begin(), all.end());
    all.resize(std::min<std::size_t>(all.size(), 2 * beams));
    std::vector<Hypothesis> next;
    for (std::size_t rank = 0; rank < all.size() && next.size() < beams; ++rank) {
      const auto& [minus, i, token] = all[rank];
      if (token == kEnd && rank < beams) keep({running[i].tokens, -minus / std::pow(n, penalty), true});
      if (token == kEnd) continue;
      next.push_back({running[i].tokens, -minus});
      next.back().tokens.push_back(token);
    }
    running = next;
    if (n == most) {
      for (const Hypothesis& hypothesis : running) keep({hypothesis.tokens, hypothesis.sum / std::pow(n, penalty), false});
    }
    if (running.empty() || (results.size() == beams && running[0].sum / std::pow(n, penalty) <= results.back().score)) break;
  }
  return results.front();
}

BeamSearch::Result search(std::uint32_t language, std::uint32_t beams, double penalty, std::uint32_t most) {
  BeamSearch search({beams, penalty, most, {kEnd}});
  std::vector<Tokens> hypotheses(1);
  while (!search.over()) {
    EXPECT_EQ(search.n_beams(), hypotheses.size());
    std::vector<float> logits;
    for (const Tokens& tokens : hypotheses) {
      const std::vector<float> more = logits_after(tokens, language);
      logits.insert(logits.end(), more.begin(), more.end());
    }
    const std::vector<BeamSearch::Beam> beams_now = search.step(logits, kVocabulary);
    std::vector<Tokens> next;
    for (const BeamSearch::Beam& beam : beams_now) {
      next.push_back(hypotheses[beam.parent]);
      next.back().push_back(beam.token);
    }
    hypotheses = std::move(next);
  }
  return search.results().front();
}

TEST(BeamSearchTest, IsTheSameWrittenPlainly) {
  std::size_t n_ended = 0;
  for (std::uint32_t language = 0; language < 60; ++language) {
    for (const std::uint32_t beams : {1u, 2u, 4u, 7u}) {
      for (const double penalty : {0.0, 1.0, -0.5, 2.0}) {
        const BeamSearch::Result found = search(language, beams, penalty, 9), expected = plain(language, beams, penalty, 9);
        ASSERT_EQ(found.tokens, expected.tokens) << "language " << language << ", " << beams << " beams, penalty " << penalty;
        EXPECT_NEAR(found.score, expected.score, 1e-9);
        EXPECT_EQ(found.ended, expected.ended);
        n_ended += found.ended ? 1u : 0u;
      }
    }
  }
  EXPECT_GT(n_ended, 100u);
}

TEST(BeamSearchTest, OneBeamIsGreedy) {
  for (std::uint32_t language = 0; language < 20; ++language) {
    Tokens greedy;
    while (greedy.size() < 9) {
      const std::vector<float> logits = logits_after(greedy, language);
      const auto token = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (token == kEnd) break;
      greedy.push_back(token);
    }
    EXPECT_EQ(search(language, 1, 1, 9).tokens, greedy);
  }
}

TEST(BeamSearchTest, MoreBeamsThanTokensAndNan) {
  BeamSearch few({16, 1, 3, {kEnd}});
  EXPECT_EQ(few.step(logits_after({}, 1), kVocabulary).size(), kVocabulary - 1);
  std::vector<float> logits(kVocabulary, std::nanf(""));
  logits[4] = 1;
  BeamSearch one({2, 1, 3, {kEnd}});
  const std::vector<BeamSearch::Beam> beams = one.step(logits, kVocabulary);
  ASSERT_EQ(beams.size(), 1u);
  EXPECT_EQ(beams[0].token, 4);
  BeamSearch none({2, 1, 3, {kEnd}});
  EXPECT_TRUE(none.step(std::vector<float>(kVocabulary, std::nanf("")), kVocabulary).empty());
  EXPECT_TRUE(none.over());
  EXPECT_TRUE(none.results().empty());
  // Of two hypotheses one comes to what is beyond numbers: the other goes on.
  BeamSearch half({2, 1, 3, {kEnd}});
  EXPECT_EQ(half.step(logits_after({}, 1), kVocabulary).size(), 2u);
  logits = logits_after({}, 2);
  logits.insert(logits.end(), kVocabulary, 1.0f);
  logits[kVocabulary + 1] = std::numeric_limits<float>::infinity();
  for (const BeamSearch::Beam& beam : half.step(logits, kVocabulary)) EXPECT_EQ(beam.parent, 0u);
}

}  // namespace
}  // namespace rondo::tests::beam_search_test
