// Cooperative matrices: products beside C++, and what is done wrong with them. RONDO_TEST_SPIRV_TOOLS names a program that runs newer
// SPIRV-Tools and glslang, as tools/new_drivers.sh makes one.
#include <bit>
#include <cstdlib>
#include <cstring>

#include "graph/float16.h"
#include "tests/simulator/glsl.h"

namespace rondo::matrices_test {
namespace {

using simulator::FindingKind;
using simulator_test::launch_of;

const std::string kHead = R"(#version 450
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) buffer A { float16_t a[]; };
layout(set = 0, binding = 1) readonly buffer B { float16_t b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(set = 0, binding = 3) readonly buffer D { int8_t d[]; };
layout(set = 0, binding = 4) buffer E { int e[]; };
layout(push_constant) uniform Push { uint k; };
shared float16_t tile[256];
#define MATRIX(type, use) coopmat<type, gl_ScopeSubgroup, 16, 16, gl_MatrixUse##use>
void main() {
  MATRIX(float16_t, A) x;
  MATRIX(float16_t, B) y;
  MATRIX(float, Accumulator) sum = MATRIX(float, Accumulator)(0.0);
  const uint self = gl_LocalInvocationIndex;
)";

constexpr std::uint32_t kDepth = 32;

float a_of(std::uint32_t row, std::uint32_t i) { return static_cast<float>((row * 7 + i * 3) % 11) - 5.0f; }
float b_of(std::uint32_t i, std::uint32_t column) { return static_cast<float>((i * 5 + column * 2) % 13) - 6.0f; }

class MatricesTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* const tools = std::getenv("RONDO_TEST_SPIRV_TOOLS");
    if (!tools) GTEST_SKIP() << "RONDO_TEST_SPIRV_TOOLS is not set";
    tools_ = tools;
    buffers_.assign(5, {});
    for (std::uint32_t row = 0; row < 16; ++row) {
      for (std::uint32_t i = 0; i < kDepth; ++i) append<std::uint16_t>(0, graph::float_to_half(a_of(row, i)));
    }
    for (std::uint32_t column = 0; column < 16; ++column) {
      for (std::uint32_t i = 0; i < kDepth; ++i) append<std::uint16_t>(1, graph::float_to_half(b_of(i, column)));
    }
    for (std::uint32_t i = 0; i < 512; ++i) append<std::int8_t>(3, static_cast<std::int8_t>(i * 37 % 251));
    for (const std::size_t unwritten : {2u, 4u}) buffers_[unwritten].bytes.resize(1024), buffers_[unwritten].written.resize(1024);
  }
  template <typename T>
  void append(std::size_t buffer, T value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    buffers_[buffer].bytes.insert(buffers_[buffer].bytes.end(), bytes, bytes + sizeof value);
  }
  simulator::Report run(const std::string& body, std::uint32_t lanes, std::uint32_t invocations) {
    const std::uint32_t constants[] = {invocations};
    const auto module = simulator::read_module(simulator_test::compile(kHead + body + "\n}\n", tools_ + " glslang --target-env vulkan1.3"), {constants, lanes, tools_}, "kernel");
    EXPECT_TRUE(module.ok()) << module.status().message();
    if (!module.ok()) return {};
    const auto report = simulator::simulate(*module, buffers_, launch_of(buffers_, lanes, {1, 1, 1}, std::as_bytes(std::span(&kDepth, 1))));
    EXPECT_TRUE(report.ok()) << report.status().message();
    return report.ok() ? *report : simulator::Report();
  }
  template <typename T>
  T word(std::size_t buffer, std::size_t i) const {
    T value{};
    std::memcpy(&value, buffers_[buffer].bytes.data() + i * sizeof value, sizeof value);
    return value;
  }

  std::string tools_;
  std::vector<simulator::Buffer> buffers_;
};

