// Weight types in blocks of 32 elements with one scale, and some with a minimum.
#include <bit>
#include <limits>

#include "graph/block_packing.h"
#include "graph/float16.h"

namespace rondo::graph {

namespace {

/// Stores f16 number `index` of a plane of packed pairs; the first of a pair clears its partner.
void put_scale(std::uint32_t* scales, std::uint32_t index, std::uint16_t half) {
  if (index % 2 == 0) scales[index / 2] = half;
  else scales[index / 2] |= static_cast<std::uint32_t>(half) << 16;
}

// Q8_0: f16 scale, 32 signed bytes.
void repack_q8_0(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 34;
    put_scale(scales, block, read_u16(at));
    std::memcpy(quants + std::size_t{block} * 8, at + 2, 32);
  }
}

void dequantize_q8_0(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 34;
    values[i] = half_to_float(read_u16(at)) * static_cast<float>(static_cast<std::int8_t>(at[2 + i % 32]));
  }
}

/// Element i of 32 in 16 bytes: in the low half of byte i, or in the high half of byte i - 16.
std::uint32_t nibble(const std::byte* bytes, std::uint32_t i) {
  const auto byte = static_cast<std::uint32_t>(bytes[i % 16]);
  return i < 16 ? byte & 15u : byte >> 4;
}

/// 16 bytes of nibbles in the order of pack_bits.
void repack_nibbles(const std::byte* bytes, std::uint32_t* words) {
  std::uint8_t q[32];
  for (std::uint32_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(nibble(bytes, i));
  pack_bits<0, 4>(q, 32, words);
}

/// Bit i of a word is the high bit of element i.
void repack_high_bits(std::uint32_t bits, std::uint32_t* word) {
  std::uint8_t q[32];
  for (std::uint32_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(bits >> i & 1u);
  pack_bits<0, 1>(q, 32, word);
}

// Q4_0: f16 scale, 16 bytes of nibbles; value - 8.
void repack_q4_0(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 18;
    put_scale(scales, block, read_u16(at));
    repack_nibbles(at + 2, quants + std::size_t{block} * 4);
  }
}

void dequantize_q4_0(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 18;
    values[i] = half_to_float(read_u16(at)) * (static_cast<float>(nibble(at + 2, i % 32)) - 8.0f);
  }
}

// Q4_1: f16 scale and f16 minimum, 16 bytes of nibbles; scale q + minimum.
void repack_q4_1(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 20;
    scales[block] = read_u32(at);
    repack_nibbles(at + 4, quants + std::size_t{block} * 4);
  }
}

void dequantize_q4_1(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 20;
    values[i] = half_to_float(read_u16(at)) * static_cast<float>(nibble(at + 4, i % 32)) + half_to_float(read_u16(at + 2));
  }
}

// Q5_0: f16 scale, 32 high bits, 16 bytes of nibbles; value - 16. The high bits join the scales, three words for two groups,
// since rows of five words a group would not be multiples of 16 bytes.
void repack_q5_0(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 22;
    std::uint32_t* pair = scales + std::size_t{block / 2} * 3;
    put_scale(pair, block % 2, read_u16(at));
    if (block % 2 == 0) pair[2] = 0;
    repack_high_bits(read_u32(at + 2), pair + 1 + block % 2);
    repack_nibbles(at + 6, quants + std::size_t{block} * 4);
  }
}

void dequantize_q5_0(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 22;
    const std::uint32_t q = nibble(at + 6, i % 32) | (read_u32(at + 2) >> (i % 32) & 1u) << 4;
    values[i] = half_to_float(read_u16(at)) * (static_cast<float>(q) - 16.0f);
  }
}

// Q5_1: f16 scale and f16 minimum, 32 high bits, 16 bytes of nibbles; scale q + minimum.
void repack_q5_1(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 24;
    std::uint32_t* to = scales + std::size_t{block} * 2;
    to[0] = read_u32(at);
    repack_high_bits(read_u32(at + 4), to + 1);
    repack_nibbles(at + 8, quants + std::size_t{block} * 4);
  }
}

void dequantize_q5_1(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 24;
    const std::uint32_t q = nibble(at + 8, i % 32) | (read_u32(at + 4) >> (i % 32) & 1u) << 4;
    values[i] = half_to_float(read_u16(at)) * static_cast<float>(q) + half_to_float(read_u16(at + 2));
  }
}

// IQ4_NL: f16 scale, 16 bytes of nibbles, each the place of its value in a table.
void repack_iq4_nl(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 18;
    put_scale(scales, block, read_u16(at));
    repack_nibbles(at + 2, quants + std::size_t{block} * 4);
  }
}

void dequantize_iq4_nl(std::span<const std::byte> row, std::uint32_t k, float* values) {
  constexpr float kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 18;
    values[i] = half_to_float(read_u16(at)) * kValues[nibble(at + 2, i % 32)];
  }
}

// MXFP4 (OCP Microscaling Formats, version 1.0): an E8M0 scale, 2^(byte - 127) with 255 for NaN, and 16 bytes of E2M1.
void repack_mxfp4(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 17;
    if (block % 4 == 0) scales[block / 4] = 0;
    scales[block / 4] |= static_cast<std::uint32_t>(at[0]) << (8 * (block % 4));
    repack_nibbles(at + 1, quants + std::size_t{block} * 4);
  }
}

void dequantize_mxfp4(std::span<const std::byte> row, std::uint32_t k, float* values) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 17;
    const auto exponent = static_cast<std::uint32_t>(at[0]);
    float scale = std::bit_cast<float>(exponent == 0 ? 0x00400000u : exponent << 23);
    if (exponent == 255) scale = std::numeric_limits<float>::quiet_NaN();
    const std::uint32_t q = nibble(at + 1, i % 32);
    values[i] = (q < 8 ? scale : -scale) * kMagnitudes[q % 8];
  }
}

}  // namespace

extern const BlockFormat q8_0_format = {Type::kQ8_0, 32, 34, 8, 2, 1, repack_q8_0, dequantize_q8_0};
extern const BlockFormat q4_0_format = {Type::kQ4_0, 32, 18, 4, 2, 1, repack_q4_0, dequantize_q4_0};
extern const BlockFormat q4_1_format = {Type::kQ4_1, 32, 20, 4, 1, 1, repack_q4_1, dequantize_q4_1};
extern const BlockFormat q5_0_format = {Type::kQ5_0, 32, 22, 4, 2, 3, repack_q5_0, dequantize_q5_0};
extern const BlockFormat q5_1_format = {Type::kQ5_1, 32, 24, 4, 1, 2, repack_q5_1, dequantize_q5_1};
extern const BlockFormat iq4_nl_format = {Type::kIQ4_NL, 32, 18, 4, 2, 1, repack_iq4_nl, dequantize_iq4_nl};
extern const BlockFormat mxfp4_format = {Type::kMXFP4, 32, 17, 4, 4, 1, repack_mxfp4, dequantize_mxfp4};

}  // namespace rondo::graph
