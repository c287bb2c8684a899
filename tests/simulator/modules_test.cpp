// What the simulator computes, beside C++ and beside the operators' references; and modules that it refuses.
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>

#include "graph/float16.h"
#include "tests/simulator/glsl.h"
#include "tests/support/rotation_chain.h"
#include "tests/support/rounding_chain.h"
#include "tools/check/check.h"
#include "tools/simulator/case_run.h"

namespace rondo::modules_test {
namespace {

using simulator_test::buffer_of_words;
using simulator_test::compile;
using simulator_test::launch_of;

const std::string kHead = "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\n#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n"
                          "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n#extension GL_EXT_spirv_intrinsics : require\n#extension GL_KHR_shader_subgroup_arithmetic : require\n#extension GL_KHR_shader_subgroup_ballot : require\n#extension GL_KHR_shader_subgroup_clustered : require\n"
                          "#extension GL_KHR_shader_subgroup_quad : require\n#extension GL_KHR_shader_subgroup_vote : require\n#extension GL_EXT_shader_subgroup_extended_types_int8 : require\n"
                          "layout(local_size_x_id = 0) in;\nlayout(constant_id = 1) const uint kFactor = 2u;\nlayout(std430, set = 0, binding = 0) readonly buffer Data { uint data[]; };\n"
                          "layout(std430, set = 0, binding = 1) writeonly buffer Result { uint result[]; };\nlayout(push_constant) uniform Push { uint n; };\n";

/// What 64 invocations write, of data 0, 3, 6, ...
std::vector<std::uint32_t> results_of(const std::string& expression, std::uint32_t lanes, const std::string& functions) {
  const std::uint32_t constants[] = {64, 5};
  const auto module = simulator::read_module(compile(kHead + functions + "void main() { uint self = gl_LocalInvocationID.x, x = data[self]; result[self] = " + expression + "; }"), {constants, 0, {}}, "kernel");
  EXPECT_TRUE(module.ok()) << module.status().message();
  std::vector<simulator::Buffer> buffers = {buffer_of_words(64, true, 3), buffer_of_words(64, false)};
  const std::uint32_t push = 7;
  const auto report = simulator::simulate(*module, buffers, launch_of(buffers, lanes, {1, 1, 1}, std::as_bytes(std::span(&push, 1))));
  EXPECT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(simulator_test::all_findings(*report), "");
  std::vector<std::uint32_t> words(64);
  std::memcpy(words.data(), buffers[1].bytes.data(), 256);
  return words;
}

void expect_each(const std::string& expression, const std::function<std::uint32_t(std::uint32_t)>& expected, std::uint32_t lanes = 32, const std::string& functions = "") {
  const std::vector<std::uint32_t> words = results_of(expression, lanes, functions);
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(words[i], expected(i)) << expression << ", invocation " << i;
}

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

TEST(ModulesTest, ArithmeticIsThatOfCpp) {
  expect_each("x * kFactor + n", [](std::uint32_t i) { return 3 * i * 5 + 7; });
  expect_each("(x - 50u) >> 3", [](std::uint32_t i) { return (3 * i - 50u) >> 3; });
  expect_each("uint((int(x) - 50) >> 3)", [](std::uint32_t i) { return static_cast<std::uint32_t>((static_cast<int>(3 * i) - 50) >> 3); });
  expect_each("uint((int(x) - 50) / 7)", [](std::uint32_t i) { return static_cast<std::uint32_t>((static_cast<int>(3 * i) - 50) / 7); });
  expect_each("bitfieldInsert(x, 5u, 3, 4)", [](std::uint32_t i) { return (3 * i & ~(15u << 3)) | 5u << 3; });
  expect_each("uint(findMSB(x + 1u)) + uint(bitCount(x))", [](std::uint32_t i) { return static_cast<std::uint32_t>(31 - std::countl_zero(3 * i + 1) + std::popcount(3 * i)); });
  expect_each("floatBitsToUint(fma(float(x), 0.1, -3.0))", [](std::uint32_t i) { return bits(std::fma(static_cast<float>(3 * i), 0.1f, -3.0f)); });
  expect_each("floatBitsToUint(float(x) * 0.1)", [](std::uint32_t i) { return bits(static_cast<float>(3 * i) * 0.1f); });
  expect_each("packHalf2x16(vec2(float(x), -1.0))", [](std::uint32_t i) { return 0xbc000000u | graph::float_to_half(static_cast<float>(3 * i)); });
}

TEST(ModulesTest, NarrowTypesAreAsNarrowAsTheyAre) {
  const auto half = [](float value) { return graph::half_to_float(graph::float_to_half(value)); };
  expect_each("floatBitsToUint(float(float16_t(x) * float16_t(0.1)))", [&](std::uint32_t i) { return bits(half(half(static_cast<float>(3 * i)) * half(0.1f))); });
  expect_each("floatBitsToUint(float(sqrt(float16_t(x))))", [&](std::uint32_t i) { return bits(half(std::sqrt(half(static_cast<float>(3 * i))))); });
  expect_each("uint(int(int8_t(x) * int8_t(3)))", [](std::uint32_t i) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<std::int8_t>(9 * i))); });
  expect_each("uint(uint8_t(x + 200u) >> 1)", [](std::uint32_t i) { return ((3 * i + 200u) & 255u) >> 1; });
  expect_each("uint(uint16_t(x) * uint16_t(1000))", [](std::uint32_t i) { return (3000 * i) & 0xffffu; });
  expect_each("uint(max(int16_t(x) - int16_t(50), int16_t(-20)))", [](std::uint32_t i) { return static_cast<std::uint32_t>(std::max(static_cast<int>(3 * i) - 50, -20)); });
}

