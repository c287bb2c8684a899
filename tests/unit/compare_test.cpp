// The judge of every operator test: each kind of wrong result must be rejected.
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "graph/compare.h"
#include "graph/float16.h"

namespace rondo::tests::compare_test {
namespace {

using namespace graph;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
constexpr Tolerance kExact{0}, kBound{1e-11};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// The judgement of f32 elements that were poison before.
std::string judge(const std::vector<float>& found, const std::vector<float>& expected, Tolerance tolerance) {
  return find_difference({Type::kF32, poison_bytes(4 * expected.size()), bytes_of(found), bytes_of(expected)}, tolerance);
}

TEST(CompareTest, EqualResultsPass) {
  const std::vector<float> values = {1, -2, 0.5f, kNan, kInfinity, 0};
  EXPECT_EQ(judge(values, values, kExact), "");
  EXPECT_EQ(judge(values, values, kBound), "");
}

TEST(CompareTest, AWrongElementIsRejected) {
  EXPECT_NE(judge({1, 2.0000005f}, {1, 2}, kExact), "");
  EXPECT_EQ(judge({1, 2.000001f}, {1, 2}, {1e-12}), "");
  EXPECT_NE(judge({1, 2.00001f}, {1, 2}, {1e-12}), "");
}

/// One wrong element of a thousand is far beyond any bound in use.
TEST(CompareTest, OneWrongElementOfManyIsRejected) {
  std::vector<float> expected(1000, 1.0f), found = expected;
  found[371] = 0;
  EXPECT_NE(judge(found, expected, {1e-6}), "");
}

TEST(CompareTest, NanAndInfinityMustBeWhereTheyBelong) {
  EXPECT_NE(judge({1, kNan}, {1, 2}, kBound), "");
  EXPECT_NE(judge({1, 2}, {1, kNan}, kBound), "");
  EXPECT_NE(judge({1, kInfinity}, {1, 3e38f}, kBound), "");
  EXPECT_NE(judge({1, -kInfinity}, {1, kInfinity}, kBound), "");
}

/// One half of the poison is a NaN: left alone where a NaN is expected, it was still not written.
TEST(CompareTest, UntouchedHalvesAreRejected) {
  const std::uint16_t nan = graph::float_to_half(kNan), one = graph::float_to_half(1);
  const std::vector<std::byte> before = poison_bytes(8);
  const std::vector<std::uint16_t> expected = {one, nan, nan, one};
  EXPECT_EQ(find_difference({Type::kF16, before, bytes_of(expected), bytes_of(expected)}, kBound), "");
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<std::byte> found = bytes_of(expected);
    std::memcpy(found.data() + 2 * i, before.data() + 2 * i, 2);
    EXPECT_NE(find_difference({Type::kF16, before, found, bytes_of(expected)}, kBound), "") << i;
  }
}

TEST(CompareTest, UntouchedOutputsAreRejected) {
  std::vector<std::byte> found = bytes_of(std::vector<float>{1, 2, 3});
  std::memcpy(found.data() + 4, &kPoison, 4);
  const std::vector<std::byte> expected = bytes_of(std::vector<float>{1, 2, 3});
  EXPECT_NE(find_difference({Type::kF32, poison_bytes(12), found, expected}, kBound), "");
  EXPECT_NE(find_difference({Type::kI32, poison_bytes(12), found, expected}, kExact), "");
}

/// The poison is a NaN: where a NaN is expected, the untouched element passes for it. No test may rest on that alone.
TEST(CompareTest, WritesToWhatMustStayAreRejected) {
  std::vector<std::byte> expected = bytes_of(std::vector<float>{1, 2, 3});
  std::memcpy(expected.data() + 8, &kPoison, 4);
  EXPECT_EQ(find_difference({Type::kF32, poison_bytes(12), expected, expected}, kBound), "");
  for (float written : {3.0f, 0.0f, kNan}) {
    std::vector<std::byte> found = expected;
    std::memcpy(found.data() + 8, &written, 4);
    EXPECT_NE(find_difference({Type::kF32, poison_bytes(12), found, expected}, kBound), "") << written;
  }
}

/// In a cache, rows that the step doesn't write keep their bits, however small the error would be.
TEST(CompareTest, NearlyUnchangedIsNotUnchanged) {
  const std::vector<std::byte> before = bytes_of(std::vector<float>{1, 2, 3}), expected = bytes_of(std::vector<float>{1, 7, 3});
  EXPECT_EQ(find_difference({Type::kF32, before, expected, expected}, kBound), "");
  EXPECT_NE(find_difference({Type::kF32, before, bytes_of(std::vector<float>{1.0000001f, 7, 3}), expected}, kBound), "");
}

TEST(CompareTest, HalvesAndIntegers) {
  const auto halves = [](const std::vector<float>& values) {
    std::vector<std::uint16_t> bits;
    for (float value : values) bits.push_back(graph::float_to_half(value));
    return bytes_of(bits);
  };
  const std::vector<std::byte> before = halves({9, 9}), expected = halves({1, 2});
  EXPECT_EQ(find_difference({Type::kF16, before, expected, expected}, kExact), "");
  EXPECT_NE(find_difference({Type::kF16, before, halves({1, 2.002f}), expected}, kExact), "");
  EXPECT_NE(find_difference({Type::kI32, poison_bytes(8), bytes_of(std::vector<std::int32_t>{1, 2}), bytes_of(std::vector<std::int32_t>{1, 3})}, {1.0}), "");
}

TEST(CompareTest, AllZerosExpectedMeansAllZeros) {
  EXPECT_EQ(judge({0, -0.0f}, {0, 0}, kBound), "");
  EXPECT_NE(judge({0, 1e-30f}, {0, 0}, kBound), "");
}

TEST(CompareTest, SizesMustAgree) { EXPECT_NE(find_difference({Type::kF32, poison_bytes(8), poison_bytes(8), poison_bytes(4)}, kBound), ""); }

TEST(CompareTest, AWriteOutsideIsFound) {
  std::vector<std::byte> guard = poison_bytes(256);
  EXPECT_EQ(find_touched(guard), "");
  guard[131] = std::byte{0};
  EXPECT_NE(find_touched(guard), "");
}

}  // namespace
}  // namespace rondo::tests::compare_test
