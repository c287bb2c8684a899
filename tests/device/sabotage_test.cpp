// The checker is checked: kernels that are wrong on purpose (tests/sabotage) must be reported, by name.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "graph/hazards.h"
#include "graph/lowering.h"
#include "tests/device/faults.h"
#include "tests/device/sabotages.h"
#include "tests/support/device_environment.h"
#include "tools/check/check.h"

namespace rondo::tests::sabotage_test {
namespace {

/// "op/kernel" of runs that failed, in the table's order until all of `expected` have.
std::set<std::string> failed_kernels(runtime::Device& device, const Sabotage& sabotage, const std::set<std::string>& expected) {
  check::CheckOptions options;
  options.ops = {sabotage.op};
  options.kernels = {sabotage.kernels.begin(), sabotage.kernels.end()};
  options.repeats = 1;
  std::set<std::string> failed;
  const auto on_result = [&](const check::CheckResult& result, std::size_t, std::size_t) {
    if (result.outcome == check::Outcome::kFailed) failed.insert(result.run.op + "/" + result.run.kernel);
    return !std::includes(failed.begin(), failed.end(), expected.begin(), expected.end());
  };
  const Result<check::CheckReport> report = check::run_check(device, options, on_result);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return failed;
}

class SabotageTest : public ::testing::TestWithParam<Sabotage> {};

TEST_P(SabotageTest, IsReportedByTheKernelsName) {
  const Sabotage& sabotage = GetParam();
  const auto device = make_second_device(test_runtime_device(), [](runtime::Device::Parts&) {});
  const ReplacedShader replaced(*device, sabotage.shader, sabotage.path);
  std::set<std::string> expected;
  for (const char* kernel : sabotage.kernels) expected.insert(std::string(sabotage.op) + "/" + kernel);
  EXPECT_EQ(failed_kernels(*device, sabotage, expected), expected);
}

/// Those that single operators show.
std::vector<Sabotage> sabotages_of_operators() {
  std::vector<Sabotage> found;
  for (const Sabotage& one : sabotages()) {
    if (!one.kernels.empty()) found.push_back(one);
  }
  return found;
}

INSTANTIATE_TEST_SUITE_P(Kernels, SabotageTest, ::testing::ValuesIn(sabotages_of_operators()), [](const ::testing::TestParamInfo<Sabotage>& each) { return std::string(each.param.name); });

/// A barrier that is skipped between two dispatches: the hazard checker names both.
TEST(SabotageTest, ASkippedBarrierIsAHazardBetweenTwoKernels) {
  const Result<check::CaseText> text = check::parse_case("attention query (1, 4, 1, 64), key f16 (1, 2, 257, 64), value f16 (1, 2, 257, 64), causal");
  ASSERT_TRUE(text.ok());
  Result<check::OpCase> built = check::build_case(*text, check::Values::kRandom, 1);
  ASSERT_TRUE(built.ok());
  std::uint32_t buffer = 1;
  for (std::size_t i = 0; i < built->graph.n_storages(); ++i) {
    graph::Storage& storage = built->graph.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kActivation) storage.place = {buffer++, 0, storage.size_bytes};
  }
  graph::LoweringOptions options;
  options.forced_kernels["attention"] = "split";
  Result<graph::Lowered> lowered = graph::lower(built->graph, test_runtime_device().caps(), options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().message();
  const graph::SequencedProgram once[] = {{&lowered->program, true}};
  EXPECT_TRUE(graph::find_hazards(once).empty());
  ASSERT_EQ(lowered->program.dispatches.size(), 2u);
  lowered->program.dispatches[1].barrier_before = false;
  const std::vector<graph::Hazard> hazards = graph::find_hazards(once);
  ASSERT_FALSE(hazards.empty());
  EXPECT_NE(hazards[0].earlier.find("attention split"), std::string::npos) << hazards[0].earlier;
  EXPECT_NE(hazards[0].later.find("attention combine"), std::string::npos) << hazards[0].later;
}

}  // namespace
}  // namespace rondo::tests::sabotage_test
