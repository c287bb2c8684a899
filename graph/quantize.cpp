#include "graph/quantize.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "graph/block_format.h"
#include "graph/float16.h"

namespace rondo::graph {

namespace {

constexpr std::size_t kBlock = 32;
constexpr std::uint16_t kHalfNan = 0x7e00;

using Block = std::span<const float, kBlock>;

void put_u16(std::byte* at, std::uint16_t value) { std::memcpy(at, &value, sizeof value); }

bool is_finite(Block values) {
  std::uint32_t largest = 0;
  for (const float value : values) largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  return largest < 0x7f800000u;
}

/// 0 for a scale of 0, or so small that there is no other.
float inverse(float scale) {
  const float factor = 1 / scale;
  return std::isfinite(factor) ? factor : 0;
}

/// The whole part, in [0, most].
std::uint8_t whole_part(float value, std::uint8_t most) {
  if (!(value > 0)) return 0;
  return value < static_cast<float>(most) ? static_cast<std::uint8_t>(value) : most;
}

/// The first value of largest magnitude, with its sign.
float furthest(Block values) {
  float largest = 0, found = 0;
  for (const float value : values) {
    if (std::abs(value) <= largest) continue;
    largest = std::abs(value);
    found = value;
  }
  return found;
}

/// The low four bits of element i and of element i + 16 make byte i.
void put_nibbles(const std::uint8_t (&quants)[kBlock], std::byte* at) {
  for (std::size_t i = 0; i < kBlock / 2; ++i) at[i] = static_cast<std::byte>((quants[i] & 15u) | (quants[i + kBlock / 2] & 15u) << 4);
}

/// The fifth bits, element i's at bit i.
void put_high_bits(const std::uint8_t (&quants)[kBlock], std::byte* at) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < kBlock; ++i) bits |= (quants[i] >> 4 & 1u) << i;
  std::memcpy(at, &bits, sizeof bits);
}

void quantize_q8_0(Block values, std::byte* at) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  const float scale = largest / 127, factor = inverse(scale);
  put_u16(at, float_to_half(scale));
  for (std::size_t i = 0; i < kBlock; ++i) {
    const float quant = std::clamp(values[i] * factor, -127.0f, 127.0f);
    const int whole = static_cast<int>(quant);
    const float rest = quant - static_cast<float>(whole);
    at[2 + i] = static_cast<std::byte>(whole + (rest >= 0.5f) - (rest <= -0.5f));  // halves away from 0
  }
}

/// q4_0 and q5_0: the furthest value becomes -2^(bits - 1), stored as 0; all are stored with that added.
template <int kBits>
void quantize_symmetric(Block values, std::byte* at) {
  constexpr float kZero = 1 << (kBits - 1);
  const float scale = furthest(values) / -kZero, factor = inverse(scale);
  put_u16(at, float_to_half(scale));
  std::uint8_t quants[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) quants[i] = whole_part(values[i] * factor + (kZero + 0.5f), (1 << kBits) - 1);
  if constexpr (kBits == 5) put_high_bits(quants, at + 2);
  put_nibbles(quants, at + (kBits == 5 ? 6 : 2));
}

/// q4_1 and q5_1: from the least value, stored as 0, to the largest.
template <int kBits>
void quantize_range(Block values, std::byte* at) {
  constexpr std::uint8_t kMost = (1 << kBits) - 1;
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const float scale = (*largest - *least) / kMost, factor = inverse(scale);
  put_u16(at, float_to_half(scale));
  put_u16(at + 2, float_to_half(*least));
  std::uint8_t quants[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) quants[i] = whole_part((values[i] - *least) * factor + 0.5f, kMost);
  if constexpr (kBits == 5) put_high_bits(quants, at + 4);
  put_nibbles(quants, at + (kBits == 5 ? 8 : 4));
}

/// The largest magnitude is between 4 and 8 times the scale, 6 times it the most that there is.
void quantize_mxfp4(Block values, std::byte* at) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const float largest = std::abs(furthest(values));
  const int exponent = largest > 0 ? std::max(std::ilogb(largest) - 2 + 127, 0) : 0;
  const float factor = std::ldexp(1.0f, 127 - exponent);
  at[0] = static_cast<std::byte>(exponent);
  std::uint8_t quants[kBlock];
  for (std::size_t i = 0; i < kBlock; ++i) {
    const float magnitude = std::abs(values[i]) * factor;
    int nearest = 0;  // of two that are as near, the smaller
    for (std::size_t next = 1; next < 8; ++next) nearest += magnitude > (kMagnitudes[next - 1] + kMagnitudes[next]) / 2;
    quants[i] = static_cast<std::uint8_t>(values[i] < 0 && nearest > 0 ? nearest + 8 : nearest);
  }
  put_nibbles(quants, at + 1);
}

template <Type type, void (*quantize)(Block, std::byte*)>
void quantize_blocks(std::span<const float> values, std::byte* blocks) {
  const std::size_t block_bytes = find_block_format(type)->block_bytes;
  for (; values.size() >= kBlock; values = values.subspan(kBlock), blocks += block_bytes) {
    const Block block = values.first<kBlock>();
    if (is_finite(block)) {
      quantize(block, blocks);
      continue;
    }
    std::memset(blocks, 0, block_bytes);
    if (type == Type::kMXFP4) blocks[0] = std::byte{255};
    else put_u16(blocks, kHalfNan);
  }
}

void copy_f32(std::span<const float> values, std::byte* blocks) { std::memcpy(blocks, values.data(), values.size_bytes()); }

void round_f16(std::span<const float> values, std::byte* blocks) {
  for (std::size_t i = 0; i < values.size(); ++i) put_u16(blocks + 2 * i, float_to_half(values[i]));
}

/// To the nearest, of two the even one; NaN stays one.
void round_bf16(std::span<const float> values, std::byte* blocks) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t rounded = std::isnan(values[i]) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
    put_u16(blocks + 2 * i, static_cast<std::uint16_t>(rounded >> 16));
  }
}

struct Quantizer {
  Type type;
  Quantize quantize;
};

constexpr Quantizer kQuantizers[] = {
    {Type::kF32, copy_f32},
    {Type::kF16, round_f16},
    {Type::kBF16, round_bf16},
    {Type::kQ8_0, quantize_blocks<Type::kQ8_0, quantize_q8_0>},
    {Type::kQ5_1, quantize_blocks<Type::kQ5_1, quantize_range<5>>},
    {Type::kQ5_0, quantize_blocks<Type::kQ5_0, quantize_symmetric<5>>},
    {Type::kQ4_1, quantize_blocks<Type::kQ4_1, quantize_range<4>>},
    {Type::kQ4_0, quantize_blocks<Type::kQ4_0, quantize_symmetric<4>>},
    {Type::kMXFP4, quantize_blocks<Type::kMXFP4, quantize_mxfp4>},
};

}  // namespace

Quantize find_quantizer(Type type) {
  for (const Quantizer& each : kQuantizers) {
    if (each.type == type) return each.quantize;
  }
  return nullptr;
}

std::optional<Type> find_quantized_type(std::string_view name) {
  const auto is_same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b)); };
  for (const Quantizer& each : kQuantizers) {
    const std::string_view known = type_name(each.type);
    if (std::equal(name.begin(), name.end(), known.begin(), known.end(), is_same)) return each.type;
  }
  return std::nullopt;
}

std::string quantized_type_names() {
  std::string names;
  for (const Quantizer& each : kQuantizers) names += (names.empty() ? "" : ", ") + std::string(type_name(each.type));
  return names;
}

}  // namespace rondo::graph
