// Kernels with cooperative matrices, each case of check lane by lane: results, races, undefined values. RONDO_TEST_SPIRV_TOOLS as in
// matrices_test.cpp.
#include <cstdlib>

#include "tests/simulator/glsl.h"
#include "tools/check/check.h"
#include "tools/simulator/case_run.h"

namespace rondo::matrix_kernels_test {
namespace {

class MatrixKernelsTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(MatrixKernelsTest, AreRightAndWithoutFindings) {
  const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");
  if (!tools) GTEST_SKIP() << "RONDO_TEST_SPIRV_TOOLS is not set";
  simulator::ModuleCache modules(tools);
  check::CheckOptions options;
  options.kernels = {"matrix"};
  std::string found;
  const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
    const runtime::DeviceCaps caps = simulator::simulated_caps(GetParam(), false, true);
    return simulator::simulate_case(modules, op, how, caps, GetParam(), [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
  };
  const auto report = check::run_check(run_case, options, [&](const check::CheckResult& result, std::size_t, std::size_t) {
    if (result.outcome == check::Outcome::kFailed) ADD_FAILURE() << result.run.text << ", " << check::values_name(result.run.values) << ": " << result.complaint;
    return true;
  });
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report->n_passed, 200u);
  EXPECT_EQ(found, "");
}

INSTANTIATE_TEST_SUITE_P(Lanes, MatrixKernelsTest, testing::Values(8u, 32u, 64u));

}  // namespace
}  // namespace rondo::matrix_kernels_test
