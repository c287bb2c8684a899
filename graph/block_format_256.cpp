// The K types: blocks of 256 elements, which scales for 16 or 32 elements share one or two f16 numbers. In the reference
// functions every product is exact in f32: 11 bits of a f16 number, at most 7 of a scale and 5 of a quant.
#include "graph/block_packing.h"
#include "graph/float16.h"

namespace rondo::graph {

namespace {

/// Scale and minimum of some elements.
struct ScaleAndMin {
  std::uint32_t scale, min;
};

/// Q2_K, Q3_K and the high bits of Q6_K: of each 128 elements, 32 at a time are bits 0-1, 2-3, 4-5 and 6-7 of 32 bytes.
std::uint32_t bit_pair(const std::byte* bytes, std::uint32_t i) {
  return static_cast<std::uint32_t>(bytes[i / 128 * 32 + i % 32]) >> (i % 128 / 32 * 2) & 3u;
}

/// Q4_K and Q5_K: of each 64 elements, the first 32 are the low halves of 32 bytes.
std::uint32_t half_byte(const std::byte* bytes, std::uint32_t i) {
  const auto byte = static_cast<std::uint32_t>(bytes[i / 64 * 32 + i % 32]);
  return i / 32 % 2 == 0 ? byte & 15u : byte >> 4;
}

/// Q3_K and Q5_K: of 32 bytes, the elements of group g have bit g.
std::uint32_t single_bit(const std::byte* bytes, std::uint32_t i) {
  return static_cast<std::uint32_t>(bytes[i % 32]) >> (i / 32) & 1u;
}

// Q2_K: 16 bytes with a scale (low half) and a minimum for 16 elements each, 64 bytes of pairs of bits, f16 d and dmin.
void unpack_q2_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) quants[i] = static_cast<std::uint8_t>(bit_pair(block + 16, i));
}

/// A block's scales are five words: d and dmin, and the 16 bytes as in the file.
void repack_q2_k(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales) {
  pack_bits<0, 2>(q, 256, quants);
  scales[0] = read_u32(block + 80);
  std::memcpy(scales + 1, block, 16);
}

void dequantize_q2_k(const std::byte* block, const std::uint8_t* q, float* values) {
  const float d = half_to_float(read_u16(block + 80)), dmin = half_to_float(read_u16(block + 82));
  for (std::uint32_t part = 0; part < 16; ++part) {
    const auto packed = static_cast<std::uint32_t>(block[part]);
    const float scale = d * static_cast<float>(packed & 15u), min = dmin * static_cast<float>(packed >> 4);
    float* to = values + part * 16;
    for (std::uint32_t i = 0; i < 16; ++i) to[i] = scale * static_cast<float>(q[part * 16 + i]) - min;
  }
}

// Q3_K: 32 bytes of high bits, 64 bytes of pairs of bits, 12 bytes of scales, f16 d.
void unpack_q3_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) quants[i] = static_cast<std::uint8_t>(bit_pair(block + 32, i) | single_bit(block, i) << 2);
}

/// The scale of 16 elements, six bits less 32: the low four are halves of bytes 0 to 7, low ones first; the high two are bits
/// 0-1, 2-3, 4-5 and 6-7 of bytes 8 to 11, for four scales each.
std::int32_t q3_k_scale(const std::byte* block, std::uint32_t part) {
  const auto low = static_cast<std::uint32_t>(block[96 + part % 8]), high = static_cast<std::uint32_t>(block[104 + part % 4]);
  return static_cast<std::int32_t>((low >> (part / 8 * 4) & 15u) | (high >> (part / 4 * 2) & 3u) << 4) - 32;
}

