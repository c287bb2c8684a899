// The dispatch with which pipelines are warmed up, of every kernel that cases get: whatever they read before they look at the step
// state lies in the buffer, and nothing is written but tables, which say that there is nothing to do. And where kernels have vectors in shared memory.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "graph/kernel_choice.h"
#include "models/graph_run.h"
#include "runtime/fmt.h"
#include "runtime/warm_up.h"
#include "tests/simulator/glsl.h"
#include "tools/check/case_text.h"
#include "tools/check/cases.h"
#include "tools/simulator/case_run.h"

namespace rondo::warm_up_test {
namespace {

/// Vectors in shared memory that are not at a multiple of their size where a driver puts variables right behind each other, as NVK does in the order of the module: it
/// loads and stores them word by word, and matrices from where the GPU can't.
std::string off_their_places(const simulator::Module& module) {
  std::string off;
  std::uint32_t end = 0;
  for (const simulator::Variable& variable : module.variables) {
    if (variable.space != simulator::Space::kShared) continue;
    if (variable.vector_bytes != 0 && end % variable.vector_bytes != 0) off += fmt::format("{} at {}; ", variable.name, end);
    end += variable.size_bytes;
  }
  return off;
}

TEST(SharedVectorsTest, OffTheirPlacesAreFound) {
  simulator::Module module;
  module.variables = {{"flag", simulator::Space::kShared, 0, 4}, {"tiles", simulator::Space::kShared, 0, 64, 0, 16}};
  EXPECT_EQ(off_their_places(module), "tiles at 4; ");
  module.variables[0].size_bytes = 16;
  EXPECT_EQ(off_their_places(module), "");
}

class WarmUpTest : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(WarmUpTest, StaysWithinItsBuffer) {
  const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");  // without, cooperative matrices can't be read
  simulator::ModuleCache modules(simulator::Loops::kKept), with_matrices(simulator::Loops::kKept, tools ? tools : "");
  std::set<std::string> seen;
  const auto warm_up = [&](const runtime::Kernel& kernel) {
    if (kernel.shader == runtime::Shader::attention_tables) return;  // they are made whatever the state is
    if (!seen.insert(fmt::format("{} {} {}", runtime::shader_name(kernel.shader), fmt::join(kernel.constants, ","), kernel.subgroup_size)).second) return;
    std::vector<simulator::Buffer> buffers(1);
    buffers[0].bytes.resize(runtime::kWarmUpBytes);
    const std::vector<std::byte> before = buffers[0].bytes;
    const Status status = simulator::simulate_program(graph::rounds_to_halves(kernel) ? with_matrices : modules, runtime::warm_up_program(kernel), buffers, GetParam(), true, [&](const simulator::SimulatedDispatch& done) {
      EXPECT_EQ(simulator_test::all_findings(done.report), "") << runtime::shader_name(kernel.shader);
      EXPECT_EQ(off_their_places(done.module), "") << runtime::shader_name(kernel.shader);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(buffers[0].bytes == before || kernel.shader == runtime::Shader::expert_tiles) << runtime::shader_name(kernel.shader);
  };
  for (const int machine : {0, 1, 2}) {  // the second is a CPU, the third has no matrix units
    runtime::DeviceCaps caps = simulator::simulated_caps(GetParam(), machine == 1, tools != nullptr);
    if (machine == 2) caps.matrices.clear();
    for (const std::string& text : check::all_cases(false)) {
      const Result<check::CaseText> parsed = check::parse_case(text);
      ASSERT_TRUE(parsed.ok()) << parsed.status().message();
      const Result<check::OpCase> built = check::build_case(*parsed, check::Values::kRandom, 1);
      ASSERT_TRUE(built.ok()) << built.status().message();
      for (const Activations activations : {Activations::kF32, Activations::kQ8}) {
        graph::Graph graph = built->graph;
        models::GraphRunOptions options;
        options.lowering.activations = activations;
        const Result<models::GraphPlan> plan = models::plan_graph(graph, caps, options);
        ASSERT_TRUE(plan.ok()) << plan.status().message();
        for (const runtime::Kernel& kernel : plan->lowered.program.kernels) warm_up(kernel);
      }
    }
  }
  EXPECT_GT(seen.size(), 200u);
}

INSTANTIATE_TEST_SUITE_P(Lanes, WarmUpTest, ::testing::Values(64u));

}  // namespace
}  // namespace rondo::warm_up_test