const char* const kProduct = R"(
  for (uint i = 0; i < k; i += 16) {
    for (uint n = self; n < 256; n += gl_WorkGroupSize.x) tile[n] = a[n / 16 * k + i + n % 16];
    barrier();
    coopMatLoad(x, tile, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(y, b, i, k, gl_CooperativeMatrixLayoutColumnMajor);
    sum = coopMatMulAdd(x, y, sum);
    barrier();
  }
  for (int i = 0; i < sum.length(); ++i) sum[i] = sum[i] * 2.0 + 1.0;
  coopMatStore(sum, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
)";

TEST_F(MatricesTest, ProductsAreThoseOfCpp) {
  for (const std::uint32_t lanes : {8u, 32u, 64u}) {
    const simulator::Report report = run(kProduct, lanes, lanes);
    EXPECT_EQ(simulator_test::all_findings(report), "") << lanes << " lanes";
    for (std::uint32_t row = 0; row < 16; ++row) {
      for (std::uint32_t column = 0; column < 16; ++column) {
        float sum = 0;
        for (std::uint32_t i = 0; i < kDepth; ++i) sum += a_of(row, i) * b_of(i, column);
        ASSERT_EQ(word<float>(2, row * 16 + column), sum * 2 + 1) << lanes << " lanes, row " << row << ", column " << column;
      }
    }
    // Of a line of b, a load wants the 32 bytes of one column; of the tile it wants everything, 8 pieces of 16 bytes a round.
    bool has_b = false, has_tile = false;
    for (const simulator::AccessCount& count : report.accesses) {
      if (count.kind != simulator::AccessCount::Kind::kLoad || count.executions != 2) continue;
      has_b = has_b || (count.lines64 == 32 && count.ideal_lines64 == 16);
      has_tile = has_tile || (count.bank_rounds == 8 && count.ideal_bank_rounds == 8);
    }
    EXPECT_TRUE(has_b && has_tile) << lanes << " lanes";
  }
}

TEST_F(MatricesTest, BytesAndConversions) {
  const simulator::Report report = run(R"(
  MATRIX(int8_t, A) left;
  MATRIX(int8_t, B) right;
  MATRIX(int, Accumulator) total = MATRIX(int, Accumulator)(3);
  coopMatLoad(left, d, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
  coopMatLoad(right, d, 256, 16, gl_CooperativeMatrixLayoutRowMajor);
  total = coopMatMulAdd(left, right, total);
  coopMatStore(total, e, 0, 16, gl_CooperativeMatrixLayoutColumnMajor);
  coopMatLoad(x, a, 0, k, gl_CooperativeMatrixLayoutRowMajor);
  MATRIX(float, A) wide = MATRIX(float, A)(x * float16_t(0.5) + x);
  coopMatStore(-wide, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
)", 32, 32);
  EXPECT_EQ(simulator_test::all_findings(report), "");
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t column = 0; column < 16; ++column) {
      std::int32_t total = 3;
      for (std::uint32_t i = 0; i < 16; ++i) total += word<std::int8_t>(3, row * 16 + i) * word<std::int8_t>(3, 256 + i * 16 + column);
      ASSERT_EQ(word<std::int32_t>(4, column * 16 + row), total);
      ASSERT_EQ(word<float>(2, row * 16 + column), -1.5f * a_of(row, column));
    }
  }
}

TEST_F(MatricesTest, FaultsAreFound) {
  const std::string load_x = "coopMatLoad(x, a, 0, k, gl_CooperativeMatrixLayoutRowMajor); ", load_y = "coopMatLoad(y, b, 0, k, gl_CooperativeMatrixLayoutColumnMajor); ";
  const std::string store = "coopMatStore(sum, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor); ", multiply = "sum = coopMatMulAdd(x, y, sum); " + store;
  const struct {
    std::string body;
    FindingKind kind;
    std::uint32_t invocations = 32;
  } kFaults[] = {
      {load_x + "coopMatLoad(y, b, 0, k + 3, gl_CooperativeMatrixLayoutColumnMajor); " + multiply, FindingKind::kOutOfBounds},
      {load_y + "for (uint n = self; n < 256; n += 32) tile[n] = a[n]; coopMatLoad(x, tile, 0, 16, gl_CooperativeMatrixLayoutRowMajor); " + multiply, FindingKind::kRace},
      {store, FindingKind::kRace, 64},
      {"coopMatLoad(sum, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor); coopMatStore(sum, e, 0, 16, gl_CooperativeMatrixLayoutRowMajor);", FindingKind::kUndefined},
      {load_y + "coopMatLoad(x, tile, 0, 16, gl_CooperativeMatrixLayoutRowMajor); " + multiply, FindingKind::kUndefined},
      {load_x + "coopMatLoad(y, b, self / 16, k, gl_CooperativeMatrixLayoutColumnMajor); " + multiply, FindingKind::kSubgroup},
      {"coopMatStore(MATRIX(float16_t, Accumulator)(float16_t(1.0)), tile, 0, 16, gl_CooperativeMatrixLayoutRowMajor); coopMatLoad(x, tile, 0, 16, gl_CooperativeMatrixLayoutRowMajor); " + load_y + multiply, FindingKind::kRace},
      {load_x + "coopMatLoad(y, b, 3, 19, gl_CooperativeMatrixLayoutColumnMajor); " + multiply, FindingKind::kAlignment},
      {load_x + load_y + "sum[40] = 1.0; " + multiply, FindingKind::kOutOfBounds},
      {"if (self < 5) " + store, FindingKind::kSubgroup},
      {store, FindingKind::kSubgroup, 16},
  };
  for (const auto& [body, kind, invocations] : kFaults) {
    SetUp();
    const simulator::Report report = run(body, 32, invocations);
    bool is_found = false;
    for (const simulator::Finding& finding : report.findings) is_found = is_found || finding.kind == kind;
    EXPECT_TRUE(is_found) << body << "\n" << simulator_test::all_findings(report);
  }
}

TEST_F(MatricesTest, WhatIsMissingIsNamed) {
  const std::vector<std::uint32_t> words = simulator_test::compile(kHead + kProduct + "\n}\n", tools_ + " glslang --target-env vulkan1.3");
  const auto message = [&](const simulator::ReadOptions& options) { return simulator::read_module(words, options, "kernel").status().message(); };
  EXPECT_NE(message({{}, 0, tools_}).find("the size of subgroups"), std::string::npos) << message({{}, 0, tools_});
  EXPECT_NE(message({{}, 32, "/nowhere/tools"}).find("/nowhere/tools: can't be run"), std::string::npos);
  EXPECT_NE(message({{}, 32, "/bin/false"}).find("it does not say why"), std::string::npos);
  const std::string without = message({{}, 32, {}});
  EXPECT_TRUE(without.empty() || without.find("--spirv-tools") != std::string::npos) << without;
  const auto module = simulator::read_module(words, {{}, 32, tools_}, "kernel");
  ASSERT_TRUE(module.ok()) << module.status().message();
  EXPECT_EQ(simulator::simulate(*module, buffers_, launch_of(buffers_, 64, {1, 1, 1}, std::as_bytes(std::span(&kDepth, 1)))).status().message(), "the module was read for subgroups of 32 lanes");
}

}  // namespace
}  // namespace rondo::matrices_test
