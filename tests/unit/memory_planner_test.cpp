#include <random>

#include <gtest/gtest.h>

#include "graph/lowering.h"
#include "tests/support/made_up_llama.h"

namespace rondo::graph::memory_planner_test {
namespace {

struct Plan {
  std::vector<std::uint64_t> offsets;
  std::uint64_t total = 0;
};

Plan plan(const std::vector<Lifetime>& lifetimes, std::uint64_t alignment = 256) {
  Plan result;
  result.offsets = plan_memory(lifetimes, alignment, result.total);
  return result;
}

std::uint64_t rounded(std::uint64_t n, std::uint64_t alignment) { return (n + alignment - 1) / alignment * alignment; }

/// What is wrong with a plan, or "".
std::string find_fault(const std::vector<Lifetime>& lives, const Plan& plan, std::uint64_t alignment) {
  std::uint64_t sum = 0;
  for (std::size_t a = 0; a < lives.size(); ++a) {
    sum += rounded(lives[a].size_bytes, alignment);
    if (plan.offsets[a] % alignment != 0) return "an offset is not aligned";
    if (plan.offsets[a] + lives[a].size_bytes > plan.total) return "a storage reaches beyond the total";
    for (std::size_t b = a + 1; b < lives.size(); ++b) {
      const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
      const bool share = plan.offsets[a] < plan.offsets[b] + lives[b].size_bytes && plan.offsets[b] < plan.offsets[a] + lives[a].size_bytes;
      if (together && share) return "two storages that live together share bytes";
    }
  }
  return plan.total > sum ? "the total exceeds the sum" : "";
}

TEST(MemoryPlannerTest, RandomLifetimes) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    std::vector<Lifetime> lives(1 + random() % 30);
    for (Lifetime& life : lives) {
      life.size_bytes = 1 + random() % 5000;
      life.first = static_cast<std::uint32_t>(random() % 20);
      life.last = life.first + static_cast<std::uint32_t>(random() % 6);
    }
    for (std::uint64_t alignment : {16u, 256u}) EXPECT_EQ(find_fault(lives, plan(lives, alignment), alignment), "") << "round " << round;
  }
}

/// The check above rejects plans that share what they must not, or start at odd places.
TEST(MemoryPlannerTest, FaultyPlansAreRejected) {
  const std::vector<Lifetime> lives = {{256, 0, 1}, {256, 1, 2}};
  EXPECT_EQ(find_fault(lives, {{0, 256}, 512}, 256), "");
  EXPECT_NE(find_fault(lives, {{0, 0}, 256}, 256), "");
  EXPECT_NE(find_fault(lives, {{0, 300}, 600}, 256), "");
  EXPECT_NE(find_fault(lives, {{0, 256}, 500}, 256), "");
  EXPECT_NE(find_fault(lives, {{0, 512}, 768}, 256), "");
}

TEST(MemoryPlannerTest, OneAfterTheOtherShareAndNeighboursDoNot) {
  const Plan apart = plan({{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 4}});
  EXPECT_EQ(apart.total, 1024u);
  const Plan touching = plan({{1000, 0, 2}, {1000, 2, 3}});
  EXPECT_EQ(touching.total, 2048u) << "a dispatch reads one while it writes the other";
}

TEST(MemoryPlannerTest, AGapIsUsed) {
  // The small one fits between the two large ones, which live through everything, where the middle one has ended.
  const Plan p = plan({{1024, 0, 9}, {512, 0, 3}, {512, 0, 9}, {256, 5, 9}});
  EXPECT_EQ(p.total, 2048u);
}

TEST(MemoryPlannerTest, NothingNeedsNothing) { EXPECT_EQ(plan({}).total, 0u); }

TEST(MemoryPlannerTest, AStepSharesMostOfItsActivations) {
  tests::MadeUpOptions options;
  options.n_layers = 8;
  Graph step = tests::MadeUpLlama(options).build(models::Role::kPrefillAndSample, 64);
  const Result<Lowered> lowered = lower(step, runtime::DeviceCaps{}, {});
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  EXPECT_LT(lowered->activation_bytes * 4, lowered->unaliased_activation_bytes);
  for (const runtime::Dispatch& dispatch : lowered->program.dispatches) {
    for (const runtime::Binding& binding : dispatch.bindings) EXPECT_EQ(binding.range.offset_bytes % 256, 0u) << dispatch.label;
  }
}

}  // namespace
}  // namespace rondo::graph::memory_planner_test
