#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "graph/float16.h"

namespace rondo::graph::float16_test {
namespace {

/// The value of a half by its definition, without any of the code under test.
double value_of(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 31u);
  const double mantissa = half & 0x3ffu;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half & 0x8000u ? -magnitude : magnitude;
}

bool is_nan(std::uint32_t half) { return (half & 0x7fffu) > 0x7c00u; }

TEST(Float16Test, EveryHalfHasItsValueAndComesBack) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const float value = half_to_float(static_cast<std::uint16_t>(half));
    if (is_nan(half)) {
      EXPECT_TRUE(std::isnan(value)) << half;
      EXPECT_TRUE(is_nan(float_to_half(value))) << half;
      continue;
    }
    const float infinity = half & 0x8000u ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
    const bool is_infinite = (half & 0x7fffu) == 0x7c00u;
    EXPECT_EQ(static_cast<double>(value), is_infinite ? static_cast<double>(infinity) : value_of(half)) << half;
    EXPECT_EQ(float_to_half(value), half);
    EXPECT_EQ(std::signbit(value), (half & 0x8000u) != 0) << half;
  }
}

/// Between each two neighbours: just below the middle, the middle, just above it.
TEST(Float16Test, RoundsToNearestWithTiesToEven) {
  for (std::uint32_t half = 0; half < 0x7bffu; ++half) {
    const auto middle = static_cast<float>((value_of(half) + value_of(half + 1)) / 2);
    const std::uint32_t even = half % 2 == 0 ? half : half + 1;
    EXPECT_EQ(float_to_half(middle), even) << half;
    EXPECT_EQ(float_to_half(-middle), even | 0x8000u) << half;
    EXPECT_EQ(float_to_half(std::nextafter(middle, 0.0f)), half);
    EXPECT_EQ(float_to_half(std::nextafter(middle, 1e9f)), half + 1);
  }
}

TEST(Float16Test, OverflowBecomesInfinity) {
  EXPECT_EQ(float_to_half(65504.0f), 0x7bff);
  EXPECT_EQ(float_to_half(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_half(-65520.0f), 0xfc00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(Float16Test, SubnormalsAndUnderflow) {
  EXPECT_EQ(float_to_half(0x1p-24f), 1);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);  // a tie between 0 and the least subnormal: even
  EXPECT_EQ(float_to_half(0x1.000002p-25f), 1);
  EXPECT_EQ(float_to_half(0x1.8p-24f), 2);
  EXPECT_EQ(float_to_half(0x1.ff8p-15f), 0x3ff);  // the largest subnormal
  EXPECT_EQ(float_to_half(0x1.ffcp-15f), 0x400);  // a tie with the least normal: even
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::min()), 0x8000);
}

TEST(Float16Test, NanKeepsItsSignAndStaysNan) {
  // All payload bits below a half's ten: truncation alone would make it infinite.
  EXPECT_TRUE(is_nan(float_to_half(std::bit_cast<float>(0x7f800001u))));
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0xff800001u)) & 0x8000u, 0x8000u);
}

}  // namespace
}  // namespace rondo::graph::float16_test
