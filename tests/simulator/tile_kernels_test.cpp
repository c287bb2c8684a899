// Kernels that make tiles, of cooperative matrices and of integer dot products, each case of check lane by lane: results, races,
// undefined values; tiles as large as they may be. RONDO_TEST_SPIRV_TOOLS as in matrices_test.cpp; with RONDO_TEST_THOROUGH=1 also
// matrices of 8 lanes, which newer lavapipe executes, and of 64.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "tests/simulator/glsl.h"
#include "tools/check/check.h"
#include "tools/simulator/case_run.h"

namespace rondo::tile_kernels_test {
namespace {

runtime::DeviceCaps caps_of(std::uint32_t lanes) {
  runtime::DeviceCaps caps = simulator::simulated_caps(lanes, false, true);
  caps.cores = 1;  // so that tiles are as large as they may be
  caps.max_shared_bytes = 49152;
  return caps;
}

/// As many cores as it takes for columns to be split.
runtime::DeviceCaps caps_of_many_cores(std::uint32_t lanes) {
  runtime::DeviceCaps caps = caps_of(lanes);
  caps.cores = 64;
  return caps;
}

/// What `options` select on such a device, of which more than `least` must pass; `rows_of` tells a tile's. Returns the most that a tile has.
template <typename RowsOf>
std::uint32_t check_some(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const check::CheckOptions& options, std::size_t least, const RowsOf& rows_of) {
  std::string found;
  std::uint32_t most_rows = 0;
  const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
    Result<check::DeviceRun> run = simulator::simulate_case(modules, op, how, caps, lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
    for (const runtime::Kernel& one : run.ok() ? run->program.kernels : std::vector<runtime::Kernel>()) most_rows = std::max(most_rows, rows_of(one));
    return run;
  };
  const auto report = check::run_check(run_case, options, [&](const check::CheckResult& result, std::size_t, std::size_t) {
    if (result.outcome == check::Outcome::kFailed) ADD_FAILURE() << result.run.text << ", " << check::values_name(result.run.values) << ": " << result.complaint;
    return true;
  });
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_GT(report.ok() ? report->n_passed : 0, least);
  EXPECT_EQ(found, "");
  return most_rows;
}

/// All cases of one kernel of `ops`.
template <typename RowsOf>
std::uint32_t check_all(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel, const std::vector<std::string>& ops, bool brief, std::size_t least, const RowsOf& rows_of) {
  check::CheckOptions options;
  options.kernels = {kernel};
  options.ops = ops;
  options.brief = brief;
  return check_some(modules, caps, lanes, options, least, rows_of);
}

/// These cases with `kernel`, which must have dispatches of `needed`, too.
void check_with(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel, runtime::Shader needed, std::span<const char* const> texts) {
  for (const char* text : texts) {
    if (kernel == std::string_view("dot_tiled") && std::string_view(text).find("weight f32") != std::string_view::npos) continue;
    check::CheckOptions options;
    options.kernels = {kernel};
    options.text = text;
    options.brief = true;
    bool is_there = false;
    const auto rows_of = [&](const runtime::Kernel& one) {
      is_there |= one.shader == needed;
      return 0u;
    };
    check_some(modules, caps, lanes, options, 0, rows_of);
    EXPECT_TRUE(is_there) << text;
  }
}

/// Sums of which several workgroups make parts.
void check_split(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel) {
  constexpr const char* kTexts[] = {"linear input (9, 545), weight f32 (13, 545), bias (13), activation gelu, residual (9, 13)", "linear_glu input (9, 544), weight q8_0 (82, 544), activation gelu_tanh"};
  check_with(modules, caps, lanes, kernel, runtime::Shader::linear_combine, kTexts);
}

/// Rows of several experts, of which some have more than a tile's.
void check_experts(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel) {
  constexpr const char* kTexts[] = {"expert_linear input (141, 64), weight q8_0 (123, 64), experts (141, 1), count 3, bias (123)",
                                    "expert_linear_glu input (37, 96), weight q4_0 (164, 96), experts (37, 3), count 2, valid [29]"};
  check_with(modules, caps, lanes, kernel, runtime::Shader::expert_tiles, kTexts);
}

/// Simulates the case of a text by this kernel, with random numbers.
void simulate(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel, std::string_view text, const simulator::OnDispatch& on_dispatch) {
  const auto parsed = check::parse_case(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const auto op = check::build_case(*parsed, check::Values::kRandom, 1);
  check::RunOptions how;
  how.kernels[parsed->op] = kernel;
  const auto run = simulator::simulate_case(modules, *op, how, caps, lanes, on_dispatch);
  ASSERT_TRUE(run.ok()) << run.status().message();
}

/// What predictions of time take to go through shared memory is what lanes move there: no more, and besides only what is done once for a tile. What linears store has banks of its own.
void check_shared_memory(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes) {
  constexpr const char* kTexts[] = {"linear input (128, 1024), weight f16 (128, 1024)", "linear_glu input (128, 1024), weight q8_0 (128, 1024)", "matmul a (128, 1024), b (128, 1024), transpose_b",
                                    "attention query (1, 1, 64, 128), key f16 (1, 1, 1024, 128), value f16 (1, 1, 1024, 128)"};
  for (const char* text : kTexts) {
    SCOPED_TRACE(text);
    const double share = std::string_view(text).starts_with("attention") ? 0.5 : 1;  // of the keys that a cost is of
    double said = 0, moved = 0;
    std::uint64_t rounds = 0, ideal_rounds = 0;  // of stores
    simulate(modules, caps, lanes, "matrix", text, [&](const simulator::SimulatedDispatch& done) {
      said += done.dispatch.cost.shared_bytes / share;
      if (done.dispatch.cost.shared_bytes == 0) return;
      for (const simulator::AccessCount& access : done.report.accesses) {
        if (done.module.variables[access.variable].space != simulator::Space::kShared) continue;
        moved += static_cast<double>(access.lane_bytes);
        if (access.kind != simulator::AccessCount::Kind::kStore) continue;
        rounds += access.bank_rounds, ideal_rounds += access.ideal_bank_rounds;
      }
    });
    EXPECT_GT(said, 0);
    EXPECT_GE(moved, said);
    EXPECT_LE(moved, 1.25 * said);
    if (std::string_view(text).starts_with("linear")) {
      EXPECT_EQ(rounds, ideal_rounds) << "banks conflict";
    }
  }
}

/// Of keys of an attention, what a kernel loads.
std::uint64_t key_bytes(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel, const std::string& text) {
  constexpr std::uint32_t kKeyBinding = 2;
  std::uint64_t bytes = 0;
  simulate(modules, caps, lanes, kernel, text, [&](const simulator::SimulatedDispatch& done) {
    for (const simulator::AccessCount& access : done.report.accesses) {
      const simulator::Variable& variable = done.module.variables[access.variable];
      const bool of_keys = done.dispatch.label.starts_with("attention ") && variable.space == simulator::Space::kBuffer && variable.binding == kKeyBinding;
      if (of_keys && access.kind == simulator::AccessCount::Kind::kLoad) bytes += access.lane_bytes;
    }
  });
  return bytes;
}

/// Blocks that a mask hides, every second of a case's, are not loaded. A boolean one hides a NaN besides, in a block that is seen, whose rows "matrix" takes in f32.
void check_masked_blocks(simulator::ModuleCache& modules, const runtime::DeviceCaps& caps, std::uint32_t lanes, const char* kernel, int queries) {
  for (const char* mask : {"mask bool (1, 1024)", "mask (2, 1, 1024)"}) {
    if (kernel == std::string_view("matrix") && std::string_view(mask).starts_with("mask bool")) continue;
    SCOPED_TRACE(fmt::format("{} {}", kernel, mask));
    const std::string text = fmt::format("attention query (1, 2, {}, 64), key f16 (1, 1, 1024, 64), value f16 (1, 1, 1024, 64)", queries);
    const auto all = static_cast<double>(key_bytes(modules, caps, lanes, kernel, text));
    EXPECT_GT(all, 0);
    EXPECT_LE(static_cast<double>(key_bytes(modules, caps, lanes, kernel, text + ", " + mask)), 0.55 * all);
  }
}

struct Machine {
  std::uint32_t lanes;
  runtime::MatrixShape shape;
  bool thorough_only = false;
};

constexpr Machine kMachines[] = {{8, {8, 8, 16}}, {16, {8, 16, 16}}, {32, {16, 16, 16}}, {64, {16, 16, 16}, true}};

TEST(MatrixKernelsTest, AreRightAndWithoutFindings) {
  const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");
  if (!tools) GTEST_SKIP() << "RONDO_TEST_SPIRV_TOOLS is not set";
  simulator::ModuleCache modules(simulator::Loops::kKept, tools);
  const auto rows_of = [](const runtime::Kernel& kernel) { return kernel.shader == runtime::Shader::linear_matrix ? kernel.constants[3] * kernel.constants[5] * kernel.constants[11] : 0; };
  const auto rows_of_matmul = [](const runtime::Kernel& kernel) { return kernel.shader == runtime::Shader::matmul_matrix ? kernel.constants[3] * kernel.constants[5] * kernel.constants[8] : 0; };
  check::CheckOptions large;
  large.kernels = {"matrix"};
  large.text = "matmul a (113, 64), b (141, 64), transpose_b";
  large.brief = true;
  for (const Machine& machine : kMachines) {
    if (machine.thorough_only && !std::getenv("RONDO_TEST_THOROUGH")) continue;
    SCOPED_TRACE(machine.lanes);
    runtime::DeviceCaps caps = caps_of(machine.lanes);
    caps.matrices = {machine.shape};
    // Numbers that do not suit f16 take other paths, which are the same for all of them.
    EXPECT_EQ(check_all(modules, caps, machine.lanes, "matrix", {"linear", "linear_glu"}, machine.lanes != 32, machine.lanes != 32 ? 100 : 200, rows_of), 128u);
    for (const char* op : {"attention", "matmul"}) check_all(modules, caps, machine.lanes, "matrix", {op}, true, 50, rows_of);
    EXPECT_EQ(check_some(modules, caps, machine.lanes, large, 1, rows_of_matmul), 128u);
    check_experts(modules, caps, machine.lanes, "matrix");
    check_shared_memory(modules, caps, machine.lanes);
    check_masked_blocks(modules, caps, machine.lanes, "matrix", 32);
    caps.cores = caps_of_many_cores(machine.lanes).cores;
    check_split(modules, caps, machine.lanes, "matrix");
  }
}

/// Of chunks of many columns; a device of one core is filled by few rows.
TEST(FewRowsTest, LanesMayHaveTheSameColumns) {
  simulator::ModuleCache modules(simulator::Loops::kKept);
  const auto row_lanes_of = [](const runtime::Kernel& kernel) { return kernel.shader == runtime::Shader::linear_subgroup ? kernel.constants[15] : 0; };
  for (const std::uint32_t lanes : {8u, 16u, 32u, 128u}) {
    SCOPED_TRACE(lanes);
    EXPECT_EQ(check_all(modules, caps_of(lanes), lanes, "subgroup", {"linear", "linear_glu", "expert_linear"}, true, 100, row_lanes_of), 4u);
  }
}

TEST(MaskedAttentionTest, LoadsNoKeysThatAllRowsAreHiddenFrom) {
  constexpr std::uint32_t kLanes = 32;
  simulator::ModuleCache modules(simulator::Loops::kKept);
  for (const char* kernel : {"tiled", "split", "registers"}) check_masked_blocks(modules, caps_of(kLanes), kLanes, kernel, 32);
  check_masked_blocks(modules, caps_of(kLanes), kLanes, "subgroup", 1);
}

/// On Intel's subgroups, where invocations have half as many rows as elsewhere, and workgroups share wide values; keys split besides.
TEST(RegisterAttentionTest, IsRightAndWithoutFindings) {
  constexpr std::uint32_t kLanes = 8;
  simulator::ModuleCache modules(simulator::Loops::kKept);
  std::uint32_t most_parts = 0;
  const auto rows_of = [&](const runtime::Kernel& kernel) {
    if (kernel.shader != runtime::Shader::attention_registers) return 0u;
    most_parts = std::max(most_parts, kernel.constants[9]);
    return kernel.constants[0] / 16 * kernel.constants[7];
  };
  EXPECT_EQ(check_all(modules, caps_of(kLanes), kLanes, "registers", {"attention"}, true, 50, rows_of), 32u);
  EXPECT_EQ(most_parts, 2u);
  constexpr const char* kTexts[] = {"attention query (1, 2, 9, 64), key f16 (1, 1, 300, 64), value f16 (1, 1, 300, 328), relative_value (9, 328)"};
  check_with(modules, caps_of_many_cores(kLanes), kLanes, "registers", runtime::Shader::attention_combine, kTexts);
}

/// Numbers in f16, two products by an instruction; of attention, too.
TEST(HalfTilesTest, AreRightAndWithoutFindings) {
  const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");
  if (!tools) GTEST_SKIP() << "RONDO_TEST_SPIRV_TOOLS is not set";
  simulator::ModuleCache modules(simulator::Loops::kKept, tools);
  const auto rows_of = [](const runtime::Kernel& kernel) { return runtime::f16_variant(kernel.shader) == runtime::Shader::linear_half_tiled_f16 ? 16 * kernel.constants[2] : 0; };
  for (const std::uint32_t lanes : {32u, 64u}) {
    SCOPED_TRACE(lanes);
    runtime::DeviceCaps caps = caps_of(lanes);
    caps.half_dot = true;
    EXPECT_EQ(check_all(modules, caps, lanes, "half_tiled", {"linear", "linear_glu"}, lanes != 32, lanes != 32 ? 100 : 200, rows_of), 64u);
    check_experts(modules, caps, lanes, "half_tiled");
    check_all(modules, caps, lanes, "half_tiled", {"patch_embed"}, true, 5, rows_of);
    check_all(modules, caps, lanes, "half_tiled", {"matmul"}, true, 50, rows_of);
    check_all(modules, caps, lanes, "half_subgroup", {"attention"}, lanes != 32, 30, rows_of);
    check_masked_blocks(modules, caps, lanes, "half_subgroup", 1);
    caps.cores = caps_of_many_cores(lanes).cores;
    check_split(modules, caps, lanes, "half_tiled");
  }
}

class TilesTest : public testing::TestWithParam<std::uint32_t> {};

TEST_P(TilesTest, OfDotsAreRightAndWithoutFindings) {
  simulator::ModuleCache modules(simulator::Loops::kKept);
  const auto rows_of = [](const runtime::Kernel& kernel) { return kernel.shader == runtime::Shader::linear_dot_tiled ? 16 * kernel.constants[3] : 0; };
  EXPECT_EQ(check_all(modules, caps_of(GetParam()), GetParam(), "dot_tiled", {"linear", "linear_glu"}, false, 200, rows_of), GetParam() == 64 ? 128u : 64u);
  check_experts(modules, caps_of(GetParam()), GetParam(), "dot_tiled");
  check_split(modules, caps_of_many_cores(GetParam()), GetParam(), "dot_tiled");
}

/// The largest take long: all operands of linear where they are smallest, the others' with GLU, and one that needs the largest.
TEST_P(TilesTest, OfFloatsAreRightAndWithoutFindings) {
  simulator::ModuleCache modules(simulator::Loops::kKept);
  const std::uint32_t lanes = GetParam();
  const auto rows_of = [](const runtime::Kernel& kernel) { return runtime::f16_variant(kernel.shader) == runtime::Shader::linear_tiled_f16 ? kernel.constants[0] / kernel.constants[2] * kernel.constants[3] : 0; };
  if (lanes == 8) {
    EXPECT_EQ(check_all(modules, caps_of(lanes), lanes, "tiled", {"linear"}, true, 100, rows_of), 64u);
  }
  check_all(modules, caps_of(lanes), lanes, "tiled", {"linear_glu"}, true, 5, rows_of);
  check::CheckOptions large;
  large.kernels = {"tiled"};
  large.text = "linear input (113, 257), weight f16 (141, 257)";
  large.brief = true;
  EXPECT_EQ(check_some(modules, caps_of(lanes), lanes, large, 1, rows_of), lanes == 64 ? 128u : 64u);
  check_experts(modules, caps_of(lanes), lanes, "tiled");
  check_split(modules, caps_of_many_cores(lanes), lanes, "tiled");
}

/// Factors along the depth and across it, by vectors of four and by elements: all operands where it takes seconds, and the largest tiles.
TEST_P(TilesTest, OfMatmulAreRightAndWithoutFindings) {
  simulator::ModuleCache modules(simulator::Loops::kKept);
  const std::uint32_t lanes = GetParam();
  const auto rows_of = [](const runtime::Kernel& kernel) { return runtime::f16_variant(kernel.shader) == runtime::Shader::matmul_tiled_f16 ? kernel.constants[0] / kernel.constants[1] * kernel.constants[2] : 0; };
  if (lanes <= 16) check_all(modules, caps_of(lanes), lanes, "tiled", {"matmul"}, true, 50, rows_of);
  for (const char* large : {"matmul a (113, 64), b (141, 64), transpose_b", "matmul a (41, 113), b (41, 141), transpose_a, scale 0.125"}) {
    SCOPED_TRACE(large);
    check::CheckOptions options;
    options.kernels = {"tiled"};
    options.text = large;
    options.brief = true;
    EXPECT_EQ(check_some(modules, caps_of(lanes), lanes, options, 1, rows_of), lanes == 64 ? 128u : 64u);
  }
  check::CheckOptions few;  // half of the invocations have nothing to load of a tile of so few rows
  few.kernels = {"tiled"};
  few.text = "matmul a (64, 7), b (64, 41), transpose_a";
  few.brief = true;
  EXPECT_LE(check_some(modules, caps_of(lanes), lanes, few, 1, rows_of), 16u);
}

INSTANTIATE_TEST_SUITE_P(Lanes, TilesTest, testing::Values(8u, 16u, 32u, 64u));

}  // namespace
}  // namespace rondo::tile_kernels_test
