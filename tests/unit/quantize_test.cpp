// Quantisers: what they write means what was given, to the last half of a step, and numbers at the edges are none to fear.
#include "graph/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "graph/block_format.h"

namespace rondo::graph::quantize_test {
namespace {

std::vector<float> through(Type type, const std::vector<float>& values) {
  const BlockFormat& format = *find_block_format(type);
  std::vector<std::byte> blocks(static_cast<std::size_t>(file_row_bytes(format, values.size())));
  find_quantizer(type)(values, blocks.data());
  std::vector<float> back(values.size());
  format.dequantize_row(blocks, static_cast<std::uint32_t>(values.size()), back.data());
  return back;
}

std::vector<float> random_values(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

const Type kAll[] = {Type::kF32, Type::kF16, Type::kBF16, Type::kQ8_0, Type::kQ5_1, Type::kQ5_0, Type::kQ4_1, Type::kQ4_0, Type::kMXFP4};

/// The largest error of a block, in parts of its largest magnitude.
double bound_of(Type type) {
  switch (type) {
    case Type::kF32: return 0;
    case Type::kF16: return std::ldexp(1, -11);
    case Type::kBF16: return std::ldexp(1, -8);
    case Type::kQ8_0: return 0.5 / 127 + 0.001;
    case Type::kQ5_1: return 1.0 / 31 + 0.002;  // the range is at most twice the magnitude
    case Type::kQ5_0: return 1.0 / 16 + 0.002;  // the other side ends a step early
    case Type::kQ4_1: return 1.0 / 15 + 0.002;
    case Type::kQ4_0: return 1.0 / 8 + 0.002;
    default: return 0.25 + 1e-6;  // 8 times the scale becomes 6 times it
  }
}

TEST(QuantizeTest, KeepsValuesWithinAStep) {
  for (const Type type : kAll) {
    for (const float scale : {1.0f, 0.05f, 300.0f}) {
      std::vector<float> values = random_values(32 * 37, 5);
      for (float& value : values) value *= scale;
      const std::vector<float> back = through(type, values);
      for (std::size_t block = 0; block < values.size(); block += 32) {
        double largest = 0, error = 0;
        for (std::size_t i = block; i < block + 32; ++i) {
          largest = std::max(largest, std::abs(static_cast<double>(values[i])));
          error = std::max(error, std::abs(static_cast<double>(values[i]) - static_cast<double>(back[i])));
        }
        ASSERT_LE(error, bound_of(type) * largest) << type_name(type) << " " << scale;
      }
    }
  }
}

/// What a type can say, it says: quantising again changes nothing.
TEST(QuantizeTest, WholeStepsStay) {
  std::vector<float> steps(64);
  for (std::size_t i = 0; i < 64; ++i) steps[i] = static_cast<float>(i % 32) - 16;
  EXPECT_EQ(through(Type::kQ5_0, steps), steps);
  EXPECT_EQ(through(Type::kQ5_1, steps), steps);
  for (std::size_t i = 0; i < 64; ++i) steps[i] = static_cast<float>(i % 16) - 8;
  EXPECT_EQ(through(Type::kQ4_0, steps), steps);
  EXPECT_EQ(through(Type::kQ4_1, steps), steps);
  for (std::size_t i = 0; i < 64; ++i) steps[i] = static_cast<float>(i % 32) * 4 - 127;
  steps[3] = 127;
  EXPECT_EQ(through(Type::kQ8_0, steps), steps);
  const float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::size_t i = 0; i < 64; ++i) steps[i] = (i % 16 < 8 ? 0.25f : -0.25f) * magnitudes[i % 8];
  EXPECT_EQ(through(Type::kMXFP4, steps), steps);
}

/// FNV-1a of what quantize_row_<type>_ref of ggml's published library makes of these numbers.
TEST(QuantizeTest, BytesAreThoseOfTheReference) {
  std::vector<float> values(32 * 256);
  std::uint32_t state = 7;
  for (std::size_t i = 0; i < values.size(); ++i) {
    state = state * 1664525 + 1013904223;
    values[i] = std::ldexp(static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)), static_cast<int>(i / 32 % 24) - 36);
  }
  const std::pair<Type, std::uint32_t> expected[] = {{Type::kQ8_0, 0x3cb808a5}, {Type::kQ4_0, 0x79c9ebe2}, {Type::kQ4_1, 0x4d8e3828}, {Type::kQ5_0, 0x4ba40648}, {Type::kQ5_1, 0xab497a0f}, {Type::kMXFP4, 0xa6c12f60}};
  for (const auto& [type, checksum] : expected) {
    std::vector<std::byte> blocks(static_cast<std::size_t>(file_row_bytes(*find_block_format(type), values.size())));
    find_quantizer(type)(values, blocks.data());
    std::uint32_t found = 0x811c9dc5;
    for (const std::byte byte : blocks) found = (found ^ static_cast<std::uint32_t>(byte)) * 0x01000193;
    EXPECT_EQ(found, checksum) << type_name(type);
  }
}

