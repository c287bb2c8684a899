#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::reduce_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

constexpr Tolerance kBound{1e-13};

class ReduceTest : public ::testing::TestWithParam<Op> {};

OpCase reduce_case(Op op, const Shape& shape, std::int64_t axis, bool keep = false) {
  OpCase c;
  c.output(c.graph.add(op, {c.f32("input", shape, random_values(count(shape), 1))}, graph::ReduceAttributes{.axis = axis, .keep = keep}));
  return c;
}

TEST_P(ReduceTest, WorkgroupsOfAnyDevice) {
  RunOptions options;
  options.pretend = runtime::DeviceType::kDiscrete;
  for (std::int64_t n : {1, 41, 257, 5000}) EXPECT_TRUE(agrees(reduce_case(GetParam(), {3, n}, -1), kBound, options)) << n;
}

/// Long enough that llvmpipe would end a loop over all of it, and small beside its terms.
TEST_P(ReduceTest, LongRowsThatCancel) {
  OpCase c;
  std::vector<float> values = random_values(300000, 2, 1000);
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) values[i + 1] = 1e-3f - values[i];
  c.output(c.graph.add(GetParam(), {c.f32("input", {300000}, values)}));
  EXPECT_TRUE(agrees(c, Tolerance{1e-11}));
}

TEST_P(ReduceTest, AnotherReductionIsRejected) {
  for (Op other : {Op::mean, Op::sum, Op::max}) EXPECT_EQ(agrees_with(reduce_case(GetParam(), {7, 7}, 0), reduce_case(other, {7, 7}, 0), kBound), other == GetParam());
  EXPECT_FALSE(agrees_with(reduce_case(GetParam(), {7, 7}, 0), reduce_case(GetParam(), {7, 7}, 1), kBound));
}

INSTANTIATE_TEST_SUITE_P(All, ReduceTest, ::testing::Values(Op::mean, Op::sum, Op::max));

}  // namespace
}  // namespace rondo::tests::reduce_test
