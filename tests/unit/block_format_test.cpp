#include <bit>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "graph/block_format.h"
#include "graph/float16.h"
#include "tests/support/microscaling.h"
#include "tools/check/op_case.h"

namespace rondo::graph::block_format_test {
namespace {

using check::weight_rows;
using check::weight_values;
using check::WeightValues;

/// Field e of `width` bits in a plane in the order of lib/block_bits.glsl.
std::uint32_t field(const std::uint32_t* words, std::size_t e, std::uint32_t width) {
  const std::size_t each = 32 / width, in_word = e % each;
  return words[e / each] >> (8 * (in_word % 4) + width * (in_word / 4)) & ((1u << width) - 1);
}

float half_of(std::uint32_t word, std::size_t which) { return half_to_float(static_cast<std::uint16_t>(word >> (16 * which))); }

/// Element e of a block of 256, whose words lie one after the other.
float super_block_value(Type type, const std::uint32_t* quants, const std::uint32_t* scales, std::size_t e) {
  const float d = half_of(scales[0], 0), dmin = half_of(scales[0], 1);
  const std::size_t group = e / 32, part = e / 16;
  const std::uint32_t byte = scales[1 + part / 4] >> (8 * (part % 4)) & 255u;  // of the types with five words
  const auto signed_scale = static_cast<float>(static_cast<std::int8_t>(byte));
  const auto six_bits = [&](std::size_t which) { return static_cast<float>((scales[1 + which] >> (4 * group) & 15u) | (scales[3] >> (16 * which + 2 * group) & 3u) << 4); };
  switch (type) {
    case Type::kQ2_K: return d * static_cast<float>(byte & 15u) * static_cast<float>(field(quants, e, 2)) - dmin * static_cast<float>(byte >> 4);
    case Type::kQ3_K: return d * signed_scale * (static_cast<float>(field(quants, e, 2) | field(quants + 16, e, 1) << 2) - 4.0f);
    case Type::kQ4_K: return d * six_bits(0) * static_cast<float>(field(quants, e, 4)) - dmin * six_bits(1);
    case Type::kQ5_K: return d * six_bits(0) * static_cast<float>(field(quants, e, 4) | field(quants + 32, e, 1) << 4) - dmin * six_bits(1);
    default: return d * signed_scale * (static_cast<float>(field(quants, e, 4) | field(quants + 32, e, 2) << 4) - 32.0f);
  }
}

/// Element k of a row of blocks of 32.
float block_value(Type type, const std::uint32_t* quants, const std::uint32_t* scales, std::size_t k) {
  constexpr float kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const std::size_t group = k / 32;
  const std::uint32_t q = field(quants, k, 4);
  const auto with_high = [&](std::uint32_t high) { return static_cast<float>(q | field(&high, k % 32, 1) << 4); };
  switch (type) {
    case Type::kQ8_0: return static_cast<float>(static_cast<std::int8_t>(quants[k / 4] >> (8 * (k % 4)))) * half_of(scales[group / 2], group % 2);
    case Type::kQ4_0: return (static_cast<float>(q) - 8.0f) * half_of(scales[group / 2], group % 2);
    case Type::kQ4_1: return static_cast<float>(q) * half_of(scales[group], 0) + half_of(scales[group], 1);
    case Type::kQ5_0: return (with_high(scales[group / 2 * 3 + 1 + group % 2]) - 16.0f) * half_of(scales[group / 2 * 3], group % 2);
    case Type::kQ5_1: return with_high(scales[group * 2 + 1]) * half_of(scales[group * 2], 0) + half_of(scales[group * 2], 1);
    case Type::kIQ4_NL: return kTable[q] * half_of(scales[group / 2], group % 2);
    default: return tests::e2m1_value(q) * tests::e8m0_value(scales[group / 4] >> (8 * (group % 4)) & 255u);
  }
}

/// Element k of row n, as lib/block_<type>.glsl reads the planes of any type.
float plane_value(Type type, const PlaneLayout& layout, const std::vector<std::uint32_t>& words, std::size_t n, std::size_t k) {
  const BlockFormat& format = *find_block_format(type);
  const std::uint32_t* row = words.data() + n * layout.row_words;
  const std::uint32_t* scales = words.data() + layout.scale_offset_words + n * layout.scale_row_words;
  if (format.block_elements == 256) {
    const std::size_t block = k / 256;
    return super_block_value(type, row + block * 8 * format.group_words, scales + block * format.scale_words, k % 256);
  }
  if (format.block_elements == 32) return block_value(type, row, scales, k);
  switch (type) {
    case Type::kF32: return std::bit_cast<float>(row[k]);
    case Type::kF16: return half_of(row[k / 2], k % 2);
    default: return std::bit_cast<float>(row[k / 2] >> (16 * (k % 2)) << 16);
  }
}

class BlockFormatTest : public ::testing::TestWithParam<Type> {
 protected:
  const BlockFormat& format() const { return *find_block_format(GetParam()); }
  std::vector<std::int64_t> columns() const {
    if (format().block_elements == 256) return {256, 512, 1280};
    if (format().block_elements > 1) return {32, 64, 96, 1120};
    return {1, 2, 3, 31, 32, 33, 37, 64, 113, 257};
  }
  std::uint32_t scale_row_words(std::int64_t k) const {
    const auto groups = static_cast<std::uint32_t>((k + 31) / 32);
    switch (GetParam()) {
      case Type::kF32:
      case Type::kF16:
      case Type::kBF16: return 0;
      case Type::kQ4_1: return groups;
      case Type::kQ5_0: return (groups + 1) / 2 * 3;
      case Type::kQ5_1: return groups * 2;
      case Type::kMXFP4: return (groups + 3) / 4;
      case Type::kQ4_K:
      case Type::kQ5_K: return groups / 8 * 4;
      case Type::kQ2_K:
      case Type::kQ3_K:
      case Type::kQ6_K: return groups / 8 * 5;
      default: return (groups + 1) / 2;
    }
  }
  std::vector<std::uint32_t> repack(const std::vector<std::byte>& rows, std::int64_t n, std::int64_t k) const {
    const PlaneLayout layout = plane_layout(format(), n, k);
    std::vector<std::uint32_t> words(layout.size_bytes / 4, 0xffffffffu);
    const std::size_t row_bytes = file_row_bytes(format(), static_cast<std::uint64_t>(k));
    for (std::size_t row = 0; row < static_cast<std::size_t>(n); ++row) {
      format().repack_row(std::span(rows).subspan(row * row_bytes, row_bytes), static_cast<std::uint32_t>(k), words.data() + row * layout.row_words,
                          words.data() + layout.scale_offset_words + row * layout.scale_row_words);
    }
    return words;
  }
};

TEST_P(BlockFormatTest, PlanesHoldTheDequantisedValues) {
  for (std::int64_t k : columns()) {
    const std::int64_t n = 5;
    const std::vector<std::byte> rows = weight_rows(GetParam(), n, k, 1, WeightValues::kRandom);
    const std::vector<float> values = weight_values(GetParam(), n, k, rows);
    const std::vector<std::uint32_t> words = repack(rows, n, k);
    const PlaneLayout layout = plane_layout(format(), n, k);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(plane_value(GetParam(), layout, words, i / static_cast<std::size_t>(k), i % static_cast<std::size_t>(k)), values[i]) << "K " << k << ", element " << i;
      sum += std::abs(static_cast<double>(values[i]));
    }
    EXPECT_GT(sum, 0) << "the values must tell something";
  }
}

/// Types without blocks only: columns() of the others are whole groups, which leaves nothing to look at.
TEST_P(BlockFormatTest, ColumnsBeyondKAreZero) {
  for (std::int64_t k : columns()) {
    const std::vector<std::uint32_t> words = repack(weight_rows(GetParam(), 3, k, 2, WeightValues::kRandom), 3, k);
    const PlaneLayout layout = plane_layout(format(), 3, k);
    for (std::size_t n = 0; n < 3; ++n) {
      for (std::size_t i = static_cast<std::size_t>(k); i < std::size_t{32} * layout.groups; ++i) EXPECT_EQ(plane_value(GetParam(), layout, words, n, i), 0.0f) << "K " << k << ", column " << i;
    }
  }
}

TEST_P(BlockFormatTest, LayoutFitsTheKernels) {
  for (std::int64_t n : {1, 7, 257}) {
    for (std::int64_t k : columns()) {
      const PlaneLayout layout = plane_layout(format(), n, k);
      EXPECT_EQ(layout.groups, (k + 31) / 32);
      EXPECT_EQ(layout.row_words % 4, 0u) << "rows are read 16 bytes at a time";
      EXPECT_EQ(layout.row_words, layout.groups * format().group_words);
      EXPECT_EQ(layout.scale_row_words, scale_row_words(k));
      EXPECT_EQ(layout.scale_offset_words % 4, 0u) << "q4_K's and q5_K's scales are read 16 bytes at a time";
      EXPECT_EQ(layout.scale_offset_words, static_cast<std::uint64_t>(n) * layout.row_words);
      EXPECT_EQ(layout.size_bytes % 256, 0u);
      EXPECT_GE(layout.size_bytes, 4 * (layout.scale_offset_words + static_cast<std::uint64_t>(n) * layout.scale_row_words));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BlockFormatTest, ::testing::ValuesIn(check::kWeightTypes),
                         [](const ::testing::TestParamInfo<Type>& tested) { return std::string(type_name(tested.param)); });

/// Blocks written down by hand, against the formats' definitions.
TEST(BlockFormatValuesTest, Q8_0AndQ4_0) {
  std::vector<std::byte> q8(34), q4(18);
  const std::uint16_t half = float_to_half(0.5f);
  std::memcpy(q8.data(), &half, 2);
  std::memcpy(q4.data(), &half, 2);
  q8[2] = std::byte{0x80};   // -128
  q8[33] = std::byte{0x7f};  // 127
  q4[2] = std::byte{0xf0};   // element 0: 0 - 8, element 16: 15 - 8
  std::vector<float> values(32);
  find_block_format(Type::kQ8_0)->dequantize_row(q8, 32, values.data());
  EXPECT_EQ(values[0], -64.0f);
  EXPECT_EQ(values[1], 0.0f);
  EXPECT_EQ(values[31], 63.5f);
  find_block_format(Type::kQ4_0)->dequantize_row(q4, 32, values.data());
  EXPECT_EQ(values[0], -4.0f);
  EXPECT_EQ(values[16], 3.5f);
  EXPECT_EQ(values[1], -4.0f);
}

/// d = 0.5, dmin = 0.25; scales and mins that use all six bits in the first four groups and in the last.
TEST(BlockFormatValuesTest, Q4_K) {
  std::vector<std::byte> row(2 * 144);
  std::byte* block = row.data() + 144;  // the second of a row
  const std::uint16_t d = float_to_half(0.5f), dmin = float_to_half(0.25f);
  std::memcpy(block, &d, 2);
  std::memcpy(block + 2, &dmin, 2);
  block[4] = std::byte{0x80 | 33};        // scale of group 0; bits 4 and 5 of the scale of group 4: 2
  block[8] = std::byte{0x40 | 7};         // min of group 0; bits 4 and 5 of the min of group 4: 1
  block[12] = std::byte{0x5a};            // low bits of scale (10) and min (5) of group 4
  block[7] = std::byte{0xc0};             // group 7: scale 48 + 0
  block[11] = std::byte{0xc0};            // min 48 + 15
  block[15] = std::byte{0xf0};
  block[16] = std::byte{0xf3};            // element 0: 3, element 32: 15
  block[16 + 64 + 31] = std::byte{0x09};  // element 159: 9
  block[16 + 96 + 31] = std::byte{0x20};  // element 255: 2
  std::vector<float> values(512, -1.0f);
  find_block_format(Type::kQ4_K)->dequantize_row(row, 512, values.data());
  EXPECT_EQ(values[255], 0.0f);
  EXPECT_EQ(values[256], 0.5f * 33 * 3 - 0.25f * 7);
  EXPECT_EQ(values[257], -0.25f * 7);
  EXPECT_EQ(values[256 + 32], 0.0f) << "group 1 has scale and min 0";
  EXPECT_EQ(values[256 + 159], 0.5f * 42 * 9 - 0.25f * 21);
  EXPECT_EQ(values[256 + 158], -0.25f * 21);
  EXPECT_EQ(values[256 + 255], 0.5f * 48 * 2 - 0.25f * 63);
}

/// d = 0.5; one element of each quarter of each half, and the extremes of quants and scales.
TEST(BlockFormatValuesTest, Q6_K) {
  std::vector<std::byte> row(2 * 210);
  std::byte* block = row.data() + 210;
  const std::uint16_t d = float_to_half(0.5f);
  std::memcpy(block + 208, &d, 2);
  for (int part = 0; part < 16; ++part) block[192 + part] = static_cast<std::byte>(part + 1);
  block[192 + 15] = std::byte{0x80};      // -128
  block[0] = std::byte{0x21};             // low bits of elements 0 (1) and 64 (2)
  block[32] = std::byte{0x43};            // of elements 32 (3) and 96 (4)
  block[128] = std::byte{0b00'01'10'11};  // high bits of elements 0 (3), 32 (2), 64 (1) and 96 (0)
  block[64 + 63] = std::byte{0xff};       // of elements 191 and 255
  block[128 + 63] = std::byte{0xc0};      // of element 255: 3
  std::vector<float> values(512, -1.0f);
  find_block_format(Type::kQ6_K)->dequantize_row(row, 512, values.data());
  EXPECT_EQ(values[255], 0.0f);
  EXPECT_EQ(values[256], 0.5f * 1 * (48 + 1 - 32));
  EXPECT_EQ(values[256 + 32], 0.5f * 3 * (32 + 3 - 32));
  EXPECT_EQ(values[256 + 64], 0.5f * 5 * (16 + 2 - 32));
  EXPECT_EQ(values[256 + 96], 0.5f * 7 * (4 - 32));
  EXPECT_EQ(values[256 + 16], 0.5f * 2 * -32) << "the second scale of a group";
  EXPECT_EQ(values[256 + 191], 0.5f * 12 * (15 - 32));
  EXPECT_EQ(values[256 + 255], 0.5f * -128 * (63 - 32));
  EXPECT_EQ(values[256 + 254], 0.5f * -128 * -32) << "the largest magnitude";
}

/// Writes an f16 number.
void put_half(std::byte* to, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(to, &half, 2);
}

std::vector<float> values_of(Type type, const std::vector<std::byte>& row, std::uint32_t k) {
  std::vector<float> values(k, -1.0f);
  find_block_format(type)->dequantize_row(row, k, values.data());
  return values;
}

TEST(BlockFormatValuesTest, BF16) {
  const std::vector<std::byte> row = {std::byte{0x80}, std::byte{0x3f}, std::byte{0x49}, std::byte{0xc0}, std::byte{0x01}, std::byte{0x00}};
  EXPECT_EQ(values_of(Type::kBF16, row, 3), (std::vector<float>{1.0f, -3.140625f, std::bit_cast<float>(0x00010000u)}));
}

/// Scale 0.5, minimum -3: the nibbles of q4_0, the fifth bits in the order of the elements.
TEST(BlockFormatValuesTest, BlocksWithMinimumsAndFifthBits) {
  std::vector<std::byte> q4_1(2 * 20), q5_0(2 * 22), q5_1(2 * 24);  // the second block of a row
  put_half(&q4_1[20], 0.5f), put_half(&q4_1[22], -3.0f), put_half(&q5_0[22], 0.5f), put_half(&q5_1[24], 0.5f), put_half(&q5_1[26], -3.0f);
  q4_1[24 + 2] = q5_0[28 + 2] = q5_1[32 + 2] = std::byte{0xf1};  // element 2: 1, element 18: 15
  q5_0[24] = q5_1[28] = std::byte{0x84};                         // element 2, element 7
  q5_0[27] = q5_1[31] = std::byte{0x80};                         // element 31
  std::vector<float> values = values_of(Type::kQ4_1, q4_1, 64);
  EXPECT_EQ(values[0], 0.0f);
  EXPECT_EQ(values[32], -3.0f);
  EXPECT_EQ(values[32 + 2], 0.5f - 3);
  EXPECT_EQ(values[32 + 18], 0.5f * 15 - 3);
  values = values_of(Type::kQ5_0, q5_0, 64);
  EXPECT_EQ(values[32], -8.0f);
  EXPECT_EQ(values[32 + 2], 0.5f * (17 - 16));
  EXPECT_EQ(values[32 + 7], 0.0f);
  EXPECT_EQ(values[32 + 18], 0.5f * (15 - 16));
  EXPECT_EQ(values[32 + 31], 0.0f);
  values = values_of(Type::kQ5_1, q5_1, 64);
  EXPECT_EQ(values[32], -3.0f);
  EXPECT_EQ(values[32 + 2], 0.5f * 17 - 3);
  EXPECT_EQ(values[32 + 7], 0.5f * 16 - 3);
  EXPECT_EQ(values[32 + 18], 0.5f * 15 - 3);
  EXPECT_EQ(values[32 + 31], 0.5f * 16 - 3);
}

TEST(BlockFormatValuesTest, Q2_K) {
  std::vector<std::byte> row(2 * 84);
  std::byte* block = row.data() + 84;
  put_half(block + 80, 0.5f), put_half(block + 82, 0.25f);
  for (int part = 0; part < 16; ++part) block[part] = static_cast<std::byte>(part | (15 - part) << 4);
  block[16] = std::byte{0b00'01'10'11};       // elements 0 (3), 32 (2), 64 (1), 96 (0)
  block[16 + 32 + 31] = std::byte{0b11'00'00'01};  // elements 159 (1), 255 (3)
  const std::vector<float> values = values_of(Type::kQ2_K, row, 512);
  EXPECT_EQ(values[255], 0.0f);
  EXPECT_EQ(values[256], -0.25f * 15) << "a scale of 0";
  EXPECT_EQ(values[256 + 32], 0.5f * 2 * 2 - 0.25f * 13);
  EXPECT_EQ(values[256 + 48], -0.25f * 12) << "the second scale of a group";
  EXPECT_EQ(values[256 + 64], 0.5f * 4 - 0.25f * 11);
  EXPECT_EQ(values[256 + 96], -0.25f * 9);
  EXPECT_EQ(values[256 + 159], 0.5f * 9 - 0.25f * 6);
  EXPECT_EQ(values[256 + 255], 0.5f * 15 * 3);
}

TEST(BlockFormatValuesTest, Q3_K) {
  std::vector<std::byte> row(2 * 110);
  std::byte* block = row.data() + 110;
  put_half(block + 108, 0.5f);
  block[96] = std::byte{0xf1};          // low bits of scales 0 (1) and 8 (15)
  block[103] = std::byte{0x20};         // of scales 7 (0) and 15 (2)
  block[104] = std::byte{0b00'11'00'10};  // high bits of scales 0 (2), 4 (0), 8 (3), 12 (0)
  block[107] = std::byte{0b01'00'11'00};  // of scales 3 (0), 7 (3), 11 (0), 15 (1)
  block[0] = std::byte{0b0001'0001};      // high bits of elements 0 and 128
  block[31] = std::byte{0b1000'0000};     // of element 255
  block[32] = std::byte{0b00'00'00'10};   // element 0
  block[32 + 32] = std::byte{0b00'00'00'01};       // element 128
  block[32 + 32 + 31] = std::byte{0b11'00'00'00};  // element 255
  const std::vector<float> values = values_of(Type::kQ3_K, row, 512);
  EXPECT_EQ(values[255], 0.0f);
  EXPECT_EQ(values[256], 0.5f * (33 - 32) * (6 - 4));
  EXPECT_EQ(values[256 + 1], 0.5f * (33 - 32) * -4);
  EXPECT_EQ(values[256 + 16], 0.5f * -32 * -4) << "the second scale of a group";
  EXPECT_EQ(values[256 + 112], 0.5f * (48 - 32) * -4);
  EXPECT_EQ(values[256 + 128], 0.5f * (63 - 32) * (5 - 4));
  EXPECT_EQ(values[256 + 255], 0.5f * (18 - 32) * (7 - 4));
}

TEST(BlockFormatValuesTest, Q5_K) {
  std::vector<std::byte> row(2 * 176);
  std::byte* block = row.data() + 176;
  put_half(block, 0.5f), put_half(block + 2, 0.25f);
  block[4] = std::byte{33};                 // scale of group 0
  block[8] = std::byte{7};                  // its minimum
  block[7] = block[11] = std::byte{0xc0};   // group 7: scale 48 + 1, minimum 48 + 15
  block[15] = std::byte{0xf1};
  block[16] = std::byte{0b0000'0001};       // high bit of element 0
  block[16 + 31] = std::byte{0b1000'0000};  // of element 255
  block[48] = std::byte{0xf3};              // element 0: 3, element 32: 15
  block[48 + 96 + 31] = std::byte{0x20};    // element 255: 2
  const std::vector<float> values = values_of(Type::kQ5_K, row, 512);
  EXPECT_EQ(values[255], 0.0f);
  EXPECT_EQ(values[256], 0.5f * 33 * 19 - 0.25f * 7);
  EXPECT_EQ(values[256 + 1], -0.25f * 7);
  EXPECT_EQ(values[256 + 32], 0.0f) << "group 1 has scale and min 0";
  EXPECT_EQ(values[256 + 255], 0.5f * 49 * 18 - 0.25f * 63);
  EXPECT_EQ(values[256 + 254], -0.25f * 63);
}

TEST(BlockFormatValuesTest, IQ4_NL) {
  constexpr float kTable[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  std::vector<std::byte> row(18);
  put_half(row.data(), 0.5f);
  for (std::size_t i = 0; i < 16; ++i) row[2 + i] = static_cast<std::byte>(i | (15 - i) << 4);
  const std::vector<float> values = values_of(Type::kIQ4_NL, row, 32);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 0.5f * kTable[i]);
    EXPECT_EQ(values[16 + i], 0.5f * kTable[15 - i]);
  }
}

/// All scales and all numbers, against the definition of the formats.
TEST(BlockFormatValuesTest, MXFP4) {
  std::vector<std::byte> row(17);
  for (std::size_t i = 0; i < 16; ++i) row[1 + i] = static_cast<std::byte>(i | (15 - i) << 4);
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    row[0] = static_cast<std::byte>(exponent);
    const std::vector<float> values = values_of(Type::kMXFP4, row, 32);
    for (std::uint32_t i = 0; i < 16; ++i) {
      if (exponent == 255) {
        EXPECT_TRUE(std::isnan(values[i]) && std::isnan(values[16 + i])) << i;
        continue;
      }
      EXPECT_EQ(values[i], tests::e2m1_value(i) * tests::e8m0_value(exponent)) << "scale " << exponent << ", number " << i;
      EXPECT_EQ(values[16 + i], tests::e2m1_value(15 - i) * tests::e8m0_value(exponent)) << "scale " << exponent << ", number " << 15 - i;
    }
  }
}

TEST(BlockFormatValuesTest, FileRowBytes) {
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kF32), 37), 148u);
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kF16), 37), 74u);
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kQ8_0), 64), 68u);
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kQ4_0), 64), 36u);
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kQ4_K), 512), 288u);
  EXPECT_EQ(file_row_bytes(*find_block_format(Type::kQ6_K), 512), 420u);
  EXPECT_EQ(find_block_format(Type::kI32), nullptr);
}

