#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::layer_norm_test {
namespace {

using graph::Op;

using graph::TensorId;

constexpr Tolerance kBound{1e-11};

class LayerNormTest : public ::testing::TestWithParam<std::int64_t> {};

OpCase layer_norm_case(std::int64_t columns, bool weight, bool bias, float scale, float shift, double epsilon = 1e-5) {
  OpCase c;
  const auto n = static_cast<std::size_t>(columns);
  std::vector<float> values = random_values(7 * n, 1, scale);
  for (float& value : values) value += shift;
  const TensorId input = c.f32("input", {7, columns}, values), w = c.f32("weight", {columns}, random_values(n, 2)), b = c.f32("bias", {columns}, random_values(n, 3));
  c.output(c.graph.add(Op::layer_norm, {input, weight ? w : graph::kNone, bias ? b : graph::kNone}, graph::LayerNormAttributes{epsilon}));
  return c;
}

TEST_P(LayerNormTest, WithAndWithoutWeightAndBias) {
  for (bool weight : {false, true}) {
    for (bool bias : {false, true}) EXPECT_TRUE(agrees(layer_norm_case(GetParam(), weight, bias, 3, 1), kBound)) << weight << bias;
  }
}

/// Where the mean is large beside the deviation, and where the deviation is small beside epsilon.
TEST_P(LayerNormTest, SmallDeviations) {
  EXPECT_TRUE(agrees(layer_norm_case(GetParam(), true, true, 1, 1000), kBound));
  EXPECT_TRUE(agrees(layer_norm_case(GetParam(), true, true, 1e-4f, 0), kBound));
  EXPECT_TRUE(agrees(layer_norm_case(GetParam(), true, false, 1e-4f, 0, 1e-12), kBound));
}

TEST_P(LayerNormTest, ConstantRowsGiveTheBias) {
  for (bool bias : {false, true}) EXPECT_TRUE(agrees(layer_norm_case(GetParam(), true, bias, 0, 0.1f), kExact));
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerNormTest, ::testing::Values(1, 2, 3, 7, 37, 41, 89, 113, 257, 4096));

TEST(LayerNormTest, WorkgroupsOfAnyDevice) {
  RunOptions options;
  options.pretend = runtime::DeviceType::kDiscrete;
  for (std::int64_t n : {1, 41, 257, 5000}) EXPECT_TRUE(agrees(layer_norm_case(n, true, true, 2, 1), kBound, options)) << n;
}

TEST(LayerNormTest, AnotherEpsilonIsRejected) {
  EXPECT_FALSE(agrees_with(layer_norm_case(41, true, true, 1, 0, 1e-5), layer_norm_case(41, true, true, 1, 0, 1e-3), kBound));
  EXPECT_FALSE(agrees_with(layer_norm_case(41, true, true, 1, 0), layer_norm_case(41, true, false, 1, 0), kBound));
}

}  // namespace
}  // namespace rondo::tests::layer_norm_test
