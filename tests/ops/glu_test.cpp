#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::glu_test {
namespace {

using graph::Op;
using graph::TensorId;

constexpr Tolerance kActivationBound{1e-10};

class GluTest : public ::testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};

TEST_P(GluTest, RandomValues) {
  const auto [rows, columns] = GetParam();
  const auto n = static_cast<std::size_t>(rows * columns);
  for (float scale : {1.0f, 20.0f, 1e6f}) {
    OpCase c;
    const TensorId gate = c.f32("gate", {rows, columns}, random_values(n, 1, scale)), up = c.f32("up", {rows, columns}, random_values(n, 2, scale));
    c.output(c.graph.add(Op::glu, {gate, up}));
    EXPECT_TRUE(agrees(c, kActivationBound)) << rows << " x " << columns << ", scale " << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GluTest,
                         ::testing::Values(std::pair{1, 1}, std::pair{2, 3}, std::pair{7, 37}, std::pair{41, 89}, std::pair{3, 257}, std::pair{113, 64}));

/// silu(g) u where it can't overflow on the way: exp(-g) may, its quotient must not.
TEST(GluTest, ExtremeGates) {
  OpCase c;
  const TensorId gate = c.f32("gate", {8}, std::vector<float>{0, -0.0f, 100, -87, 3e38f, 1e-30f, 88, -50});
  const TensorId up = c.f32("up", {8}, std::vector<float>{5, 5, 2, 1, 0.5f, 1, 1, 1});
  c.output(c.graph.add(Op::glu, {gate, up}));
  EXPECT_TRUE(agrees(c, kActivationBound));
}

TEST(GluTest, NegativeGatesThatOverflowTheExponentialGiveZero) {
  OpCase c;
  const TensorId gate = c.f32("gate", {3}, std::vector<float>{-1000, -3e38f, 2}), up = c.f32("up", {3}, std::vector<float>{1, 1, 1});
  c.output(c.graph.add(Op::glu, {gate, up}));
  EXPECT_TRUE(agrees(c, kActivationBound));
}

TEST(GluTest, EveryActivation) {
  for (int kind = 0; kind <= static_cast<int>(graph::Activation::kNeg); ++kind) {
    OpCase c;
    const TensorId gate = c.f32("gate", {7, 113}, random_values(7 * 113, 1, 4)), up = c.f32("up", {7, 113}, random_values(7 * 113, 2));
    c.output(c.graph.add(Op::glu, {gate, up}, graph::GluAttributes{static_cast<graph::Activation>(kind)}));
    EXPECT_TRUE(agrees(c, kActivationBound)) << kind;
  }
}

/// Gate and up side by side in one tensor, as a merged linear leaves them.
TEST(GluTest, HalvesOfOneTensor) {
  OpCase c;
  const TensorId both = c.f32("both", {5, 2 * 41 + 3}, random_values(5 * 85, 3));
  c.output(c.graph.add(Op::glu, {c.graph.slice(both, 1, 1, 42), c.graph.slice(both, 1, 43, 84)}));
  EXPECT_TRUE(agrees(c, kActivationBound));
}

TEST(GluTest, RowsBeyondTheCountStayUntouched) {
  for (std::int32_t valid : {0, 1, 6, 7, 8}) {
    OpCase c(2);
    const TensorId gate = c.f32("gate", {2, 7, 65}, random_values(2 * 7 * 65, 4)), up = c.f32("up", {2, 7, 65}, random_values(2 * 7 * 65, 5));
    c.output(c.graph.add(Op::glu, {gate, up}), 1);
    c.set_count(0, valid);
    c.set_count(1, 2, valid != 6);
    EXPECT_TRUE(agrees(c, kActivationBound)) << valid;
  }
}

}  // namespace
}  // namespace rondo::tests::glu_test
