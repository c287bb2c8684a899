#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/float16.h"
#include "graph/lowering.h"
#include "runtime/fmt.h"
#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::linear_test {
namespace {

using graph::Op;
using graph::TensorId;
using graph::Type;

struct Sizes {
  std::int64_t rows, columns, outputs;
};

/// Primes, one, whole groups and what lies beside them; whole blocks for types that have them.
std::vector<Sizes> sizes_of(Type type) {
  if (has_blocks(type)) {
    std::vector<Sizes> sizes = {{1, 32, 1}, {2, 64, 3}, {3, 96, 41}, {7, 32, 65}, {1, 1120, 37}, {37, 160, 89}, {41, 288, 130}, {9, 256, 257}};
    for (Sizes& s : sizes) s.columns = whole_blocks(type, s.columns);
    return sizes;
  }
  return {{1, 1, 1}, {1, 37, 2}, {2, 2, 3}, {3, 41, 7}, {7, 89, 65}, {1, 1031, 113}, {37, 31, 64}, {41, 33, 89}, {9, 128, 257}};
}

class LinearTest : public ::testing::TestWithParam<std::tuple<Type, const char*>> {
 protected:
  Type type() const { return std::get<0>(GetParam()); }
  RunOptions options() const {
    RunOptions options;
    options.kernels["linear"] = std::get<1>(GetParam());
    return options;
  }
  /// input weight^T of whole numbers, whose sums are exact.
  OpCase plain(const Sizes& s) const {
    OpCase c;
    const auto n = static_cast<std::size_t>(s.rows * s.columns);
    const TensorId input = c.f32("input", {s.rows, s.columns}, integer_values(n, 1, 4));
    const TensorId weight = c.weight("weight", type(), s.outputs, s.columns, weight_rows(type(), s.outputs, s.columns, 2, WeightValues::kInteger));
    c.output(c.graph.add(Op::linear, {input, weight}));
    return c;
  }
};

std::string case_name(const Sizes& s) { return fmt::format("{} x {} -> {}", s.rows, s.columns, s.outputs); }

TEST_P(LinearTest, IntegersAreExact) {
  for (const Sizes& s : sizes_of(type())) EXPECT_TRUE(agrees(plain(s), kExact, options())) << case_name(s);
}

TEST_P(LinearTest, ChoicesForADiscreteDevice) {
  RunOptions discrete = options();
  discrete.pretend = runtime::DeviceType::kDiscrete;
  for (const Sizes& s : sizes_of(type())) EXPECT_TRUE(agrees(plain(s), kExact, discrete)) << case_name(s);
}

/// As wide as the largest models' feed-forward, all of which a driver that ends loops early would cut short.
TEST_P(LinearTest, LongRows) {
  for (std::int64_t rows : {1, 9}) EXPECT_TRUE(agrees(plain({rows, 28672, 33}), kExact, options())) << rows << " rows";
}

/// Some drivers end loops silently after so many iterations: whatever is not refused for it must be right to the last column.
TEST_P(LinearTest, TheLongestRowsThatAreAccepted) {
  if (type() != Type::kF32) return;
  constexpr std::int64_t kMost = 8192;  // groups
  for (const std::int64_t rows : {1, 41}) {
    std::int64_t accepted = 1, beyond = kMost + 1;
    while (beyond - accepted > 1) {
      const std::int64_t groups = (accepted + beyond) / 2;
      graph::Graph graph = plain({rows, 32 * groups, 1}).graph;
      graph::LoweringOptions lowering;
      lowering.forced_kernels = options().kernels;
      (graph::lower(graph, test_runtime_device().caps(), lowering).ok() ? accepted : beyond) = groups;
    }
    EXPECT_GE(accepted, std::string_view(std::get<1>(GetParam())) == "tiled" ? 1024 : kMost);
    EXPECT_TRUE(agrees(plain({rows, 32 * accepted, rows == 1 ? 33 : 5}), kExact, options())) << rows << " rows, " << accepted << " groups";
  }
}

/// Rows of a wider tensor, from a column on: offsets and strides that are and aren't multiples of 4 elements.
TEST_P(LinearTest, ViewsAsInputAndResidual) {
  const std::int64_t k = whole_blocks(type(), 64), n = 41;
  for (const auto& [beside, column] : {std::pair{7, 5}, std::pair{8, 4}, std::pair{8, 3}, std::pair{1, 0}}) {
    OpCase c;
    const std::int64_t width = k + beside;
    const TensorId wide = c.f32("wide", {5, width}, random_values(static_cast<std::size_t>(5 * width), 3));
    const TensorId input = c.graph.slice(c.graph.slice(wide, 1, column, column + k), 0, 1, 4);
    const TensorId weight = c.weight("weight", type(), n, k, weight_rows(type(), n, k, 4, WeightValues::kRandom));
    const TensorId residuals = c.f32("residuals", {3, 2 * n}, random_values(static_cast<std::size_t>(3 * 2 * n), 5));
    c.output(c.graph.add(Op::linear, {input, weight, c.graph.slice(residuals, 1, n - 1, 2 * n - 1)}));
    EXPECT_TRUE(agrees(c, {1e-11}, options())) << "width " << width << ", column " << column;
  }
}

/// activation(input weight^T + bias) + residual, the bias from the middle of a tensor.
OpCase with_output(Type type, const Sizes& s, graph::Activation activation, bool bias, bool residual) {
  OpCase c;
  const auto n = static_cast<std::size_t>(s.rows * s.columns);
  const TensorId input = c.f32("input", {s.rows, s.columns}, random_values(n, 1));
  const TensorId weight = c.weight("weight", type, s.outputs, s.columns, weight_rows(type, s.outputs, s.columns, 2, WeightValues::kRandom));
  const TensorId biases = c.f32("biases", {s.outputs + 9}, random_values(static_cast<std::size_t>(s.outputs + 9), 3, 2));
  const TensorId residuals = c.f32("residual", {s.rows, s.outputs}, random_values(static_cast<std::size_t>(s.rows * s.outputs), 4, 2));
  c.output(c.graph.add(Op::linear, {input, weight, residual ? residuals : graph::kNone, bias ? c.graph.slice(biases, 0, 5, 5 + s.outputs) : graph::kNone},
                       graph::LinearAttributes{activation}));
  return c;
}

/// Few tiles of many columns, which kernels that make tiles may split: parts that are not even, and a part of which less is there.
TEST_P(LinearTest, ManyColumnsOfFewOutputs) {
  for (const std::int64_t columns : {545, 800, 2080}) {
    const Sizes s{11, has_blocks(type()) ? whole_blocks(type(), columns / 32 * 32) : columns, 13};
    EXPECT_TRUE(agrees(with_output(type(), s, graph::Activation::kGelu, true, true), {1e-11}, options())) << case_name(s);
  }
}

TEST(LinearOutputTest, AnotherOutputIsRejected) {
  using graph::Activation;
  const Sizes s{3, 37, 41};
  const OpCase found = with_output(Type::kF32, s, Activation::kGelu, true, true);
  EXPECT_FALSE(agrees_with(found, with_output(Type::kF32, s, Activation::kGelu, false, true), {1e-10}));
  EXPECT_FALSE(agrees_with(found, with_output(Type::kF32, s, Activation::kGeluTanh, true, true), {1e-10}));
  EXPECT_FALSE(agrees_with(found, with_output(Type::kF32, s, Activation::kGelu, true, false), {1e-10}));
}

/// Rows [7, 7 + 33) of a weight of 48.
TEST_P(LinearTest, SliceOfAWeight) {
  OpCase c;
  const std::int64_t k = whole_blocks(type(), 96);
  const TensorId input = c.f32("input", {3, k}, integer_values(static_cast<std::size_t>(3 * k), 6, 4));
  const TensorId weight = c.weight("weight", type(), 48, k, weight_rows(type(), 48, k, 7, WeightValues::kInteger));
  c.output(c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 7, 40)}));
  EXPECT_TRUE(agrees(c, kExact, options()));
}