TEST(QuantizeTest, HalvesGoAwayFromZeroInBytesAndToTheSmallerInMxfp4) {
  std::vector<float> values(32, 0);
  values[0] = 127, values[1] = 2.5f, values[2] = -2.5f, values[3] = 0.49999997f, values[4] = -126.5f;
  const std::vector<float> bytes = through(Type::kQ8_0, values);
  EXPECT_EQ(std::vector<float>(bytes.begin(), bytes.begin() + 5), (std::vector<float>{127, 3, -3, 0, -127}));
  values = std::vector<float>(32, 0);
  values[0] = 4, values[1] = 0.25f, values[2] = -2.5f, values[3] = 5, values[4] = 7.9f;
  const std::vector<float> floats = through(Type::kMXFP4, values);
  EXPECT_EQ(std::vector<float>(floats.begin(), floats.begin() + 5), (std::vector<float>{4, 0, -2, 4, 6}));
}

TEST(QuantizeTest, ZerosTinyAndHugeNumbersAndNone) {
  const float infinity = std::numeric_limits<float>::infinity(), tiny = std::numeric_limits<float>::denorm_min();
  for (const Type type : kAll) {
    EXPECT_EQ(through(type, std::vector<float>(32, 0)), std::vector<float>(32, 0)) << type_name(type);
    std::vector<float> values(64, 1);
    values[7] = tiny, values[9] = -tiny;
    for (std::size_t i = 32; i < 64; ++i) values[i] = i % 2 ? tiny : -tiny;
    const std::vector<float> small = through(type, values);
    for (std::size_t i = 32; i < 64; ++i) EXPECT_LE(std::abs(small[i]), 1e-30f) << type_name(type);
    for (const float none : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      values[40] = none;
      const std::vector<float> back = through(type, values);
      EXPECT_FALSE(std::isfinite(back[40])) << type_name(type);
      EXPECT_TRUE(std::isfinite(back[20])) << type_name(type) << ": the block before is whole";
    }
    values[40] = std::numeric_limits<float>::max();
    (void)through(type, values);
  }
}

TEST(QuantizeTest, TypesByName) {
  EXPECT_EQ(find_quantized_type("q8_0"), Type::kQ8_0);
  EXPECT_EQ(find_quantized_type("MXFP4"), Type::kMXFP4);
  for (const char* name : {"q4_K", "iq4_nl", "i32", "", "q8", "q8_00", "nonsense"}) EXPECT_FALSE(find_quantized_type(name)) << name;
  EXPECT_EQ(find_quantizer(Type::kQ6_K), nullptr);
  EXPECT_EQ(quantized_type_names(), "f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, mxfp4");
}

}  // namespace
}  // namespace rondo::graph::quantize_test