TEST(ModulesTest, NarrowConstantsHaveTheirSign) {
  expect_each("uint(int(int8_t(x) + int8_t(-3)))", [](std::uint32_t i) { return static_cast<std::uint32_t>(std::int32_t{static_cast<std::int8_t>(3 * i - 3)}); });
  expect_each("uint(uint16_t(int16_t(-5)) + uint16_t(x))", [](std::uint32_t i) { return (0xfffbu + 3 * i) & 0xffffu; });
  expect_each("uint(int16_t(x) == int16_t(6) ? int16_t(-1) : int16_t(x))", [](std::uint32_t i) { return i == 2 ? ~0u : 3 * i; });
}

TEST(ModulesTest, FunctionsOfGlsl) {
  expect_each("floatBitsToUint(step(30.0, float(x)))", [](std::uint32_t i) { return bits(3 * i < 30 ? 0.0f : 1.0f); });
  expect_each("floatBitsToUint(smoothstep(32.0, 64.0, float(x)))", [](std::uint32_t i) {
    const float t = std::min(std::max((static_cast<float>(3 * i) - 32.0f) / 32.0f, 0.0f), 1.0f);
    return bits(t * t * (3.0f - 2.0f * t));
  });
  expect_each("floatBitsToUint(normalize(vec2(3.0, 4.0) * float(x + 1u)).y)", [](std::uint32_t i) { return bits(4.0f * static_cast<float>(3 * i + 1) / (5.0f * static_cast<float>(3 * i + 1))); });
  expect_each("floatBitsToUint(cross(vec3(1.0, 2.0, 3.0), vec3(4.0, float(x), 6.0)).z)", [](std::uint32_t i) { return bits(static_cast<float>(3 * i) - 8.0f); });
  expect_each("floatBitsToUint(distance(vec2(float(x)), vec2(float(x) + 3.0, float(x) - 4.0)))", [](std::uint32_t) { return bits(5.0f); });
}

TEST(ModulesTest, VariablesBeginWithTheirValues) {
  const std::string functions = "uint own[4] = {7u, 5u, 3u, 2u};\n";
  expect_each("0u; own[x % 4u] += self; result[self] = own[x % 4u] + own[self % 2u]", [](std::uint32_t i) {
    std::uint32_t own[] = {7, 5, 3, 2};
    own[3 * i % 4] += i;
    return own[3 * i % 4] + own[i % 2];
  }, 32, functions);
}