/// One factor as far below f16 as the other is above it, the largest numbers of both meeting zeros: the product of what is left is near 1.
TEST(MatrixLinearTest, FactorsMayBeFarApart) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  constexpr std::int64_t kRows = 16, kColumns = 64;
  const auto factor = [&](int exponent, std::size_t largest_at) {
    std::vector<float> values(static_cast<std::size_t>(kRows * kColumns), std::ldexp(1.0f, exponent - 20));
    for (std::size_t row = 0; row < static_cast<std::size_t>(kRows * kColumns); row += kColumns) values[row + largest_at] = std::ldexp(1.0f, exponent), values[row + 1 - largest_at] = 0;
    return values;
  };
  RunOptions options;
  options.kernels["linear"] = "matrix";
  for (const auto& [input_exponent, weight_exponent] : {std::pair{-104, 127}, std::pair{127, -104}}) {
    OpCase c;
    const std::vector<float> weights = factor(weight_exponent, 1);
    const auto bytes = std::as_bytes(std::span(weights));
    const TensorId input = c.f32("input", {kRows, kColumns}, factor(input_exponent, 0)), weight = c.weight("weight", Type::kF32, kRows, kColumns, {bytes.begin(), bytes.end()});
    c.output(c.graph.add(Op::linear, {input, weight}));
    EXPECT_TRUE(agrees(c, {graph::kRoundedFactors}, options)) << input_exponent << ", " << weight_exponent;
  }
}