TEST(BlockFormatValuesTest, ASliceOfAWeightKnowsItsFirstRow) {
  check::OpCase c;
  const TensorId weight = c.weight("weight", Type::kQ8_0, 11, 96, weight_rows(Type::kQ8_0, 11, 96, 1, WeightValues::kRandom));
  const std::vector<WeightPlanes> planes = planes_of(c.graph, c.graph.tensor(c.graph.slice(weight, 0, 4, 9)));
  ASSERT_EQ(planes.size(), 1u);
  EXPECT_EQ(planes[0].first_row, 4u);
  EXPECT_EQ(planes[0].n_rows, 5u);
  EXPECT_EQ(planes[0].layout.scale_offset_words, 11u * 24u) << "the layout is the whole block's";
}

TEST(PiecesTest, RowsAreSplitEvenlyWithinTheLimit) {
  for (const Type type : check::kWeightTypes) {
    const BlockFormat& format = *find_block_format(type);
    for (const std::int64_t n : {1, 7, 64, 1000}) {
      const std::uint64_t whole = plane_layout(format, n, 512).size_bytes;
      for (const std::uint64_t limit : {whole, whole - 1, whole / 3 + 256, std::uint64_t{4096}}) {
        const std::vector<StoragePiece> pieces = split_rows(format, n, 512, limit);
        std::int64_t next = 0, least = n, most = 0;
        for (const StoragePiece& piece : pieces) {
          EXPECT_EQ(piece.first, next);
          EXPECT_LE(plane_layout(format, piece.count, 512).size_bytes, limit) << type_name(type) << ", " << n << " rows, limit " << limit;
          least = std::min(least, piece.count), most = std::max(most, piece.count);
          next += piece.count;
        }
        if (pieces.empty()) {
          EXPECT_GT(plane_layout(format, 1, 512).size_bytes, limit);
          continue;
        }
        EXPECT_EQ(next, n);
        EXPECT_LE(most - least, 1);
        EXPECT_EQ(pieces.size() == 1, limit >= whole);
      }
    }
  }
  EXPECT_TRUE(split_rows(*find_block_format(Type::kF32), 10, 512, 2047).empty());
}