TEST(ModulesTest, DotProductsOfBytes) {
  const std::string functions = "spirv_instruction(extensions = [\"SPV_KHR_integer_dot_product\"], capabilities = [6019, 6018], id = 4450) int signed_dot(uint a, uint b, spirv_literal int format);\n"
                                "spirv_instruction(extensions = [\"SPV_KHR_integer_dot_product\"], capabilities = [6019, 6018], id = 4451) uint unsigned_dot(uint a, uint b, spirv_literal int format);\n";
  const auto dot = [](std::uint32_t a, std::uint32_t b, bool is_signed) {
    std::int32_t sum = 0;
    for (std::uint32_t bit = 0; bit < 32; bit += 8) {
      const std::uint32_t x = (a >> bit) & 255u, y = (b >> bit) & 255u;
      sum += is_signed ? static_cast<std::int8_t>(x) * static_cast<std::int8_t>(y) : static_cast<std::int32_t>(x * y);
    }
    return static_cast<std::uint32_t>(sum);
  };
  expect_each("uint(signed_dot(x * 0x01fe03f0u, 0x80ff7f01u + x, 0))", [&](std::uint32_t i) { return dot(3 * i * 0x01fe03f0u, 0x80ff7f01u + 3 * i, true); }, 32, functions);
  expect_each("unsigned_dot(x * 0x01fe03f0u, 0x80ff7f01u + x, 0)", [&](std::uint32_t i) { return dot(3 * i * 0x01fe03f0u, 0x80ff7f01u + 3 * i, false); }, 32, functions);
}

TEST(ModulesTest, ControlFlowOfEachInvocationIsItsOwn) {
  expect_each("0u; uint s = 0u; for (uint i = 0u; i < self; ++i) { if (i % 3u == 1u) continue; if (i > 40u) break; s += i; } result[self] = s", [](std::uint32_t self) {
    std::uint32_t s = 0;
    for (std::uint32_t i = 0; i < self; ++i) {
      if (i % 3 == 1) continue;
      if (i > 40) break;
      s += i;
    }
    return s;
  });
  expect_each("0u; uint s = 0u; switch (self % 4u) { case 0u: s += 1u; case 1u: s += 10u; break; case 2u: s = 5u; break; default: s = self; } result[self] = s", [](std::uint32_t self) {
    const std::uint32_t of[] = {11, 10, 5, self};
    return of[self % 4];
  });
  expect_each("0u; uint a = self, b = 1u; for (uint i = 0u; i < 5u; ++i) { uint t = a; a = b; b = t + b; } result[self] = a * 1000u + b", [](std::uint32_t self) {
    std::uint32_t a = self, b = 1;
    for (int i = 0; i < 5; ++i) {
      const std::uint32_t t = a;
      a = b;
      b = t + b;
    }
    return a * 1000 + b;
  });
}

TEST(ModulesTest, SubgroupsShareWhatTheyShould) {
  for (const std::uint32_t lanes : {4u, 8u, 16u, 32u, 64u}) {
    expect_each("subgroupAdd(x)", [&](std::uint32_t i) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = i / lanes * lanes; k < (i / lanes + 1) * lanes; ++k) sum += 3 * k;
      return sum;
    }, lanes);
    expect_each("subgroupClusteredMax(x, 4u)", [](std::uint32_t i) { return 3 * (i / 4 * 4 + 3); }, lanes);
    expect_each("subgroupBallotBitCount(subgroupBallot(self % 2u == 0u))", [&](std::uint32_t) { return lanes / 2; }, lanes);
    expect_each("subgroupBallotBitCount(uvec4(~0u)) * 100u + subgroupBallotFindMSB(uvec4(~0u))", [&](std::uint32_t) { return lanes * 100 + lanes - 1; }, lanes);
    expect_each("subgroupBallotInclusiveBitCount(subgroupBallot(self % 2u == 0u))", [&](std::uint32_t i) { return i % lanes / 2 + 1; }, lanes);
    expect_each("subgroupBallotExclusiveBitCount(subgroupBallot(self % 2u == 0u))", [&](std::uint32_t i) { return (i % lanes + 1) / 2; }, lanes);
    expect_each("uint(subgroupInverseBallot(uvec4(0x0a0a0a0au))) + 2u * uint(subgroupBallotBitExtract(uvec4(0x0a0a0a0au), (gl_SubgroupInvocationID + 1u) % gl_SubgroupSize))", [&](std::uint32_t i) {
      const auto has = [](std::uint32_t lane) { return 0x0a0a0a0au >> lane % 32 & 1u; };
      return has(i % lanes) + 2 * has((i + 1) % lanes);
    }, lanes);
    expect_each("subgroupBallotFindLSB(subgroupBallot(self % 4u >= 2u)) * 100u + subgroupBallotFindMSB(subgroupBallot(self % 4u < 2u))", [&](std::uint32_t) { return 200 + lanes - 3; }, lanes);
    expect_each("subgroupInclusiveAdd(x) * 4u + subgroupExclusiveMax(self)", [&](std::uint32_t i) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = i / lanes * lanes; k <= i; ++k) sum += 3 * k;
      return sum * 4 + (i % lanes == 0 ? 0 : i - 1);
    }, lanes);
    expect_each("uint(int(subgroupExclusiveMin(int8_t(int(self) - 70))) + 200)", [&](std::uint32_t i) { return i % lanes == 0 ? 327u : i / lanes * lanes + 130; }, lanes);
    expect_each("uint(int(subgroupMin(int8_t(int(self % 4u) - 2))) + 9) + 16u * uint(subgroupAdd(uint8_t(200u)))", [&](std::uint32_t) { return 7 + 16 * (200 * lanes & 255); }, lanes);
    expect_each("subgroupQuadBroadcast(x, 2u) * 1000u + subgroupQuadSwapDiagonal(self)", [](std::uint32_t i) { return 3 * (i / 4 * 4 + 2) * 1000 + (i ^ 3); }, lanes);
    expect_each("uint(subgroupAllEqual(uvec2(1u, self))) + 2u * uint(subgroupAllEqual(uvec2(1u, 2u))) + 4u * uint(subgroupAllEqual(self % 2u == 0u ? 0.0 : -0.0))", [](std::uint32_t) { return 6u; }, lanes);
  }
}