/// Where the f16 numbers of a type's block lie in files that scale all else in it.
struct BlockScales {
  Type type;
  std::size_t block_bytes;
  std::vector<std::size_t> at;
};
const BlockScales kBlockScales[] = {
    {Type::kQ8_0, 34, {0}},   {Type::kQ4_0, 18, {0}},      {Type::kQ4_1, 20, {0, 2}},  {Type::kQ5_0, 22, {0}},    {Type::kQ5_1, 24, {0, 2}},  {Type::kQ2_K, 84, {80, 82}},
    {Type::kQ3_K, 110, {108}}, {Type::kQ4_K, 144, {0, 2}}, {Type::kQ5_K, 176, {0, 2}}, {Type::kQ6_K, 210, {208}}, {Type::kIQ4_NL, 18, {0}},
};

/// In f16 values of weights are neither lost nor infinite, of whatever size they are that f16 has.
TEST(MatrixLinearTest, WeightsMayBeLargeAndSmall) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  constexpr std::int64_t kRows = 16, kColumns = 256, kOutputs = 40;
  RunOptions options;
  options.kernels["linear"] = "matrix";
  for (const BlockScales& of : kBlockScales) {
    for (const float largest : {0x1p-11f, of.at.size() == 1 ? 65000.0f : 32500.0f}) {  // a minimum that fma() does not add at once takes values twice as far
      OpCase c;
      std::vector<std::byte> blocks = weight_rows(of.type, kOutputs, kColumns, 3, WeightValues::kRandom);
      float most = 0;
      for (const float value : weight_values(of.type, kOutputs, kColumns, blocks)) most = std::max(most, std::abs(value));
      const float by = largest / most;
      for (std::size_t block = 0; block < blocks.size(); block += of.block_bytes) {
        for (const std::size_t at : of.at) {
          std::uint16_t half;
          std::memcpy(&half, &blocks[block + at], sizeof half);
          half = graph::float_to_half(by * graph::half_to_float(half));
          std::memcpy(&blocks[block + at], &half, sizeof half);
        }
      }
      const std::vector<float> made = weight_values(of.type, kOutputs, kColumns, blocks);
      EXPECT_GT(*std::max_element(made.begin(), made.end()), 0.25f * largest) << graph::type_name(of.type);
      c.output(c.graph.add(Op::linear, {c.f32("input", {kRows, kColumns}, random_values(kRows * kColumns, 5)), c.weight("weight", of.type, kOutputs, kColumns, blocks)}));
      EXPECT_TRUE(agrees(c, {graph::kRoundedFactors}, options)) << graph::type_name(of.type) << " up to " << largest;
    }
  }
}

class LinearCountTest : public ::testing::TestWithParam<const char*> {};

/// Which rows count does not depend on the weight's type.
TEST_P(LinearCountTest, RowsBeyondItStayUntouched) {
  const Type type = Type::kQ8_0;
  const std::int64_t k = 64;
  RunOptions options;
  options.kernels["linear"] = GetParam();
  for (std::int64_t rows : {3, 8, 37, 64}) {
    for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, rows / 2, rows - 1, rows + 1}) {
      OpCase c(2);
      const auto n = static_cast<std::size_t>(2 * rows * k);
      const TensorId input = c.f32("input", {2, rows, k}, integer_values(n, 8, 4));
      const TensorId weight = c.weight("weight", type, 7, k, weight_rows(type, 7, k, 9, WeightValues::kInteger));
      const TensorId residual = c.f32("residual", {2, rows, 7}, integer_values(static_cast<std::size_t>(2 * rows * 7), 10, 9));
      c.output(c.graph.add(Op::linear, {input, weight, residual}), 1);
      c.set_count(0, static_cast<std::int32_t>(count));
      c.set_count(1, static_cast<std::int32_t>(rows - 1));
      EXPECT_TRUE(agrees(c, kExact, options)) << rows << " rows, count " << count;
      c.set_count(1, 3, false);
      EXPECT_TRUE(agrees(c, kExact, options)) << rows << " rows, count " << count << ", the second sequence inactive";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, LinearCountTest, ::testing::Values("subgroup", "vector", "wide", "tiled"));

std::string param_name(const ::testing::TestParamInfo<std::tuple<Type, const char*>>& tested) {
  return fmt::format("{}_{}", graph::type_name(std::get<0>(tested.param)), std::get<1>(tested.param));
}

INSTANTIATE_TEST_SUITE_P(TypesAndKernels, LinearTest,
                         ::testing::Combine(::testing::ValuesIn(kRowLayouts), ::testing::Values("subgroup", "vector", "wide", "tiled")),
                         param_name);
INSTANTIATE_TEST_SUITE_P(WeightsInHalves, LinearTest, ::testing::Values(std::tuple(Type::kF16, "halves")), param_name);

}  // namespace
}  // namespace rondo::tests::linear_test
