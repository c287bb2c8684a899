// Drivers' statistics in one set of words, and compiled loops against registered ones.
#include <gtest/gtest.h>

#include "tools/isa/executable.h"

namespace rondo::isa::isa_executable_test {
namespace {

Executable with(std::vector<Statistic> statistics) {
  Executable executable;
  executable.statistics = std::move(statistics);
  fill_from_statistics(executable);
  return executable;
}

TEST(IsaExecutableTest, FourDriversSayTheSame) {
  const Executable amd = with({{"VGPRs", 64}, {"Spilled SGPRs", 2}, {"Spilled VGPRs", 3}, {"Scratch size", 16}, {"Subgroups per SIMD", 12}, {"Instructions", 495}, {"Inverse Throughput", 2128}, {"Hash", 7}});
  EXPECT_EQ(amd.registers, 64);
  EXPECT_EQ(amd.spills, 5);
  EXPECT_EQ(amd.scratch_bytes, 16);
  EXPECT_EQ(amd.occupancy, 12);
  EXPECT_EQ(amd.instructions, 495);
  EXPECT_EQ(amd.cost, 2128);
  const Executable intel = with({{"Instructions", 642}, {"Cycles", 25410}, {"Spills", 4}, {"Fills", 9}, {"Scratch Memory Size", 0}, {"Max live registers", 110}});
  EXPECT_EQ(intel.registers, 110);
  EXPECT_EQ(intel.spills, 4);
  EXPECT_EQ(intel.cost, 25410);
  EXPECT_FALSE(intel.occupancy);
  const Executable adreno = with({{"Max Waves Per Core", 14}, {"Instruction Count", 852}, {"Registers used", 13}, {"STP Count", 1}});
  EXPECT_EQ(adreno.registers, 13);
  EXPECT_EQ(adreno.spills, 1);
  EXPECT_EQ(adreno.occupancy, 14);
  EXPECT_FALSE(adreno.scratch_bytes);
  const Executable nvidia = with({{"Instruction count", 666}, {"Static cycle count", 20350}, {"Max warps/SM", 32}, {"Spills to memory", 0}, {"Spills to reg", 3}, {"Number of GPRs", 64}, {"SLM size", 128}});
  EXPECT_EQ(nvidia.registers, 64);
  EXPECT_EQ(nvidia.spills, 0);
  EXPECT_EQ(nvidia.scratch_bytes, 128);
  EXPECT_EQ(nvidia.occupancy, 32);
  EXPECT_FALSE(with({{"Moons", 3}}).registers);
}

CompiledLoop loop(double multiply_adds, double vector, bool innermost = true) {
  CompiledLoop made;
  made.innermost = innermost;
  made.multiply_adds = multiply_adds;
  made.counts[static_cast<std::size_t>(Kind::kMultiplyAdd)] = vector;
  made.counts[static_cast<std::size_t>(Kind::kShared)] = 16;
  return made;
}

TEST(IsaExecutableTest, LoopsAreMeasuredByTheRegisteredOnes) {
  const runtime::InnerLoop tiled[] = {{32, 1024}, {}};
  Executable executable;
  executable.loops = {loop(32, 40), loop(500, 9000, false), loop(1, 70)};
  std::vector<LoopCost> costs = cost_of_loops(executable, tiled);
  ASSERT_EQ(costs.size(), 1U);  // an outer loop and one without multiplications are not it
  EXPECT_EQ(costs[0].multiply_adds, 32);
  EXPECT_EQ(costs[0].vector, 1.25);
  EXPECT_EQ(costs[0].shared, 0.5);
  EXPECT_EQ(vector_per_multiply_add(costs), 1.25);

  executable.loops = {loop(1056, 1280)};  // unrolled, with multiplications of the loop around
  costs = cost_of_loops(executable, tiled);
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].multiply_adds, 1024);
  EXPECT_EQ(costs[0].vector, 1.25);

  executable.loops = {loop(30, 32)};  // a compiler saved two
  EXPECT_EQ(cost_of_loops(executable, tiled).size(), 1U);
  executable.loops = {loop(20, 32)};
  EXPECT_TRUE(cost_of_loops(executable, tiled).empty());
  EXPECT_FALSE(vector_per_multiply_add({}));
}

