#include "graph/cache_layout.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/float16.h"

namespace rondo::graph {

namespace {

constexpr std::uint16_t kHalfNan = 0x7e00, kHalfInfinity = 0x7c00;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// The magnitude with these bits, divided by 127, as f16. Integers: a driver's division is not exact.
std::uint16_t scale_of(std::uint32_t largest) {
  if (largest >= 0x7f800000u) return kHalfNan;
  const std::uint32_t exponent = largest >> 23;
  if (exponent < 108) return 0;  // below 2^-19: the quotient is less than half the least f16
  const std::uint32_t numerator = ((largest & 0x7fffffu) | 0x800000u) << 8;
  const std::uint32_t quotient = numerator / 127;
  // 24 bits as a float has them; the lowest one stands for all that is lost.
  const std::uint32_t shift = quotient >= 1u << 25 ? 2 : 1;
  const bool rest = quotient * 127 != numerator || (quotient & ((1u << shift) - 1)) != 0;
  const std::uint32_t mantissa = (quotient >> shift) | (rest ? 1u : 0u);
  const std::uint16_t half = float_to_half(std::bit_cast<float>(((exponent + shift - 8) << 23) | (mantissa & 0x7fffffu)));
  return half == kHalfInfinity ? kHalfNan : half;
}

}  // namespace

CacheLayout cache_layout(Type type, std::int64_t n_rows, std::int64_t width) {
  CacheLayout layout;
  layout.row_elements = round_up(width, type == Type::kQ8_0 ? kCacheGroup : type == Type::kF16 ? 2 : 1);
  const auto elements = static_cast<std::uint64_t>(n_rows * layout.row_elements);
  layout.size_bytes = elements * (type == Type::kF32 ? 4 : type == Type::kF16 ? 2 : 1);
  if (type != Type::kQ8_0) return layout;
  layout.scales_offset_words = elements / 4;
  layout.scale_row_words = static_cast<std::uint64_t>(round_up(layout.row_elements, 2 * kCacheGroup) / (2 * kCacheGroup));
  layout.size_bytes += 4 * layout.scale_row_words * static_cast<std::uint64_t>(n_rows);
  return layout;
}

Strides cache_strides(Type type, const Shape& shape) {
  const std::int64_t row = cache_layout(type, 1, shape[3]).row_elements;
  return {shape[1] * shape[2] * row, shape[2] * row, row, 1};
}

std::uint16_t quantize_group(std::span<const float> elements, std::span<std::int8_t, kCacheGroup> quants) {
  std::uint32_t largest = 0;
  for (const float element : elements) largest = std::max(largest, std::bit_cast<std::uint32_t>(element) & 0x7fffffffu);
  const std::uint16_t scale = scale_of(largest);
  std::fill(quants.begin(), quants.end(), std::int8_t{0});
  if (scale == 0 || scale == kHalfNan) return scale;
  const double divisor = half_to_float(scale);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    // A float's 24 bits over a half's 11 are at least 2^-26 from any half they are not: a double tells them apart.
    const double quant = std::min(127.0, std::floor(std::abs(static_cast<double>(elements[i])) / divisor + 0.5));
    quants[i] = static_cast<std::int8_t>(elements[i] < 0 ? -quant : quant);
  }
  return scale;
}

}  // namespace rondo::graph