TEST(PiecesTest, ATensorFindsItsRowsInThem) {
  check::OpCase c;
  const TensorId weight = c.weight("weight", Type::kQ8_0, 11, 96, weight_rows(Type::kQ8_0, 11, 96, 1, WeightValues::kRandom));
  c.graph.storage(c.graph.tensor(weight).storage).pieces = {{0, 4, {}}, {4, 4, {}}, {8, 3, {}}};
  const std::vector<WeightPlanes> planes = planes_of(c.graph, c.graph.tensor(c.graph.slice(weight, 0, 2, 8)));
  ASSERT_EQ(planes.size(), 2u);  // rows 2 and 3, rows 4 to 7
  EXPECT_EQ(planes[0].piece, 0u);
  EXPECT_EQ(planes[0].first_row, 2u);
  EXPECT_EQ(planes[0].n_rows, 2u);
  EXPECT_EQ(planes[0].tensor_row, 0u);
  EXPECT_EQ(planes[1].piece, 1u);
  EXPECT_EQ(planes[1].first_row, 0u);
  EXPECT_EQ(planes[1].n_rows, 4u);
  EXPECT_EQ(planes[1].tensor_row, 2u);
  EXPECT_EQ(planes[1].layout.scale_offset_words, 4u * 24u) << "the layout is the piece's";
}

}  // namespace
}  // namespace rondo::graph::block_format_test