TEST(ModulesTest, OperatorsGiveWhatTheirReferencesGive) {
  simulator::ModuleCache modules(simulator::Loops::kUnrolled);
  for (const std::uint32_t lanes : {16u, 64u, 128u}) {
    std::string found;
    const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
      return simulator::simulate_case(modules, op, how, simulator::simulated_caps(lanes), lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
    };
    for (const char* text : {"linear input (41, 256), weight q8_0 (37, 256)", "linear input (1, 256), weight q4_K (41, 256)", "rms_norm input (3, 257), weight (257)", "softmax input (3, 113)"}) {
      check::CheckOptions options;
      options.text = text;
      options.brief = true;
      const auto report = check::run_check(run_case, options, [](const check::CheckResult& result, std::size_t, std::size_t) {
        EXPECT_NE(result.outcome, check::Outcome::kFailed) << result.run.text << ": " << result.complaint;
        return true;
      });
      ASSERT_TRUE(report.ok()) << report.status().message();
      EXPECT_GT(report->n_passed, 0u) << text;
      EXPECT_EQ(found, "") << text << ", " << lanes << " lanes";
    }
  }
}

/// Which few rows fill, so that lanes side by side have different ones.
runtime::DeviceCaps caps_of_one_core(std::uint32_t lanes) {
  runtime::DeviceCaps caps = simulator::simulated_caps(lanes);
  caps.cores = 1;
  return caps;
}

/// Lanes side by side that have the same columns, in a linear of few rows.
std::uint32_t most_row_lanes(const runtime::Program& program) {
  std::uint32_t most = 0;
  for (const runtime::Kernel& kernel : program.kernels) most = std::max(most, kernel.shader == runtime::Shader::linear_subgroup ? kernel.constants[15] : 0);
  return most;
}

