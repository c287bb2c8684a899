#include <limits>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::softmax_test {
namespace {

using graph::Op;
using graph::Shape;
using graph::TensorId;

std::size_t count(const Shape& shape) { return static_cast<std::size_t>(shape.n_elements()); }

constexpr Tolerance kBound{1e-10};
constexpr float kInf = std::numeric_limits<float>::infinity();

class SoftmaxTest : public ::testing::TestWithParam<Op> {};

OpCase softmax_case(Op op, const Shape& shape, const graph::SoftmaxAttributes& attributes, float scale = 4) {
  OpCase c;
  c.output(c.graph.add(op, {c.f32("input", shape, random_values(count(shape), 1, scale))}, attributes));
  return c;
}

TEST_P(SoftmaxTest, WorkgroupsOfAnyDevice) {
  RunOptions options;
  options.pretend = runtime::DeviceType::kDiscrete;
  for (std::int64_t n : {1, 41, 257, 5000}) EXPECT_TRUE(agrees(softmax_case(GetParam(), {3, n}, {.scale = -2}), kBound, options)) << n;
}

/// Scores of 1e4 differ by little: what is rounded before the difference is taken would show.
TEST_P(SoftmaxTest, LargeScoresCloseToEachOther) {
  OpCase c;
  std::vector<float> values = random_values(5 * 113, 2, 8);
  for (float& value : values) value += 30000.0f;
  c.output(c.graph.add(GetParam(), {c.f32("input", {5, 113}, values)}, graph::SoftmaxAttributes{-1, 0.37}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST_P(SoftmaxTest, MaskIsAddedAfterScalingAndBroadcasts) {
  for (const Shape& shape : {Shape{41}, Shape{7, 41}, Shape{1, 41}, Shape{3, 1, 41}, Shape{2, 1, 7, 41}, Shape{2, 3, 7, 1}}) {
    OpCase c;
    const TensorId input = c.f32("input", {2, 3, 7, 41}, random_values(2 * 3 * 7 * 41, 3, 5));
    std::vector<float> mask = random_values(count(shape), 4, 2);
    for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = -kInf;
    c.output(c.graph.add(GetParam(), {input, c.f32("mask", shape, mask)}, graph::SoftmaxAttributes{-1, 0.5}));
    EXPECT_TRUE(agrees(c, kBound)) << to_string(shape);
  }
}

/// Rows: all -inf, one finite, the largest finite numbers, -FLT_MAX throughout.
TEST_P(SoftmaxTest, InfinitiesAndExtremes) {
  constexpr float most = std::numeric_limits<float>::max();
  OpCase c;
  c.output(c.graph.add(GetParam(), {c.f32("input", {4, 3}, std::vector<float>{-kInf, -kInf, -kInf, -kInf, 5, -kInf, most, most, 0, -most, -most, -most})}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST_P(SoftmaxTest, AnInactiveSequenceStaysUntouched) {
  OpCase c(2);
  c.output(c.graph.add(GetParam(), {c.f32("input", {2, 3, 7, 5}, random_values(210, 5))}), 1);
  c.set_count(1, 0, false);
  EXPECT_TRUE(agrees(c, kBound));
}

TEST_P(SoftmaxTest, AnotherAxisIsRejected) {
  EXPECT_FALSE(agrees_with(softmax_case(GetParam(), {7, 7}, {}), softmax_case(GetParam(), {7, 7}, {.axis = 0}), kBound));
  EXPECT_FALSE(agrees_with(softmax_case(GetParam(), {7, 7}, {}), softmax_case(GetParam(), {7, 7}, {.axis = -1, .scale = 1.001}), kBound));
}

INSTANTIATE_TEST_SUITE_P(Both, SoftmaxTest, ::testing::Values(Op::softmax, Op::log_softmax));

}  // namespace
}  // namespace rondo::tests::softmax_test
