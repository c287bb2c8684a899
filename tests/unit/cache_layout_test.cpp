// The layout of keys and values, and the definition of q8_0's conversion, checked against the exact quotients.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "graph/cache_layout.h"
#include "graph/float16.h"
#include "tools/check/op_case.h"

namespace rondo::graph::cache_layout_test {
namespace {

struct Group {
  std::array<std::int8_t, kCacheGroup> quants{};
  std::uint16_t scale = 0;
  explicit Group(std::span<const float> elements) { scale = quantize_group(elements, quants); }
};

TEST(CacheLayoutTest, RowsArePaddedAndScalesFollow) {
  EXPECT_EQ(cache_layout(Type::kF32, 7, 37).size_bytes, 7u * 37 * 4);
  EXPECT_EQ(cache_layout(Type::kF16, 7, 37).size_bytes, 7u * 38 * 2);
  for (const auto& [width, padded, scale_words] : {std::array{1, 32, 1}, std::array{32, 32, 1}, std::array{40, 64, 1}, std::array{64, 64, 1}, std::array{72, 96, 2}, std::array{128, 128, 2}}) {
    const CacheLayout layout = cache_layout(Type::kQ8_0, 7, width);
    EXPECT_EQ(layout.row_elements, padded);
    EXPECT_EQ(layout.scales_offset_words, static_cast<std::uint64_t>(7 * padded / 4));
    EXPECT_EQ(layout.scale_row_words, static_cast<std::uint64_t>(scale_words));
    EXPECT_EQ(layout.size_bytes, static_cast<std::uint64_t>(7 * (padded + 4 * scale_words)));
  }
  EXPECT_EQ(cache_strides(Type::kQ8_0, {2, 3, 5, 40}), (Strides{3 * 5 * 64, 5 * 64, 64, 1}));
}

/// Of all halves the scale is the nearest to the largest magnitude over 127, ties to even: products of halves and 127 are exact.
TEST(QuantizeGroupTest, TheScaleIsTheNearestHalf) {
  std::vector<float> magnitudes = {0x1p-19f, 0x1.fcp-19f, 127 * 0x1p-25f, 0x1.fc0002p-19f, 127 * 0x1p-24f, 127 * 65504.0f, std::nextafter(127 * 65520.0f, 0.0f)};
  for (const float value : check::random_values(20000, 3)) magnitudes.push_back(std::abs(value) * std::ldexp(1.0f, static_cast<int>(magnitudes.size() % 43) - 20));
  for (std::uint32_t half = 1; half < 0x7bffu; half += 3) {  // ties, which have 19 bits
    magnitudes.push_back(127 * (half_to_float(static_cast<std::uint16_t>(half)) + half_to_float(static_cast<std::uint16_t>(half + 1))) / 2);
  }
  for (const float magnitude : magnitudes) {
    const std::uint16_t scale = Group(std::array{0.0f, -magnitude}).scale;
    const auto distance = [&](std::uint16_t half) { return std::abs(127.0 * static_cast<double>(half_to_float(half)) - static_cast<double>(magnitude)); };
    ASSERT_LT(scale, 0x7c00u) << magnitude;
    for (const int step : {-1, 1}) {
      if (scale + step < 0 || scale + step > 0x7bff) continue;
      const double own = distance(scale), other = distance(static_cast<std::uint16_t>(scale + step));
      EXPECT_TRUE(own < other || (own == other && scale % 2 == 0)) << magnitude;
    }
  }
}

TEST(QuantizeGroupTest, QuantsAreTheNearestWithHalvesAwayFromZero) {
  const Group whole(std::array{127.0f, 0.5f, -0.5f, 0.49999997f, 2.5f, -3.5f, 126.5f, 126.49999f, -126.5f, -0.0f, 1e-45f});
  EXPECT_EQ(whole.scale, 0x3c00u);
  constexpr std::array kExpected = {127, 1, -1, 0, 3, -4, 127, 126, -127, 0, 0};
  for (std::size_t i = 0; i < kCacheGroup; ++i) EXPECT_EQ(whole.quants[i], i < kExpected.size() ? kExpected[i] : 0) << i;
  // A subnormal scale that is rounded down makes quants beyond the range: they end there.
  const Group small(std::array{1.4f * 127 * 0x1p-24f, -1.4f * 127 * 0x1p-24f, 0x1p-24f});
  EXPECT_EQ(small.scale, 1u);
  EXPECT_EQ(small.quants[0], 127);
  EXPECT_EQ(small.quants[1], -127);
  EXPECT_EQ(small.quants[2], 1);
}

TEST(QuantizeGroupTest, WhatHasNoScale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  for (const float zero : {0.0f, -0.0f, 1e-45f, 0x1p-126f, 0x1p-20f}) EXPECT_EQ(Group(std::array{zero, -zero}).scale, 0u) << zero;
  for (const float poison : {kInfinity, -kInfinity, kNan, -kNan, 127 * 65520.0f, 3e38f}) {
    const Group group(std::array{1.0f, poison, 2.0f});
    EXPECT_TRUE(std::isnan(half_to_float(group.scale))) << poison;
    for (const std::int8_t quant : group.quants) EXPECT_EQ(quant, 0);
  }
}

TEST(CacheTensorTest, RefusesInWords) {
  const auto refusal = [](Type type, const Shape& shape) {
    Graph graph;
    graph.add_cache("keys", StorageKind::kCache, type, shape);
    return std::string(graph.status().message());
  };
  EXPECT_EQ(refusal(Type::kQ8_0, {1, 2, 3, 40}), "");
  EXPECT_EQ(refusal(Type::kQ4_0, {1, 2, 3, 40}), "cache keys is q4_0 but must be f32, f16 or q8_0");
  EXPECT_EQ(refusal(Type::kF16, {2, 3, 40}), "cache keys: shape (2, 3, 40) is not (B, G, S, D), is empty or has more than 2^31 elements");
  EXPECT_NE(refusal(Type::kQ8_0, {1, 1 << 15, 1 << 10, 63}), "") << "with its padding it is too large";
  Graph graph;
  graph.add_tensor("x", StorageKind::kInput, Type::kQ8_0, {2, 32});
  EXPECT_EQ(graph.status().message(), "tensor x: q8_0 is a type of caches and weights");
}

}  // namespace
}  // namespace rondo::graph::cache_layout_test