TEST(ModulesTest, ANormBetweenLinearsIsRightAndFree) {
  namespace chain = tests::norm_chain;
  simulator::ModuleCache modules(simulator::Loops::kKept);
  for (const std::uint32_t lanes : {8u, 32u, 64u, 128u}) {
    for (const graph::Type weights : {graph::Type::kF16, graph::Type::kQ8_0}) {
      for (const chain::Sizes& sizes : {chain::Sizes{1, 64, 1036, 5}, {3, 32, 64, 7}, {9, 32, 36, 3}}) {
        SCOPED_TRACE(fmt::format("{} lanes, {} rows of {}", lanes, sizes.rows, graph::type_name(weights)));
        const check::OpCase op = chain::chain(weights, sizes, {});
        std::string found;
        const auto run = simulator::simulate_case(modules, op, chain::by_subgroups(), caps_of_one_core(lanes), lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
        ASSERT_TRUE(run.ok()) << run.status().message();
        const auto expected = op.run_reference();
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        EXPECT_EQ(check::judge(op, *run, *expected, [](const graph::Storage&) { return check::Tolerance{1e-10}; }), "");
        EXPECT_EQ(run->program.dispatches.size(), 3u);
        EXPECT_EQ(found, "");
        EXPECT_EQ(most_row_lanes(run->program), weights == graph::Type::kQ8_0 && sizes.rows == 1 && lanes != 64 ? 4u : 1u);
      }
    }
  }
}

/// Queries and keys that the linear before them turns and stores.
TEST(ModulesTest, ARotationBehindALinearIsRightAndFree) {
  namespace chain = tests::rotation_chain;
  for (const std::uint32_t lanes : {8u, 32u, 64u, 128u}) {
    simulator::ModuleCache modules(simulator::Loops::kKept);
    for (const chain::Sizes& sizes : {chain::Sizes{1, 1, 64, 4, 2, 64}, {2, 3, 41, 2, 1, 128}}) {
      for (const chain::Step& with : {chain::Step{.weight = graph::Type::kF16, .style = graph::RopeStyle::kHalf, .norm = true}, chain::Step{.cache = graph::Type::kF32, .bias = true, .ring = true}, chain::Step{.position = 200}, chain::Step{.style = graph::RopeStyle::kHalf, .value_weight = graph::Type::kF16}}) {
        const bool by_dots = lanes != 128 && with.weight == graph::Type::kQ8_0;
        const check::OpCase op = chain::step_of(sizes, with);
        std::string found;
        const auto run = simulator::simulate_case(modules, op, by_dots ? chain::by_dots() : chain::by_subgroups(), caps_of_one_core(lanes), lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
        ASSERT_TRUE(run.ok()) << run.status().message();
        const auto expected = op.run_reference();
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        EXPECT_EQ(check::judge(op, *run, *expected, [&](const graph::Storage&) { return check::Tolerance{by_dots ? 20 * graph::kRoundedActivations : 1e-6}; }), "") << lanes << " lanes, " << chain::text_of(sizes, with);
        EXPECT_EQ(found, "") << lanes << " lanes, " << chain::text_of(sizes, with);
        EXPECT_LE(most_row_lanes(run->program), 1u) << "what turns has few outputs";
        for (const runtime::Dispatch& dispatch : run->program.dispatches) EXPECT_FALSE(dispatch.label.starts_with("rope")) << lanes << " lanes, " << chain::text_of(sizes, with);
      }
    }
  }
}

/// What leaves its outputs in bytes for a linear behind.
TEST(ModulesTest, OutputsInBytesAreRightWithoutFindings) {
  namespace chain = tests::rounding_chain;
  for (const std::uint32_t lanes : {16u, 32u, 64u}) {
    simulator::ModuleCache modules(simulator::Loops::kKept);
    std::vector<check::OpCase> cases;
    for (const std::int64_t rows : {1, 3, 8}) chain::linears(cases.emplace_back(), rows, 544);
    for (const std::int64_t keys : {5, 700}) cases.push_back(chain::attention(2, keys, 80));
    check::OpCase& norms = cases.emplace_back();
    const graph::TensorId norm = norms.graph.add(graph::Op::layer_norm, {chain::input(norms, {3, 160}), norms.f32("gains", {160}, chain::numbers(160, 5)), norms.f32("bias", {160}, chain::numbers(160, 6))});
    norms.output(norms.graph.add(graph::Op::linear, {norm, chain::q8(norms, "second", 41, 160)}));
    for (const check::OpCase& op : cases) {
      std::string found;
      const auto run = simulator::simulate_case(modules, op, chain::by_dots(), simulator::simulated_caps(lanes), lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
      ASSERT_TRUE(run.ok()) << run.status().message();
      const auto expected = op.run_reference();
      ASSERT_TRUE(expected.ok()) << expected.status().message();
      EXPECT_EQ(check::judge(op, *run, *expected, [](const graph::Storage&) { return check::Tolerance{10 * graph::kRoundedActivations}; }), "") << lanes << " lanes, " << op.graph.name;
      EXPECT_EQ(found, "") << lanes << " lanes";
    }
  }
}

/// Adreno's, whose lanes exchange what they have with those at distances that are known.
TEST(ModulesTest, AttentionWithoutShufflesFromAnyLane) {
  for (const std::uint32_t lanes : {64u, 128u}) {
    simulator::ModuleCache modules(simulator::Loops::kKept);
    runtime::DeviceCaps caps = simulator::simulated_caps(lanes);
    caps.min_required_subgroup_size = 64, caps.max_required_subgroup_size = 128;
    std::string found;
    std::size_t n_exchanges = 0;
    const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
      auto run = simulator::simulate_case(modules, op, how, caps, lanes, [&](const simulator::SimulatedDispatch& done) { found += simulator_test::all_findings(done.report); });
      if (run.ok()) n_exchanges += run->program.kernels[0].constants[13];
      return run;
    };
    check::CheckOptions options;
    options.ops = {"attention"};
    options.kernels = {"subgroup"};
    options.brief = true;
    const auto report = check::run_check(run_case, options, [](const check::CheckResult& result, std::size_t, std::size_t) {
      EXPECT_NE(result.outcome, check::Outcome::kFailed) << result.run.text << ": " << result.complaint;
      return true;
    });
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(found, "");
    EXPECT_GT(n_exchanges, 30u);
  }
}

/// Of a device with several sizes: the size that a kernel relies on is the one it gets, whatever others have.
TEST(ModulesTest, AKernelGetsTheSizeOfSubgroupsThatItRequires) {
  simulator::ModuleCache modules(simulator::Loops::kKept);
  runtime::DeviceCaps caps = simulator::simulated_caps(32);
  caps.max_subgroup_size = 64;
  caps.min_required_subgroup_size = caps.max_required_subgroup_size = 64;
  std::string found;
  std::set<std::uint32_t> sizes;
  const check::CaseRunner run_case = [&](const check::OpCase& op, const check::RunOptions& how) {
    return simulator::simulate_case(modules, op, how, caps, 32, [&](const simulator::SimulatedDispatch& done) {
      found += simulator_test::all_findings(done.report);
      sizes.insert(done.report.subgroup_size);
    });
  };
  check::CheckOptions options;
  options.text = "linear input (3, 256), weight q8_0 (37, 256)";
  options.kernels = {"subgroup"};
  options.brief = true;
  const auto report = check::run_check(run_case, options, [](const check::CheckResult& result, std::size_t, std::size_t) {
    EXPECT_EQ(result.outcome, check::Outcome::kPassed) << result.complaint;
    return true;
  });
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(found, "");
  EXPECT_EQ(sizes, std::set<std::uint32_t>{64});
}

void expect_refused(const Status& status, StatusCode code, const std::string& words) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

TEST(ModulesTest, WhatItCantRunIsRefused) {
  std::vector<std::uint32_t> words = compile(kHead + "void main() { result[gl_LocalInvocationID.x] = data[0] + n; }");
  const auto read = [](const std::vector<std::uint32_t>& code) { return simulator::read_module(code, {}, "own.spv").status(); };
  for (std::size_t n : {std::size_t{0}, std::size_t{4}, std::size_t{5}, words.size() / 2, words.size() - 1}) {
    expect_refused(read({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n)}), StatusCode::kCorruptData, "own.spv: ");
  }
  std::vector<std::uint32_t> swapped = words;
  for (std::uint32_t& word : swapped) word = word << 24 | (word & 0xff00u) << 8 | (word >> 8 & 0xff00u) | word >> 24;
  expect_refused(read(swapped), StatusCode::kCorruptData, "byte order");
  for (std::size_t i = 0; i < words.size(); ++i) {  // damaged words: any answer but a crash
    std::vector<std::uint32_t> damaged = words;
    damaged[i] ^= 0x00010001u << (i % 16);
    (void)simulator::read_module(damaged, {}, "own.spv");
  }
  expect_refused(read(compile("#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\nlayout(set = 0, binding = 0) buffer B { uint64_t b[]; };\nvoid main() { b[0] += 1ul; }")), StatusCode::kUnsupported, "OpCapability");
  expect_refused(read(compile("#version 450\nlayout(set = 0, binding = 0) buffer B { mat4 m[]; };\nlayout(set = 0, binding = 1) buffer C { vec4 c[]; };\nvoid main() { c[0] = m[gl_WorkGroupID.x] * c[1]; }")), StatusCode::kUnsupported, "OpLoad of a matrix");
  expect_refused(read(compile("#version 450\nlayout(set = 1, binding = 0) buffer B { uint b[]; };\nvoid main() { b[0] = 1u; }")), StatusCode::kUnsupported, "descriptor set 1");
  expect_refused(read(compile("#version 450\nlayout(set = 0, binding = 0) buffer B { float b[]; };\nvoid main() { b[0] = ldexp(b[1], 3); }")), StatusCode::kUnsupported, "OpExtInst of Ldexp");
}

TEST(ModulesTest, WhatALaunchLacksIsNamed) {
  const std::uint32_t constants[] = {64};
  const auto module = simulator::read_module(compile(kHead + "void main() { result[gl_LocalInvocationID.x] = data[0] + n; }"), {constants, 0, {}}, "kernel");
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::vector<simulator::Buffer> buffers = {buffer_of_words(64, true), buffer_of_words(64, false)};
  const std::uint32_t push = 0;
  simulator::Launch launch = launch_of(buffers, 32, {1, 1, 1}, std::as_bytes(std::span(&push, 1)));
  EXPECT_TRUE(simulator::simulate(*module, buffers, launch).ok());
  const auto refuse = [&](const simulator::Launch& wrong, const std::string& words) { expect_refused(simulator::simulate(*module, buffers, wrong).status(), StatusCode::kInvalidArgument, words); };
  simulator::Launch wrong = launch;
  wrong.bindings.pop_back();
  refuse(wrong, "binding 1 (Result) has no buffer");
  wrong = launch, wrong.push = {};
  refuse(wrong, "0 bytes of push constants, but the module reads 4");
  wrong = launch, wrong.subgroup_size = 24;
  refuse(wrong, "24 lanes");
  wrong = launch, wrong.bindings[0].size_bytes = 1000;
  refuse(wrong, "binding 0 (Data)");
  const std::uint32_t large[] = {2048};
  const auto larger = simulator::read_module(compile(kHead + "void main() { result[gl_LocalInvocationID.x] = data[0] + n; }"), {large, 0, {}}, "kernel");
  ASSERT_TRUE(larger.ok());
  expect_refused(simulator::simulate(*larger, buffers, launch).status(), StatusCode::kInvalidArgument, "2048 x 1 x 1");
}

TEST(ModulesTest, LoopsThatAreTooLongAreNotUnrolled) {
  for (const char* loop : {"[[unroll]] for (uint i = 0u; i < 100000000u; ++i)", "[[unroll]] for (int i = -100000000; i < 0; ++i)", "[[unroll]] for (uint i = 4000000000u; i > 7u; i -= 1u)"}) {
    const auto module = simulator::read_module(compile("#version 450\n#extension GL_EXT_control_flow_attributes : require\nlayout(set = 0, binding = 0) buffer Data { uint data[]; };\n"
                                                       "void main() { uint s = 0u; " + std::string(loop) + " s += data[s % 64u]; data[0] = s; }"), {}, "kernel");
    ASSERT_TRUE(module.ok()) << module.status().message();
    EXPECT_LT(module->operations.size(), 100u) << loop;
  }
}

class EndlessTest : public testing::TestWithParam<const char*> {};

TEST_P(EndlessTest, LoopsEnd) {
  const std::uint32_t constants[] = {64};
  const auto module = simulator::read_module(compile(kHead + "void main() { uint i = n; " + GetParam() + " result[gl_LocalInvocationID.x] = i; }"), {constants, 0, {}}, "kernel");
  ASSERT_TRUE(module.ok()) << module.status().message();
  std::vector<simulator::Buffer> buffers = {buffer_of_words(64, true), buffer_of_words(64, false)};
  const std::uint32_t push = 2;
  simulator::Launch launch = launch_of(buffers, 32, {1, 1, 1}, std::as_bytes(std::span(&push, 1)));
  launch.most_operations = 1'000'000;
  const auto report = simulator::simulate(*module, buffers, launch);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->findings.size(), 1u) << simulator_test::all_findings(*report);
  EXPECT_EQ(report->findings[0].kind, simulator::FindingKind::kEndless);
  EXPECT_LT(report->lane_operations, 2'000'000u);
}

INSTANTIATE_TEST_SUITE_P(All, EndlessTest, testing::Values("while (i != 1u) i = i * 2u + data[0];", "for (;;) { if (data[1] == 7u) break; result[gl_LocalInvocationID.x] = 1u; }", "while (true) barrier();"));

}  // namespace
}  // namespace rondo::modules_test
