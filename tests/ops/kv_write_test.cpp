#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "graph/float16.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::kv_write_test {
namespace {

using graph::Op;
using graph::TensorId;
using graph::Type;

struct Cache {
  std::int64_t sequences, heads, rows, width;
};

OpCase write_case(Type type, const Cache& s, std::int64_t n_rows, const std::vector<std::int32_t>& start, const std::vector<std::int32_t>& count) {
  OpCase c(s.sequences);
  const TensorId cache = c.cache("cache", type, {s.sequences, s.heads, s.rows, s.width}, random_values(static_cast<std::size_t>(s.sequences * s.heads * s.rows * s.width), 1));
  const TensorId update = c.f32("update", {s.sequences, s.heads, n_rows, s.width}, random_values(static_cast<std::size_t>(s.sequences * s.heads * n_rows * s.width), 2, 100));
  const TensorId starts = c.i32("start", {s.sequences}, start);
  c.graph.add(Op::kv_write, {cache, update, starts, count.empty() ? graph::kNone : c.i32("count", {s.sequences}, count)});
  return c;
}

class KvWriteTest : public ::testing::TestWithParam<Type> {};

TEST_P(KvWriteTest, ReplacesRows) {
  for (const Cache& s : {Cache{1, 1, 1, 1}, Cache{1, 2, 7, 3}, Cache{1, 3, 11, 37}, Cache{1, 2, 41, 64}, Cache{1, 2, 7, 72}, Cache{1, 2, 3, 96}, Cache{1, 1, 5, 257}}) {
    const auto last = static_cast<std::int32_t>(s.rows) - 1;
    for (std::int32_t start : {0, last / 2, last}) {
      EXPECT_TRUE(agrees(write_case(GetParam(), s, 1, {start}, {}), kExact)) << s.width << ", start " << start;
      EXPECT_TRUE(agrees(write_case(GetParam(), s, std::min<std::int64_t>(s.rows, 5), {start}, {}), kExact)) << s.width << ", start " << start;
    }
  }
}

TEST_P(KvWriteTest, RowsOutsideTheCacheAreDropped) {
  for (std::int32_t start : {-9, -3, 6, 10, 11, 0x7fffffff}) EXPECT_TRUE(agrees(write_case(GetParam(), {1, 2, 11, 40}, 7, {start}, {}), kExact)) << start;
}

TEST_P(KvWriteTest, CountOfItsOwn) {
  for (std::int32_t count : {-1, 0, 1, 4, 5, 6}) EXPECT_TRUE(agrees(write_case(GetParam(), {2, 2, 11, 40}, 5, {2, 9}, {count, 3}), kExact)) << count;
}

TEST_P(KvWriteTest, RowsBeyondTheStepsCountAreNotWritten) {
  for (std::int32_t valid : {0, 1, 4}) {
    OpCase c = write_case(GetParam(), {1, 2, 11, 37}, 5, {3}, {valid});
    c.set_count(0, valid);  // as step_begin's count would say; the state alone must be enough
    EXPECT_TRUE(agrees(c, kExact)) << valid;
  }
  OpCase inactive = write_case(GetParam(), {2, 1, 11, 8}, 5, {3, 4}, {5, 0});
  inactive.set_count(1, 5, false);
  EXPECT_TRUE(agrees(inactive, kExact));
}

TEST_P(KvWriteTest, HeadsInRows) {
  OpCase c;
  const TensorId cache = c.cache("cache", GetParam(), {1, 3, 13, 40}, random_values(3 * 13 * 40, 3));
  const TensorId rows = c.f32("rows", {1, 5, 200}, random_values(5 * 200, 4));
  const TensorId update = c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, 77, 197), {1, 5, 3, 40}), {0, 2, 1, 3});
  c.graph.add(Op::kv_write, {cache, update, c.i32("start", {1}, std::vector<std::int32_t>{6}), graph::kNone});
  EXPECT_TRUE(agrees(c, kExact));
}

INSTANTIATE_TEST_SUITE_P(Types, KvWriteTest, ::testing::Values(Type::kF32, Type::kF16, Type::kQ8_0),
                         [](const ::testing::TestParamInfo<Type>& tested) { return std::string(graph::type_name(tested.param)); });

