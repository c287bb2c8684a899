#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::rms_norm_test {
namespace {

using graph::Op;
using graph::RmsNormAttributes;
using graph::TensorId;

constexpr Tolerance kBound{1e-11};

struct Norm {
  std::int64_t rows, columns;
};

class RmsNormTest : public ::testing::TestWithParam<Norm> {
 protected:
  static OpCase norm(const Norm& s, float scale, RmsNormAttributes attributes, bool weighted) {
    OpCase c;
    const TensorId input = c.f32("input", {s.rows, s.columns}, random_values(static_cast<std::size_t>(s.rows * s.columns), 1, scale));
    const TensorId weight = weighted ? c.f32("weight", {s.columns}, random_values(static_cast<std::size_t>(s.columns), 2)) : graph::kNone;
    c.output(c.graph.add(Op::rms_norm, {input, weight}, attributes));
    return c;
  }
};

TEST_P(RmsNormTest, RandomValues) {
  for (auto device : {runtime::DeviceType::kCpu, runtime::DeviceType::kDiscrete}) {
    RunOptions options;
    options.pretend = device;
    EXPECT_TRUE(agrees(norm(GetParam(), 1, {}, true), kBound, options));
    EXPECT_TRUE(agrees(norm(GetParam(), 1, {1e-6, 0}, false), kBound, options));
    EXPECT_TRUE(agrees(norm(GetParam(), 1, {1e-6, 1}, true), kBound, options)) << "weight offset 1";
    EXPECT_TRUE(agrees(norm(GetParam(), 1e15f, {}, true), kBound, options)) << "large magnitudes";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RmsNormTest,
                         ::testing::Values(Norm{1, 1}, Norm{2, 2}, Norm{7, 3}, Norm{3, 37}, Norm{41, 89}, Norm{5, 113}, Norm{1, 257}, Norm{2, 4099}));

/// Where the variance is as small as epsilon, a wrong epsilon shows: 1e-5 against 1e-6 changes the result by a factor.
TEST_F(RmsNormTest, SmallVarianceNeedsTheRightEpsilon) {
  const Norm s{5, 64};
  for (double epsilon : {1e-5, 1e-6, 1e-12}) EXPECT_TRUE(agrees(norm(s, 3e-3f, {epsilon, 0}, true), kBound)) << epsilon;
  const OpCase right = norm(s, 3e-3f, {1e-5, 0}, true), wrong = norm(s, 3e-3f, {1.01e-5, 0}, true);
  const auto expected = right.run_reference();
  const auto other = wrong.run_reference();
  ASSERT_TRUE(expected.ok() && other.ok());
  const std::size_t output = right.graph.n_storages() - 1;
  const std::vector<std::byte> before = right.before(static_cast<graph::StorageId>(output));
  EXPECT_NE(graph::find_difference({graph::Type::kF32, before, (*other)[output], (*expected)[output]}, {10 * kBound.nmse}), "");
}

TEST_F(RmsNormTest, RowsOfZerosAndConstants) {
  OpCase c;
  std::vector<float> values(3 * 37, 0.0f);
  for (std::size_t i = 37; i < 2 * 37; ++i) values[i] = 5;
  for (std::size_t i = 2 * 37; i < 3 * 37; ++i) values[i] = -1e-20f;
  c.output(c.graph.add(Op::rms_norm, {c.f32("input", {3, 37}, values), graph::kNone}));
  EXPECT_TRUE(agrees(c, kBound));
}

}  // namespace
}  // namespace rondo::tests::rms_norm_test
