#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "graph/sampling.h"
#include "lib/step_state.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::sample_test {
namespace {

using graph::Op;
using graph::SamplingParameters;
using graph::TensorId;

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kContext = 97;

/// One sequence: what it is asked for.
struct Draw {
  SamplingParameters parameters;
  std::int32_t last_n = 0;
  std::uint64_t seed = 1;
  std::int32_t position = 5, count = 1;
};

/// A case with one sequence per draw; all see the same logits where there is only one row of them.
struct SampleCase {
  SampleCase(std::vector<Draw> asked, std::int64_t vocabulary, std::vector<float> values)
      : draws(std::move(asked)), n_vocab(vocabulary), logits(std::move(values)), op(static_cast<std::int64_t>(draws.size())) {
    const auto n = static_cast<std::int64_t>(draws.size());
    tokens.resize(static_cast<std::size_t>(n * kContext));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * 7 % static_cast<std::size_t>(n_vocab));
    for (std::int64_t b = 0; b < n; ++b) {
      const Draw& draw = draws[static_cast<std::size_t>(b)];
      op.set_count(b, draw.count);
      op.set_state(b, RONDO_STATE_POSITION, draw.position);
      op.set_state(b, RONDO_STATE_SEED_LOW, static_cast<std::int32_t>(draw.seed));
      op.set_state(b, RONDO_STATE_SEED_HIGH, static_cast<std::int32_t>(draw.seed >> 32));
      op.set_state(b, RONDO_STATE_TEMPERATURE, std::bit_cast<std::int32_t>(draw.parameters.temperature));
      op.set_state(b, RONDO_STATE_TOP_K, static_cast<std::int32_t>(draw.parameters.top_k));
      op.set_state(b, RONDO_STATE_TOP_P, std::bit_cast<std::int32_t>(draw.parameters.top_p));
      op.set_state(b, RONDO_STATE_MIN_P, std::bit_cast<std::int32_t>(draw.parameters.min_p));
      op.set_state(b, RONDO_STATE_REPEAT_PENALTY, std::bit_cast<std::int32_t>(draw.parameters.repeat_penalty));
      op.set_state(b, RONDO_STATE_REPEAT_LAST_N, draw.last_n);
    }
    const auto v = static_cast<std::size_t>(n_vocab);
    while (logits.size() < v * draws.size()) logits.insert(logits.end(), logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(v));
    const TensorId input = op.f32("logits", {n, n_vocab}, logits);
    const TensorId history = op.step_i32("tokens", {n, kContext}, tokens);
    result = op.graph.add(Op::sample, {input, history, op.state});
    op.output(result);
  }

  std::vector<double> distribution(std::size_t b) const {
    const Draw& draw = draws[b];
    const auto end = static_cast<std::size_t>(draw.position + draw.count);
    const std::size_t n = std::min<std::size_t>(static_cast<std::size_t>(draw.last_n), end);
    const auto v = static_cast<std::size_t>(n_vocab);
    return graph::sampling_distribution(std::span(logits).subspan(b * v, v), std::span(tokens).subspan(b * kContext + end - n, n), draw.parameters);
  }

  std::vector<std::int32_t> run(runtime::DeviceType type = runtime::DeviceType::kCpu) const {
    RunOptions options;
    options.pretend = type;
    const Result<DeviceRun> run = run_on_device(op, options);
    EXPECT_TRUE(run.ok()) << run.status().message();
    std::vector<std::int32_t> ids(draws.size(), -1);
    if (!run.ok()) return ids;
    EXPECT_EQ(run->touched, "");
    std::memcpy(ids.data(), run->after[static_cast<std::size_t>(op.graph.tensor(result).storage)].data(), ids.size() * 4);
    return ids;
  }

  std::vector<Draw> draws;
  std::int64_t n_vocab;
  std::vector<float> logits;
  std::vector<std::int32_t> tokens;
  OpCase op;
  TensorId result = graph::kNone;
};

