// Kernels whose lines, sectors and bank rounds are known by hand, for one subgroup of 32 lanes.
#include <string>

#include "tests/simulator/glsl.h"

namespace rondo::counts_test {
namespace {

struct Loads {
  const char* name;
  const char* address;  ///< of the word that lane `self` loads
  std::uint64_t sectors32, lines64, lines128, bytes;
};

// 32 lanes of 4 bytes are 4 sectors, 2 lines of 64 bytes, or 1 of 128.
const Loads kLoads[] = {
    {"SideBySide", "self", 4, 2, 1, 128},
    {"Backwards", "31 - self", 4, 2, 1, 128},
    {"OneWord", "5", 1, 1, 1, 4},
    {"EverySecond", "2 * self", 8, 4, 2, 128},
    {"OneLineEach", "16 * self", 32, 32, 16, 128},
    {"OneLongLineEach", "32 * self", 32, 32, 32, 128},
    {"AcrossABoundary", "self + 12", 5, 3, 2, 128},
    {"Pairs", "self / 2", 2, 1, 1, 64},
    {"TwoRuns", "self % 16 + 64 * (self / 16)", 4, 2, 2, 128},
};

struct Banks {
  const char* name;
  const char* address;
  std::uint64_t rounds, ideal;
};

const Banks kBanks[] = {
    {"SideBySide", "self", 1, 1},
    {"OneWord", "0", 1, 1},
    {"EverySecond", "2 * self", 2, 1},
    {"EveryEighth", "8 * self", 8, 1},
    {"OneBank", "32 * self", 32, 1},
    {"PaddedRows", "33 * self", 1, 1},
};

simulator::Report run(const std::string& source) {
  const auto module = simulator::read_module(simulator_test::compile(source), {}, "kernel");
  EXPECT_TRUE(module.ok()) << module.status().message();
  std::vector<simulator::Buffer> buffers = {simulator_test::buffer_of_words(4096, true), simulator_test::buffer_of_words(32, false)};
  auto report = simulator::simulate(*module, buffers, simulator_test::launch_of(buffers, 32, {1, 1, 1}));
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(simulator_test::all_findings(*report), "");
  return std::move(report).value();
}

const std::string kHead = "#version 450\nlayout(local_size_x = 32) in;\nlayout(std430, set = 0, binding = 0) readonly buffer Data { uint data[]; };\n"
                          "layout(std430, set = 0, binding = 0) readonly buffer Data4 { uvec4 data4[]; };\nlayout(std430, set = 0, binding = 1) writeonly buffer Result { uint result[]; };\n";

class LoadsTest : public testing::TestWithParam<Loads> {};

TEST_P(LoadsTest, LinesAreThoseCountedByHand) {
  const Loads& one = GetParam();
  const simulator::Report report = run(kHead + "void main() { uint self = gl_LocalInvocationID.x; result[self] = data[" + one.address + "]; }");
  ASSERT_EQ(report.accesses.size(), 2u);
  const simulator::AccessCount& load = report.accesses[0];
  EXPECT_EQ(load.executions, 1u);
  EXPECT_EQ(load.lanes, 32u);
  EXPECT_EQ(load.bytes, one.bytes);
  EXPECT_EQ(load.lane_bytes, 128u);
  EXPECT_EQ(load.sectors32, one.sectors32);
  EXPECT_EQ(load.lines64, one.lines64);
  EXPECT_EQ(load.lines128, one.lines128);
  EXPECT_EQ(load.ideal_lines64, (one.bytes + 63) / 64);
  EXPECT_EQ(report.accesses[1].lines64, 2u) << "the store";
}

INSTANTIATE_TEST_SUITE_P(All, LoadsTest, testing::ValuesIn(kLoads), [](const auto& test) { return std::string(test.param.name); });

class BanksTest : public testing::TestWithParam<Banks> {};

TEST_P(BanksTest, RoundsAreThoseCountedByHand) {
  const Banks& one = GetParam();
  const simulator::Report report = run(kHead + "shared uint tile[1088];\nvoid main() { uint self = gl_LocalInvocationID.x; for (uint i = self; i < 1088; i += 32) tile[i] = i; barrier(); result[self] = tile[" + one.address + "]; }");
  for (const simulator::AccessCount& count : report.accesses) {
    if (count.bank_rounds == 0) continue;
    const bool is_load = count.kind == simulator::AccessCount::Kind::kLoad;
    EXPECT_EQ(count.bank_rounds, is_load ? one.rounds : 34u);
    EXPECT_EQ(count.ideal_bank_rounds, is_load ? one.ideal : 34u);
  }
  EXPECT_EQ(report.barriers, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, BanksTest, testing::ValuesIn(kBanks), [](const auto& test) { return std::string(test.param.name); });

TEST(CountsTest, VectorsAreOneAccess) {
  const simulator::Report report = run(kHead + "void main() { uint self = gl_LocalInvocationID.x; uvec4 v = data4[self]; result[self] = v.x + v.y + v.z + v.w; }");
  ASSERT_EQ(report.accesses.size(), 2u);
  EXPECT_EQ(report.accesses[0].executions, 1u);
  EXPECT_EQ(report.accesses[0].lines64, 8u);
  EXPECT_EQ(report.accesses[0].bytes, 512u);
}

TEST(CountsTest, ChainsOfLoads) {
  EXPECT_EQ(run(kHead + "void main() { uint self = gl_LocalInvocationID.x; result[self] = data[self] + data[self + 32]; }").dependent_loads, 1u);
  EXPECT_EQ(run(kHead + "void main() { uint self = gl_LocalInvocationID.x; result[self] = data[data[data[self]]]; }").dependent_loads, 3u);
  // A load behind a branch waits for what the branch hangs on.
  EXPECT_EQ(run(kHead + "void main() { uint self = gl_LocalInvocationID.x; uint x = 0; if (data[0] == 0) x = data[self]; result[self] = x; }").dependent_loads, 2u);
  EXPECT_EQ(run(kHead + "void main() { uint self = gl_LocalInvocationID.x; result[self] = data[self] + data[self + 32] * data[self + 64]; }").loads_in_flight, 3u);
}

TEST(CountsTest, IdleLanesAreThoseThatAreOff) {
  const simulator::Report half = run(kHead + "void main() { uint self = gl_LocalInvocationID.x; uint x = data[self]; if (self < 16) { for (uint i = 0; i < 1000; ++i) x = x * 3 + i; } result[self] = x; }");
  EXPECT_NEAR(half.idle_lanes(), 0.5, 0.01);
  const simulator::Report all = run(kHead + "void main() { uint self = gl_LocalInvocationID.x; uint x = data[self]; for (uint i = 0; i < 1000; ++i) x = x * 3 + i; result[self] = x; }");
  EXPECT_EQ(all.idle_lanes(), 0.0);
  EXPECT_EQ(all.divergent_operations, 0u);
}

}  // namespace
}  // namespace rondo::counts_test