/// Around every half: the half itself, its neighbours' midpoints (ties), and a float to both sides of each.
TEST(KvWriteRoundingTest, NearestEvenForEveryHalf) {
  std::vector<float> values;
  for (std::uint32_t half = 0; half < 0x7c00u; half += 7) {
    const float low = graph::half_to_float(static_cast<std::uint16_t>(half)), high = graph::half_to_float(static_cast<std::uint16_t>(half + 1));
    const float middle = half == 0x7bffu ? 65520.0f : (low + high) / 2;
    for (float value : {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (float value : {65519.996f, 65520.0f, 65536.0f, 3e38f, 0x1p-25f, 0x1.000002p-25f, 0x1p-24f, 0x1.8p-24f, 0x1p-126f, 1e-45f, 0.0f, -0.0f}) values.push_back(value);
  for (float value : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) values.push_back(value);
  const std::int64_t width = 256, rows = (static_cast<std::int64_t>(values.size()) + width - 1) / width;
  values.resize(static_cast<std::size_t>(rows * width), 1.0f);
  OpCase c;
  const TensorId cache = c.cache("cache", Type::kF16, {1, 1, rows, width}, std::vector<float>(values.size(), 12345.0f));
  c.graph.add(Op::kv_write, {cache, c.f32("update", {1, 1, rows, width}, values), c.i32("start", {1}, std::vector<std::int32_t>{0}), graph::kNone});
  ASSERT_TRUE(agrees(c, kExact));
  const Result<DeviceRun> run = run_on_device(c, {});
  ASSERT_TRUE(run.ok());
  const std::vector<std::byte>& found = run->after[static_cast<std::size_t>(c.graph.tensor(cache).storage)];
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, found.data() + 2 * i, 2);
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(graph::half_to_float(half)));
    } else {
      EXPECT_EQ(half, graph::float_to_half(values[i])) << values[i];
    }
  }
}

/// Rows of every magnitude: scales at and around every rounding boundary, subnormal, 0 and too large; ties of quants.
std::vector<float> awkward_rows(std::int64_t width) {
  std::vector<float> values;
  std::mt19937 bits(7);
  const auto row = [&](auto element) {
    for (std::int64_t d = 0; d < width; ++d) values.push_back(element(d));
  };
  const auto random = [&](float magnitude) { return (static_cast<float>(bits() >> 8) * 0x1p-23f - 1.0f) * magnitude; };
  for (int exponent = -149; exponent <= 127; exponent += exponent > -30 && exponent < 25 ? 1 : 9) row([&](std::int64_t) { return random(std::ldexp(1.0f, exponent)); });
  for (std::uint32_t half = 1; half < 0x7c00u; half += 97) {
    const float low = graph::half_to_float(static_cast<std::uint16_t>(half)), high = graph::half_to_float(static_cast<std::uint16_t>(half + 1));
    const double middle = half == 0x7bffu ? 65520.0 : (static_cast<double>(low) + static_cast<double>(high)) / 2;
    for (const float largest : {low * 127, static_cast<float>(middle * 127), std::nextafter(static_cast<float>(middle * 127), 0.0f), std::nextafter(static_cast<float>(middle * 127), 1e9f)}) {
      // Halves of a scale, and floats beside them.
      row([&](std::int64_t d) {
        const float tie = (static_cast<float>(bits() % 128) + 0.5f) * low, sign = d % 2 ? -1.0f : 1.0f;
        return d % 32 == 5 ? -largest : sign * (d % 3 == 0 ? tie : std::nextafter(tie, d % 3 == 1 ? 0.0f : 1e9f));
      });
    }
  }
  for (const float all : {0.0f, -0.0f, 1e-45f, -0x1p-126f, 0x1p-20f, 3e38f, 127 * 65504.0f, 127 * 65520.0f}) row([&](std::int64_t) { return all; });
  return values;
}

OpCase awkward_case(std::int64_t width, const std::vector<float>& values) {
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / width;
  OpCase c;
  const TensorId cache = c.cache("cache", Type::kQ8_0, {1, 1, rows, width}, std::vector<float>(values.size(), 12345.0f));
  c.graph.add(Op::kv_write, {cache, c.f32("update", {1, 1, rows, width}, values), c.i32("start", {1}, std::vector<std::int32_t>{0}), graph::kNone});
  return c;
}

TEST(KvWriteRoundingTest, QuantsAndScalesOfAwkwardRows) {
  for (const std::int64_t width : {32, 64, 40, 72, 7}) EXPECT_TRUE(agrees(awkward_case(width, awkward_rows(width)), kExact)) << width;
}

/// A row with NaN, infinity or what no scale reaches is not finite in the cache; groups and rows beside it are as without.
TEST(KvWriteRoundingTest, WhatIsNotFiniteStaysSoInItsGroup) {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 3e38f}) {
    std::vector<float> values = random_values(3 * 80, 5);
    values[80 + 33] = poison;
    const OpCase c = awkward_case(80, values);
    EXPECT_TRUE(agrees(c, kExact)) << poison;
    const Result<DeviceRun> run = run_on_device(c, {});
    ASSERT_TRUE(run.ok());
    const std::vector<std::byte> found = graph::decoded_cache(run->after[static_cast<std::size_t>(c.graph.tensor(c.graph.nodes()[0].inputs[0]).storage)], 3, 80);
    for (std::size_t i = 0; i < 3 * 96; ++i) {
      float value = 0;
      std::memcpy(&value, found.data() + 4 * i, 4);
      EXPECT_EQ(std::isnan(value), i >= 96 + 32 && i < 96 + 64) << poison << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace rondo::tests::kv_write_test