TEST(IsaExecutableTest, WorkOfTheLoopAroundCountsWhereItIsRegistered) {
  const runtime::InnerLoop matrices[] = {{256, 512, 2}, {}}, alone[] = {{256, 512}, {}};
  Executable executable;
  executable.loops = {loop(600, 10000, false), loop(0, 64, false), loop(256, 96)};
  for (std::size_t i = 0; i < 3; ++i) executable.loops[i].first_line = 1 + i, executable.loops[i].last_line = 100 - i;
  const std::vector<LoopCost> costs = cost_of_loops(executable, matrices);
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].multiply_adds, 512);
  EXPECT_EQ(costs[0].vector, (64 + 2 * 96) / 512.0);
  EXPECT_EQ(costs[0].shared, (16 + 2 * 16) / 512.0);
  EXPECT_EQ(vector_per_multiply_add(cost_of_loops(executable, alone)), 96 / 256.0);

  executable.loops = {loop(520, 260)};  // unrolled
  EXPECT_EQ(vector_per_multiply_add(cost_of_loops(executable, matrices)), 260 / 512.0);
  executable.loops = {loop(256, 96)};
  EXPECT_TRUE(cost_of_loops(executable, matrices).empty()) << "a part of the work";
  const runtime::InnerLoop with_more[] = {{256, 768, 2}, {}};  // the loop around multiplies as well
  executable.loops = {loop(600, 10000, false), loop(0, 64, false), loop(256, 96)};
  for (std::size_t i = 0; i < 3; ++i) executable.loops[i].first_line = 1 + i, executable.loops[i].last_line = 100 - i;
  EXPECT_EQ(vector_per_multiply_add(cost_of_loops(executable, with_more)), (64 + 2 * 96) / 768.0);
  const runtime::InnerLoop once[] = {{512, 512, 1}, {}};  // all columns in one product
  executable.loops = {loop(600, 10000, false), loop(512, 96)};
  executable.loops[0].last_line = 100;
  EXPECT_EQ(vector_per_multiply_add(cost_of_loops(executable, once)), 96 / 512.0) << "the loop around is no part of it";
}

TEST(IsaExecutableTest, OfTwoLoopsEachIsTheDearestAndTheyCountAlike) {
  const runtime::InnerLoop attention[] = {{32}, {8}};
  Executable executable;
  executable.loops = {loop(32, 64), loop(33, 96), loop(8, 48), loop(9, 16)};
  const std::vector<LoopCost> costs = cost_of_loops(executable, attention);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(costs[0].vector, 3);
  EXPECT_EQ(costs[1].vector, 6);
  EXPECT_EQ(vector_per_multiply_add(costs), 4.5);
  const runtime::InnerLoop alike[] = {{8}, {8}};
  executable.loops = {loop(8, 48), loop(9, 16)};
  EXPECT_EQ(vector_per_multiply_add(cost_of_loops(executable, alike)), 4);
}

TEST(IsaExecutableTest, OthersAreMeasuredByTheirOwnCount) {
  Executable executable;
  EXPECT_TRUE(cost_of_largest_loops(executable).empty());
  executable.loops = {loop(0, 10)};
  EXPECT_TRUE(cost_of_largest_loops(executable).empty());
  executable.loops = {loop(64, 128, false), loop(50, 200), loop(16, 16)};  // the last one is what is left over
  const std::vector<LoopCost> costs = cost_of_largest_loops(executable);
  ASSERT_EQ(costs.size(), 2U);
  EXPECT_EQ(vector_per_multiply_add(costs), 3);
}

TEST(IsaExecutableTest, OfOthersTheProductsCountThatAreTold) {
  Executable executable;
  executable.loops = {loop(50, 200), loop(64, 128)};
  const std::vector<LoopCost> costs = cost_of_largest_loops(executable, 32);
  ASSERT_EQ(costs.size(), 1U);
  EXPECT_EQ(costs[0].vector, 4);
  EXPECT_TRUE(cost_of_largest_loops(executable, 128).empty()) << "the loop hasn't as many";
}

}  // namespace
}  // namespace rondo::isa::isa_executable_test