/// A block's quants are the pairs of its 8 groups, two words each, then a word of high bits for each. Its scales are five
/// words, as q6_K's: d, and 16 signed bytes.
void repack_q3_k(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales) {
  pack_bits<0, 2>(q, 256, quants);
  pack_bits<2, 1>(q, 256, quants + 16);
  std::int8_t bytes[16];
  for (std::uint32_t part = 0; part < 16; ++part) bytes[part] = static_cast<std::int8_t>(q3_k_scale(block, part));
  scales[0] = read_u16(block + 108);
  std::memcpy(scales + 1, bytes, 16);
}

void dequantize_q3_k(const std::byte* block, const std::uint8_t* q, float* values) {
  const float d = half_to_float(read_u16(block + 108));
  for (std::uint32_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(q3_k_scale(block, part));
    float* to = values + part * 16;
    for (std::uint32_t i = 0; i < 16; ++i) to[i] = scale * (static_cast<float>(q[part * 16 + i]) - 4.0f);
  }
}

/// Q4_K and Q5_K: six bits each of group 0 to 7, behind f16 d and dmin. Those of the first four are the low bits of bytes 0 to
/// 3 and 4 to 7, whose two high bits continue the halves of bytes 8 to 11, the low halves the scales' and the high ones the mins'.
ScaleAndMin group_scales(const std::byte* block, std::uint32_t group) {
  const auto byte = [block](std::uint32_t i) { return static_cast<std::uint32_t>(block[4 + i]); };
  if (group < 4) return {byte(group) & 63u, byte(group + 4) & 63u};
  const std::uint32_t low = byte(group + 4);
  return {(low & 15u) | byte(group - 4) >> 6 << 4, low >> 4 | byte(group) >> 6 << 4};
}

/// Four words: d and dmin, the low four bits of 8 scales, those of 8 mins, and the high two bits of the scales and, above
/// them, of the mins.
void repack_group_scales(const std::byte* block, std::uint32_t* scales) {
  std::uint32_t low_scales = 0, low_mins = 0, high = 0;
  for (std::uint32_t group = 0; group < 8; ++group) {
    const ScaleAndMin packed = group_scales(block, group);
    low_scales |= (packed.scale & 15u) << (4 * group);
    low_mins |= (packed.min & 15u) << (4 * group);
    high |= packed.scale >> 4 << (2 * group) | packed.min >> 4 << (16 + 2 * group);
  }
  const std::uint32_t words[4] = {read_u32(block), low_scales, low_mins, high};
  std::memcpy(scales, words, sizeof words);
}

/// The values of a block's quants.
void scale_groups(const std::byte* block, const std::uint8_t* quants, float* values) {
  const float d = half_to_float(read_u16(block)), dmin = half_to_float(read_u16(block + 2));
  for (std::uint32_t group = 0; group < 8; ++group) {
    const ScaleAndMin packed = group_scales(block, group);
    const float scale = d * static_cast<float>(packed.scale), min = dmin * static_cast<float>(packed.min);
    for (std::uint32_t i = group * 32; i < group * 32 + 32; ++i) values[i] = scale * static_cast<float>(quants[i]) - min;
  }
}

// Q4_K: f16 d and dmin, 12 bytes of scales and mins, 128 bytes of nibbles.
void unpack_q4_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) quants[i] = static_cast<std::uint8_t>(half_byte(block + 16, i));
}

void repack_q4_k(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales) {
  pack_bits<0, 4>(q, 256, quants);
  repack_group_scales(block, scales);
}

// Q5_K: as Q4_K, with 32 bytes of high bits before the nibbles.
void unpack_q5_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) quants[i] = static_cast<std::uint8_t>(half_byte(block + 48, i) | single_bit(block + 16, i) << 4);
}

/// A block's quants are the low bits of its 8 groups, then a word of high bits for each. Its scales are q4_K's.
void repack_q5_k(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales) {
  pack_bits<0, 4>(q, 256, quants);
  pack_bits<4, 1>(q, 256, quants + 32);
  repack_group_scales(block, scales);
}