/// Every token is the reference's; where the variate lies within 1e-5 of an edge, the neighbour across it will do.
void expect_reference_tokens(const SampleCase& c) {
  for (const runtime::DeviceType type : {runtime::DeviceType::kCpu, runtime::DeviceType::kDiscrete}) {
    const std::vector<std::int32_t> ids = c.run(type);
    for (std::size_t b = 0; b < ids.size(); ++b) {
      const std::vector<double> distribution = c.distribution(b);
      const Draw& draw = c.draws[b];
      const auto u = static_cast<double>(graph::sampling_variate(draw.seed, static_cast<std::uint32_t>(draw.position + draw.count)));
      const std::int32_t expected = graph::draw_from(distribution, u);
      if (ids[b] == expected) continue;
      ASSERT_TRUE(ids[b] >= 0 && ids[b] < c.n_vocab) << ids[b];
      double below = 0;
      for (std::int32_t id = 0; id < ids[b]; ++id) below += distribution[static_cast<std::size_t>(id)];
      const double own = distribution[static_cast<std::size_t>(ids[b])];
      const bool near = draw.parameters.temperature > 0 && own > 0 && u > below - 1e-5 && u < below + own + 1e-5;
      ASSERT_TRUE(near) << "sequence " << b << " drew " << ids[b] << " rather than " << expected << ": u " << u << ", top_k " << draw.parameters.top_k << ", top_p "
                        << draw.parameters.top_p;
    }
  }
}

std::vector<Draw> mixed_draws(std::size_t n_vocab) {
  std::vector<Draw> draws;
  std::uint64_t seed = 11;
  const auto add = [&](SamplingParameters parameters, std::int32_t last_n = 0) {
    for (std::int32_t position : {5, 60}) draws.push_back({parameters, last_n, seed++ * 0x9E3779B97F4A7C15u, position, position == 5 ? 3 : 1});
  };
  add({0});
  add({0, 0, 1, 0, 1.7f}, 64);
  add({1});
  add({0.8f, 40, 0.95f, 0.05f, 1});
  add({0.8f, 40, 0.95f, 0.05f, 1.3f}, 64);
  add({1.5f, 0, 0.5f});
  add({1, 0, 0.999f});
  add({1, 0, 1, 0.3f});
  add({2, 1});
  add({1, 3});
  add({1, 5000, 0.9f});
  add({1, static_cast<std::uint32_t>(n_vocab)});
  add({0.01f, 0, 0.2f, 0.9f});
  add({50, 7, 1, 0, 0.5f}, 1000);
  return draws;
}

class SampleTest : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(SampleTest, DrawsWhatTheReferenceDraws) {
  const auto n = static_cast<std::size_t>(GetParam());
  const std::vector<Draw> draws = mixed_draws(n);
  expect_reference_tokens(SampleCase(draws, GetParam(), random_values(n, 3, 8)));
  expect_reference_tokens(SampleCase(draws, GetParam(), integer_values(n, 4, 3)));  // ties at every threshold
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, SampleTest, ::testing::Values(1, 2, 37, 255, 256, 257, 512, 2048, 2049, 16384, 16640, 50257, 262144));

TEST(SampleTest, TiesAtAThresholdAreAllKept) {
  // Ids 10, 20, ..., 50 share the largest logit: top-k 2 and a tiny top-p keep all five, the others are never drawn.
  std::vector<float> logits(600, -1.0f);
  for (std::size_t id = 10; id <= 50; id += 10) logits[id] = 4;
  std::vector<Draw> draws;
  for (std::uint64_t seed = 0; seed < 400; ++seed) draws.push_back({{1, seed % 2 == 0 ? 2u : 0u, seed % 2 == 0 ? 1.0f : 0.1f}, 0, seed});
  const SampleCase c(draws, 600, logits);
  std::array<int, 6> counts{};
  for (const std::int32_t id : c.run()) {
    ASSERT_TRUE(id % 10 == 0 && id >= 10 && id <= 50) << id;
    ++counts[static_cast<std::size_t>(id / 10)];
  }
  for (std::size_t i = 1; i <= 5; ++i) EXPECT_GT(counts[i], 40);
}

