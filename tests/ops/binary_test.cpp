#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::binary_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

struct Broadcast {
  Shape a, b;
};

class BinaryTest : public ::testing::TestWithParam<Broadcast> {};

constexpr Op kBinary[] = {Op::add, Op::sub, Op::mul, Op::div};
constexpr Tolerance kDivisionBound{1e-13};  // Vulkan allows 2.5 ULP

Tolerance bound_of(Op op) { return op == Op::div ? kDivisionBound : kExact; }

OpCase binary_case(Op op, const Shape& a, const Shape& b, bool swapped) {
  OpCase c;
  const TensorId left = c.f32("a", a, integer_values(count(a), 1, 1000)), right = c.f32("b", b, integer_values(count(b), 2, 1000));
  c.output(c.graph.add(op, {swapped ? right : left, swapped ? left : right}));
  return c;
}

TEST_P(BinaryTest, Broadcasts) {
  const auto& [a, b] = GetParam();
  for (Op op : kBinary) {
    for (bool swapped : {false, true}) EXPECT_TRUE(agrees(binary_case(op, a, b, swapped), bound_of(op))) << static_cast<int>(op) << ": " << to_string(a) << ", " << to_string(b);
  }
}

TEST(BinaryTest, AnotherOperationIsRejected) {
  for (Op op : kBinary) {
    for (Op other : kBinary) EXPECT_EQ(agrees_with(binary_case(op, {3, 37}, {37}, false), binary_case(other, {3, 37}, {37}, false), kDivisionBound), op == other);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, BinaryTest,
                         ::testing::Values(Broadcast{{1}, {1}}, Broadcast{{7}, {7}}, Broadcast{{257}, {1}}, Broadcast{{3, 37}, {37}},
                                           Broadcast{{3, 37}, {3, 1}}, Broadcast{{3, 1}, {1, 41}}, Broadcast{{2, 3, 89}, {3, 1}},
                                           Broadcast{{2, 1, 5, 41}, {7, 1, 41}}, Broadcast{{2, 3, 5, 7}, {2, 3, 5, 7}}, Broadcast{{1, 1, 1, 113}, {2, 3, 1, 1}}));

/// One rounding each: the same bits as the host's.
TEST(BinaryTest, RandomValuesAreRoundedOnce) {
  for (Op op : kBinary) {
    OpCase c;
    const TensorId a = c.f32("a", {41, 113}, random_values(41 * 113, 3, 1e3f)), b = c.f32("b", {41, 113}, random_values(41 * 113, 4));
    c.output(c.graph.add(op, {a, b}));
    EXPECT_TRUE(agrees(c, bound_of(op))) << static_cast<int>(op);
  }
}

}  // namespace
}  // namespace rondo::tests::binary_test