// Q6_K: 128 bytes of low halves, 64 bytes of high pairs of bits, 16 signed scales, f16 d. Of each 128 elements, 32 at a time:
// the low halves of 64 bytes, then their high ones; the pairs are bits 0-1, 2-3, 4-5, 6-7 of 32 bytes.
void unpack_q6_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) {
    const auto low = static_cast<std::uint32_t>(block[i / 128 * 64 + i % 64]);
    quants[i] = static_cast<std::uint8_t>((low >> (i % 128 / 64 * 4) & 15u) | bit_pair(block + 128, i) << 4);
  }
}

/// A block's quants are the low bits of its 8 groups, then two words of high pairs for each. Its scales are five words: d, and
/// 16 signed bytes.
void repack_q6_k(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales) {
  pack_bits<0, 4>(q, 256, quants);
  pack_bits<4, 2>(q, 256, quants + 32);
  scales[0] = read_u16(block + 208);
  std::memcpy(scales + 1, block + 192, 16);
}

void dequantize_q6_k(const std::byte* block, const std::uint8_t* q, float* values) {
  const float d = half_to_float(read_u16(block + 208));
  for (std::uint32_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + part]));
    float* to = values + part * 16;
    for (std::uint32_t i = 0; i < 16; ++i) to[i] = scale * (static_cast<float>(q[part * 16 + i]) - 32.0f);
  }
}

/// What a type does with one block: its quants, a byte each; planes from block and quants; values from block and quants.
struct SuperBlock {
  std::uint32_t bytes, quant_words, scale_words;
  void (*unpack)(const std::byte* block, std::uint8_t* quants);
  void (*repack)(const std::byte* block, const std::uint8_t* q, std::uint32_t* quants, std::uint32_t* scales);
  void (*dequantize)(const std::byte* block, const std::uint8_t* q, float* values);
};

constexpr SuperBlock kQ2K = {84, 16, 5, unpack_q2_k, repack_q2_k, dequantize_q2_k};
constexpr SuperBlock kQ3K = {110, 24, 5, unpack_q3_k, repack_q3_k, dequantize_q3_k};
constexpr SuperBlock kQ4K = {144, 32, 4, unpack_q4_k, repack_q4_k, scale_groups};
constexpr SuperBlock kQ5K = {176, 40, 4, unpack_q5_k, repack_q5_k, scale_groups};
constexpr SuperBlock kQ6K = {210, 48, 5, unpack_q6_k, repack_q6_k, dequantize_q6_k};

template <const SuperBlock& kBlock>
void repack_row(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  std::uint8_t q[256];
  for (std::size_t i = 0; i < k / 256; ++i) {
    const std::byte* block = row.data() + i * kBlock.bytes;
    kBlock.unpack(block, q);
    kBlock.repack(block, q, quants + i * kBlock.quant_words, scales + i * kBlock.scale_words);
  }
}

template <const SuperBlock& kBlock>
void dequantize_row(std::span<const std::byte> row, std::uint32_t k, float* values) {
  std::uint8_t q[256];
  for (std::size_t i = 0; i < k / 256; ++i) {
    const std::byte* block = row.data() + i * kBlock.bytes;
    kBlock.unpack(block, q);
    kBlock.dequantize(block, q, values + i * 256);
  }
}

template <const SuperBlock& kBlock>
constexpr BlockFormat format_of(Type type) {
  return {type, 256, kBlock.bytes, kBlock.quant_words / 8, 8, kBlock.scale_words, repack_row<kBlock>, dequantize_row<kBlock>};
}

}  // namespace

extern const BlockFormat q2_k_format = format_of<kQ2K>(Type::kQ2_K);
extern const BlockFormat q3_k_format = format_of<kQ3K>(Type::kQ3_K);
extern const BlockFormat q4_k_format = format_of<kQ4K>(Type::kQ4_K);
extern const BlockFormat q5_k_format = format_of<kQ5K>(Type::kQ5_K);
extern const BlockFormat q6_k_format = format_of<kQ6K>(Type::kQ6_K);

}  // namespace rondo::graph
