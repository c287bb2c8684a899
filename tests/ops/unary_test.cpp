#include <limits>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::unary_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

constexpr Tolerance kBound{1e-10};
constexpr Op kUnary[] = {Op::relu, Op::gelu, Op::gelu_tanh, Op::quick_gelu, Op::silu, Op::tanh, Op::sigmoid, Op::exp, Op::neg};

class UnaryTest : public ::testing::TestWithParam<Op> {};

OpCase unary_case(Op op, const Shape& shape, float scale) {
  OpCase c;
  c.output(c.graph.add(op, {c.f32("input", shape, random_values(count(shape), 1, scale))}));
  return c;
}

/// Down to inputs so small that a difference of nearly equal numbers would leave nothing right.
TEST_P(UnaryTest, RandomValues) {
  for (const Shape& shape : {Shape{1}, Shape{2, 3}, Shape{7, 37}, Shape{41, 89}, Shape{2, 3, 5, 113}, Shape{3, 257}}) {
    for (float scale : {1e-4f, 0.3f, 6.0f, 80.0f}) {
      if (scale > 10 && count(shape) == 1) continue;  // a result below the normal numbers, which may be flushed, would be all there is
      EXPECT_TRUE(agrees(unary_case(GetParam(), shape, scale), kBound)) << to_string(shape) << ", scale " << scale;
    }
  }
}

TEST_P(UnaryTest, FarTails) {
  OpCase c;
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(-3.0f - 0.05f * static_cast<float>(i));
  c.output(c.graph.add(GetParam(), {c.f32("input", {64}, values)}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST_P(UnaryTest, ExtremesAndNan) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  OpCase c;
  c.output(c.graph.add(GetParam(), {c.f32("input", {10}, std::vector<float>{0, -0.0f, inf, nan, 1e30f, -1e30f, 3e38f, -3e38f, 88, -88})}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST_P(UnaryTest, AnotherFunctionIsRejected) {
  for (Op other : kUnary) {
    if (other == GetParam()) continue;
    EXPECT_FALSE(agrees_with(unary_case(GetParam(), {7, 37}, 2), unary_case(other, {7, 37}, 2), kBound)) << static_cast<int>(other);
  }
}

INSTANTIATE_TEST_SUITE_P(All, UnaryTest, ::testing::ValuesIn(kUnary));

}  // namespace
}  // namespace rondo::tests::unary_test
