#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::sinusoidal_positions_test {
namespace {

using graph::Op;

constexpr Tolerance kBound{1e-12};

OpCase positions_case(std::span<const std::int32_t> positions, const graph::SinusoidAttributes& attributes) {
  OpCase c;
  c.output(c.graph.add(Op::sinusoidal_positions, {c.i32("positions", {static_cast<std::int64_t>(positions.size())}, positions)}, attributes));
  return c;
}

TEST(SinusoidalPositionsTest, EveryWidthAndBothLayouts) {
  std::vector<std::int32_t> positions;
  for (std::int32_t i = 0; i < 113; ++i) positions.push_back(i * 37);
  for (std::int64_t half : {1, 2, 3, 7, 37, 41, 89, 113, 257}) {
    for (graph::SinusoidLayout layout : {graph::SinusoidLayout::kInterleaved, graph::SinusoidLayout::kSplit}) {
      EXPECT_TRUE(agrees(positions_case(positions, {2 * half, 10000, layout}), kBound)) << half;
    }
  }
}

/// Angles that an f32 could not hold.
TEST(SinusoidalPositionsTest, FarAndNegativePositions) {
  const std::vector<std::int32_t> positions = {0, 1, -1, 65537, 16777217, 100000007, -100000007, 2147483647, -2147483647};
  for (double theta : {1.0, 500.0, 1e6}) EXPECT_TRUE(agrees(positions_case(positions, {16, theta}), kBound)) << theta;
}

TEST(SinusoidalPositionsTest, StridedPositions) {
  OpCase c;
  const std::vector<std::int32_t> positions = {0, 9, 2, 9, 4, 9, 6};
  const graph::SliceRange every_other[] = {{0, 7, 2}};
  c.output(c.graph.add(Op::sinusoidal_positions, {c.graph.slice(c.i32("positions", {7}, positions), every_other)}, graph::SinusoidAttributes{8}));
  EXPECT_TRUE(agrees(c, kBound));
}

TEST(SinusoidalPositionsTest, AnotherLayoutOrThetaIsRejected) {
  const std::vector<std::int32_t> positions = {1, 2, 3};
  const OpCase found = positions_case(positions, {16});
  EXPECT_FALSE(agrees_with(found, positions_case(positions, {16, 10000, graph::SinusoidLayout::kSplit}), kBound));
  EXPECT_FALSE(agrees_with(found, positions_case(positions, {16, 10001}), kBound));
}

}  // namespace
}  // namespace rondo::tests::sinusoidal_positions_test