/// As those of language models: of 50,257 tokens a few hundred are likely, and these fit into shared memory, where what is kept is decided; or more than fit are alike.
TEST(SampleTest, FewLikelyTokensAreDecidedAmongThemselves) {
  constexpr std::size_t kVocabulary = 50257;
  std::vector<Draw> draws;
  std::uint64_t seed = 5;
  for (const SamplingParameters& parameters : {SamplingParameters{1, 0, 0.5f}, {1, 0, 0.9f}, {0.7f, 0, 0.95f, 0.01f}, {1, 0, 1, 0.05f}, {1.3f, 100}, {1, 512, 0.99f}, {1, 513, 0.99f}, {0.8f, 40, 0.95f, 0.05f}, {0}}) {
    for (int i = 0; i < 8; ++i) draws.push_back({parameters, 0, seed++ * 0x9E3779B97F4A7C15u});
  }
  std::vector<float> logits = random_values(kVocabulary, 31, 2);
  for (std::size_t i = 0; i < 300; ++i) logits[i * 167 % kVocabulary] += 12 - 0.03f * static_cast<float>(i);
  expect_reference_tokens(SampleCase(draws, kVocabulary, logits));
  for (std::size_t i = 0; i < kVocabulary; i += 60) logits[i] = 14;  // 838, all among the kept
  expect_reference_tokens(SampleCase(draws, kVocabulary, logits));
}

/// The last of as many alike as fit into shared memory, and as don't, is drawn as well: no driver ends a loop before.
TEST(SampleTest, AllOfManyAlikeAreDrawn) {
  for (const std::int64_t vocabulary : {256, 512}) {
    std::vector<Draw> draws;
    for (std::uint64_t seed = 0; seed < 400; ++seed) draws.push_back({{1}, 0, seed * 0x9E3779B97F4A7C15u});
    expect_reference_tokens(SampleCase(draws, vocabulary, std::vector<float>(static_cast<std::size_t>(vocabulary), 1.0f)));
  }
}

TEST(SampleTest, WhatIsNotANumberIsNeverDrawn) {
  constexpr std::size_t kVocabulary = 700;
  std::vector<float> rows = random_values(4 * kVocabulary, 9, 2);
  for (std::size_t i = 0; i < kVocabulary; i += 2) rows[i] = kNan;
  for (std::size_t i = kVocabulary; i < 2 * kVocabulary; ++i) rows[i] = kNan;           // all: id 0
  for (std::size_t i = 2 * kVocabulary; i < 3 * kVocabulary; ++i) rows[i] = -kInfinity;  // all: any
  rows[3 * kVocabulary + 333] = kInfinity;
  rows[3 * kVocabulary + 666] = kInfinity;
  for (std::size_t i = 0; i < 256; ++i) rows[i] = kNan;  // a chunk of them
  for (const SamplingParameters& parameters : {SamplingParameters{0, 40, 0.9f, 0.1f}, {1, 40, 0.9f, 0.1f}, {1, 0, 0.9f}, {1}}) {
    std::vector<Draw> draws(4);
    for (std::size_t i = 0; i < 4; ++i) draws[i] = {parameters, 0, 77 + i};
    expect_reference_tokens(SampleCase(draws, kVocabulary, rows));
  }
}

TEST(SampleTest, ThePenaltyActsOnceOnEachRecentIdOnly) {
  // Tokens are 0, 7, 14, ...: the last 3 of position 9 + 1 are 49, 56, 63. Greedy goes to the best id not among them.
  std::vector<float> logits(128, 0.0f);
  logits[63] = 9, logits[56] = 8, logits[49] = 7, logits[42] = 6, logits[100] = 3.5f;
  Draw draw{{0, 0, 1, 0, 2}, 3, 1, 9, 1};
  std::vector<Draw> draws(4, draw);
  draws[1].last_n = 4;                       // 42 as well: 63, at 4.5, is ahead again
  draws[2].parameters.repeat_penalty = 1;    // no penalty
  draws[3].last_n = 0;                       // nobody is recent
  const SampleCase c(draws, 128, logits);
  // Each sequence has its own tokens: those of sequence b begin at 7 (b kContext).
  expect_reference_tokens(c);
  EXPECT_EQ(c.run()[0], 42);
  EXPECT_EQ(c.run()[3], 63);
}

