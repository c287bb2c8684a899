// The numbers of MXFP4 from the definition of their fields (OCP Microscaling Formats, version 1.0), not from tables.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace rondo::tests {

/// E2M1: sign, two bits of exponent with bias 1, one bit of mantissa; exponent 0 has the subnormal numbers.
inline float e2m1_value(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> 1 & 3u, mantissa = bits & 1u;
  const float fraction = static_cast<float>(mantissa) / 2;
  const float magnitude = exponent == 0 ? fraction : std::ldexp(1 + fraction, static_cast<int>(exponent) - 1);
  return bits >> 3 & 1u ? -magnitude : magnitude;
}

/// E8M0: a power of two with bias 127; 255 is NaN.
inline float e8m0_value(std::uint32_t bits) {
  return bits == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
}

}  // namespace rondo::tests
