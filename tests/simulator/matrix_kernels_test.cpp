// Kernels with cooperative matrices, each case of check lane by lane: results, races, undefined values. RONDO_TEST_SPIRV_TOOLS as in
// matrices_test.cpp.
#include <algorithm>
#include <cstdlib>

#include "tests/simulator/glsl.h"
#include "tools/check/check.h"
#include "tools/simulator/case_run.h"

namespace rondo::matrix_kernels_test {
namespace {

struct Machine {
  std::uint32_t lanes;
  runtime::MatrixShape shape;
  std::uint32_t most_rows;  ///< of a tile
};

class MatrixKernelsTest : public testing::TestWithParam<Machine> {};

TEST_P(MatrixKernelsTest, AreRightAndWithoutFindings) {
  const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");
  if (!tools) GTEST_SKIP() << "RONDO_TEST_SPIRV_TOOLS is not set";
  simulator::ModuleCache modules(tools);
  std::string found;
  std::uint32_t most_rows = 0;
  const Machine& machine = GetParam();
  const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
    runtime::DeviceCaps caps = simulator::simulated_caps(machine.lanes, false, true);
    caps.matrices = {machine.shape};
    caps.cores = 1;  // so that tiles are as large as they may be
    caps.max_shared_bytes = 49152;
    Result<check::DeviceRun> run = simulator::simulate_case(modules, op, how, caps, machine.lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
    for (const runtime::Kernel& kernel : run.ok() ? run->program.kernels : std::vector<runtime::Kernel>()) {
      if (kernel.shader == runtime::Shader::linear_matrix) most_rows = std::max(most_rows, kernel.constants[3] * kernel.constants[5] * kernel.constants[11]);
    }
    return run;
  };
  for (const bool of_attention : {false, true}) {
    check::CheckOptions options;
    options.kernels = {"matrix"};
    options.ops = of_attention ? std::vector<std::string>{"attention"} : std::vector<std::string>{"linear", "linear_glu"};
    options.brief = of_attention;  // its values decide little
    const auto report = check::run_check(run_case, options, [&](const check::CheckResult& result, std::size_t, std::size_t) {
      if (result.outcome == check::Outcome::kFailed) ADD_FAILURE() << result.run.text << ", " << check::values_name(result.run.values) << ": " << result.complaint;
      return true;
    });
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_GT(report->n_passed, of_attention ? 50u : 200u);
  }
  EXPECT_EQ(found, "");
  EXPECT_EQ(most_rows, machine.most_rows);
}

INSTANTIATE_TEST_SUITE_P(Lanes, MatrixKernelsTest, testing::Values(Machine{8, {8, 8, 16}, 32}, Machine{16, {8, 16, 16}, 64}, Machine{32, {16, 16, 16}, 128}, Machine{64, {16, 16, 16}, 128}));

}  // namespace
}  // namespace rondo::matrix_kernels_test