/// Pearson's statistic of 30,000 draws lies within five standard deviations of its mean.
TEST(SampleTest, ManyDrawsFollowTheDistribution) {
  constexpr std::int64_t kVocabulary = 41, kSequences = 15000;
  const std::vector<float> logits = random_values(kVocabulary, 21, 3);
  for (const SamplingParameters& parameters : {SamplingParameters{1}, SamplingParameters{0.7f, 20, 0.9f, 0.02f}}) {
    std::vector<double> expected, counts(kVocabulary, 0);
    for (std::uint64_t half = 0; half < 2; ++half) {
      std::vector<Draw> draws;
      // Half the draws differ in the position, half in the seed.
      for (std::int32_t b = 0; b < kSequences; ++b) draws.push_back({parameters, 0, half == 0 ? 42 : 1000 + static_cast<std::uint64_t>(b), half == 0 ? b : 3});
      const SampleCase c(draws, kVocabulary, logits);
      expected = c.distribution(0);
      for (const std::int32_t id : c.run()) {
        ASSERT_TRUE(id >= 0 && id < kVocabulary);
        ++counts[static_cast<std::size_t>(id)];
      }
    }
    double chi_squared = 0;
    int freedom = -1;
    for (std::size_t id = 0; id < counts.size(); ++id) {
      if (expected[id] == 0) {
        EXPECT_EQ(counts[id], 0) << id;
        continue;
      }
      const double mean = 2 * kSequences * expected[id];
      chi_squared += (counts[id] - mean) * (counts[id] - mean) / mean;
      ++freedom;
    }
    EXPECT_LT(std::abs(chi_squared - freedom), 5 * std::sqrt(2.0 * freedom)) << "chi-squared " << chi_squared << " with " << freedom << " degrees of freedom";
  }
}

TEST(SampleTest, InactiveSequencesStayUntouched) {
  SampleCase c(std::vector<Draw>(3), 300, random_values(300, 1));
  c.op.set_count(1, 1, false);
  EXPECT_TRUE(agrees(c.op, kExact));
}

/// The known answer for counter 0 and key 0 (Random123, kat_vectors): 6627e8d5.
TEST(SamplingVariateTest, IsPhilox) {
  EXPECT_EQ(graph::sampling_variate(0, 0), static_cast<float>(0x6627e8) * 0x1p-24f);
  EXPECT_NE(graph::sampling_variate(0, 1), graph::sampling_variate(0, 0));
  EXPECT_NE(graph::sampling_variate(std::uint64_t{1} << 32, 0), graph::sampling_variate(0, 0));
}

TEST(SamplingDistributionTest, FollowsTheDefinition) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};
  const auto kept = [&](SamplingParameters parameters) {
    std::string ids;
    const std::vector<double> distribution = graph::sampling_distribution(logits, {}, parameters);
    for (std::size_t i = 0; i < 4; ++i) ids += distribution[i] > 0 ? static_cast<char>('0' + i) : '-';
    return ids;
  };
  EXPECT_EQ(kept({1}), "0123");
  EXPECT_EQ(kept({0}), "-1--");
  EXPECT_EQ(kept({1, 2}), "-1-3");
  EXPECT_EQ(kept({1, 0, 0.69f}), "-1-3");
  EXPECT_EQ(kept({1, 0, 0.71f}), "-123");
  EXPECT_EQ(kept({1, 0, 1, 0.6f}), "-1-3");
  EXPECT_EQ(kept({1, 2, 0.55f}), "-1--") << "top-p looks at what top-k left: 4 / 7 reaches 0.55";
  EXPECT_EQ(kept({100, 0, 0.69f}), "-1-3") << "temperature comes last";
  const std::vector<double> hot = graph::sampling_distribution(logits, {}, {2});
  EXPECT_NEAR(hot[1] / hot[0], 2, 1e-6);  // sqrt(0.4 / 0.1)
}

}  // namespace
}  // namespace rondo::tests::sample_test
