#include <cmath>

#include <gtest/gtest.h>

#include "tests/support/op_runner.h"

namespace rondo::tests::rope_test {
namespace {

using graph::Op;
using graph::RopeAttributes;
using graph::RopeStyle;
using graph::TensorId;

/// Two table entries of 2^-24 relative error each, joined by a product and a sum.
constexpr Tolerance kBound{1e-11};

std::vector<std::int32_t> positions_to(std::int32_t last, std::size_t n) {
  std::vector<std::int32_t> positions(n);
  for (std::size_t i = 0; i < n; ++i) positions[i] = n == 1 ? last : static_cast<std::int32_t>(static_cast<std::int64_t>(last) * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(n - 1));
  return positions;
}

struct Rope {
  graph::Shape shape;  ///< (B, H, T, D)
  RopeAttributes attributes;
};

class RopeTest : public ::testing::TestWithParam<Rope> {};

TEST_P(RopeTest, Rotates) {
  Rope rope = GetParam();
  const auto rows = static_cast<std::size_t>(rope.shape[2]);
  for (RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    rope.attributes.style = style;
    OpCase c(rope.shape[0]);
    const TensorId input = c.f32("input", rope.shape, random_values(static_cast<std::size_t>(rope.shape.n_elements()), 1));
    const TensorId positions = c.i32("positions", {rope.shape[2]}, positions_to(static_cast<std::int32_t>(rope.attributes.max_position) - 1, rows));
    c.output(c.graph.add(Op::rope, {input, positions}, rope.attributes), 2);
    EXPECT_TRUE(agrees(c, kBound)) << to_string(rope.shape);
  }
}

RopeAttributes attributes(std::int64_t dimensions, std::int64_t max_position, double theta = 10000) {
  RopeAttributes result;
  result.dimensions = dimensions;
  result.max_position = max_position;
  result.theta = theta;
  return result;
}

INSTANTIATE_TEST_SUITE_P(Shapes, RopeTest,
                         ::testing::Values(Rope{{1, 1, 1, 2}, attributes(0, 1)}, Rope{{1, 3, 7, 16}, attributes(0, 64)}, Rope{{2, 2, 5, 40}, attributes(0, 65)},
                                           Rope{{1, 2, 37, 64}, attributes(0, 131072)}, Rope{{1, 1, 41, 128}, attributes(0, 131072, 500000)},
                                           Rope{{1, 2, 3, 80}, attributes(20, 4099)}, Rope{{3, 1, 2, 37}, attributes(6, 257)}, Rope{{1, 1, 2, 257}, attributes(256, 1000)}));

TEST(RopeTest, IntegersAtPositionZeroPassUnchanged) {
  OpCase c;
  const TensorId input = c.f32("input", {1, 3, 1, 64}, integer_values(3 * 64, 2, 1000));
  c.output(c.graph.add(Op::rope, {input, c.i32("positions", {1}, std::vector<std::int32_t>{0})}, attributes(0, 64)), 2);
  EXPECT_TRUE(agrees(c, kExact));
}

TEST(RopeTest, FrequencyFactorsAndAttentionFactor) {
  for (RopeStyle style : {RopeStyle::kHalf, RopeStyle::kInterleaved}) {
    OpCase c;
    RopeAttributes scaled = attributes(32, 131072, 500000);
    scaled.style = style;
    scaled.attention_factor = 1.1386;
    std::vector<float> factors(16);
    for (std::size_t i = 0; i < 16; ++i) factors[i] = 1.0f + static_cast<float>(i) * 0.5f;
    const TensorId factor = c.graph.add_constant("factors", {16}, factors);
    const TensorId input = c.f32("input", {1, 2, 11, 48}, random_values(2 * 11 * 48, 3));
    c.output(c.graph.add(Op::rope, {input, c.i32("positions", {11}, positions_to(131071, 11)), factor}, scaled), 2);
    EXPECT_TRUE(agrees(c, kBound));
  }
}

/// Positions of their own per sequence, and heads inside rows as a linear leaves them.
TEST(RopeTest, PositionsPerSequenceAndHeadsInRows) {
  OpCase c(2);
  const TensorId rows = c.f32("rows", {2, 5, 3 * 40 + 7}, random_values(2 * 5 * 127, 4));
  const TensorId heads = c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, 4, 124), {2, 5, 3, 40}), {0, 2, 1, 3});
  const TensorId positions = c.i32("positions", {2, 5}, std::vector<std::int32_t>{0, 1, 2, 3, 4, 63, 64, 65, 127, 128});
  c.output(c.graph.add(Op::rope, {heads, positions}, attributes(0, 129)), 2);
  EXPECT_TRUE(agrees(c, kBound));
}

TEST(RopeTest, RowsBeyondTheCountStayUntouched) {
  for (std::int32_t valid : {0, 1, 6, 7, 8}) {
    OpCase c(2);
    const TensorId input = c.f32("input", {2, 3, 7, 66}, random_values(2 * 3 * 7 * 66, 5));
    c.output(c.graph.add(Op::rope, {input, c.i32("positions", {7}, positions_to(6, 7))}, attributes(0, 64)), 2);
    c.set_count(0, valid);
    c.set_count(1, 2, valid != 6);
    EXPECT_TRUE(agrees(c, kBound)) << valid;
  }
}

/// The bound rejects what a float angle would give: at position 131071 it is off by 2^-8.
TEST(RopeTest, TheBoundRejectsSinglePrecisionAngles) {
  OpCase c;
  const std::vector<float> values = random_values(64, 6);
  c.output(c.graph.add(Op::rope, {c.f32("input", {1, 1, 1, 64}, values), c.i32("positions", {1}, std::vector<std::int32_t>{131071})}, attributes(0, 131072)), 2);
  const auto reference = c.run_reference();
  ASSERT_TRUE(reference.ok());
  std::vector<float> wrong(64);
  for (std::size_t i = 0; i < 32; ++i) {
    const float angle = 131071.0f * std::pow(10000.0f, -static_cast<float>(i) / 32.0f);
    wrong[i] = values[i] * std::cos(angle) - values[i + 32] * std::sin(angle);
    wrong[i + 32] = values[i] * std::sin(angle) + values[i + 32] * std::cos(angle);
  }
  const std::vector<std::byte> before = graph::poison_bytes(256);
  EXPECT_NE(graph::find_difference({graph::Type::kF32, before, std::as_bytes(std::span(wrong)), reference->back()}, {10 * kBound.nmse}), "");
}

}  // namespace
}  // namespace rondo::tests::rope_test
