#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/fmt.h"
#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::attention_test {
namespace {

using graph::AttentionAttributes;
using graph::Op;
using graph::TensorId;
using graph::Type;

/// Against the double reference over the same cache, rounded to f16 or q8_0, or not.
constexpr Tolerance kBound{1e-10};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  std::int64_t sequences = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, width = 1;
  std::int64_t value_width = 0;  ///< 0: width
};

std::string to_text(const Sizes& s) {
  return fmt::format("B {} H {} G {} Q {} S {} D {} E {}", s.sequences, s.heads, s.kv_heads, s.queries, s.keys, s.width, s.value_width ? s.value_width : s.width);
}

/// The inputs of one attention; empty vectors are optional inputs that are absent.
struct Inputs {
  Sizes sizes;
  bool causal = true;
  double scale = 0;
  std::vector<std::int32_t> offset, lengths;
  std::vector<float> query, key, value;

  explicit Inputs(const Sizes& s, float magnitude = 1.0f) : sizes(s) {
    const auto n = [&](std::int64_t heads, std::int64_t rows, std::int64_t width) { return static_cast<std::size_t>(s.sequences * heads * rows * width); };
    query = random_values(n(s.heads, s.queries, s.width), 1, magnitude);
    key = random_values(n(s.kv_heads, s.keys, s.width), 2, magnitude);
    value = random_values(n(s.kv_heads, s.keys, s.value_width ? s.value_width : s.width), 3, magnitude);
  }

  OpCase build(Type type, graph::StorageKind kind = graph::StorageKind::kCache) const {
    const Sizes& s = sizes;
    OpCase c(s.sequences);
    const TensorId q = c.f32("query", {s.sequences, s.heads, s.queries, s.width}, query);
    const TensorId k = c.cache("key", type, {s.sequences, s.kv_heads, s.keys, s.width}, key, kind);
    const TensorId v = c.cache("value", type, {s.sequences, s.kv_heads, s.keys, s.value_width ? s.value_width : s.width}, value, kind);
    const auto optional = [&](const char* name, const std::vector<std::int32_t>& values) { return values.empty() ? graph::kNone : c.i32(name, {s.sequences}, values); };
    const TensorId first = optional("offset", offset);
    c.output(c.graph.add(Op::attention, {q, k, v, first, optional("lengths", lengths)}, AttentionAttributes{scale, causal}), 2);
    return c;
  }
};

class AttentionTest : public ::testing::TestWithParam<std::tuple<Type, const char*>> {
 protected:
  Type type() const { return std::get<0>(GetParam()); }
  RunOptions options(runtime::DeviceType device = runtime::DeviceType::kCpu) const {
    RunOptions options;
    options.kernels["attention"] = std::get<1>(GetParam());
    options.pretend = device;
    return options;
  }
  bool is_wide() const { return std::string_view(std::get<1>(GetParam())).starts_with("wide"); }
  bool is_matrix() const { return std::string_view(std::get<1>(GetParam())) == "matrix"; }
  bool needs_vectors() const { return is_wide() || is_matrix() || std::string_view(std::get<1>(GetParam())) == "subgroup"; }
  Tolerance bound() const { return is_matrix() ? Tolerance{graph::kRoundedFactors} : kBound; }
  void SetUp() override {
    if (is_matrix() && test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  }
  /// Some kernels refuse heads that are not whole vectors.
  ::testing::AssertionResult right(const Inputs& inputs) const { return right(inputs, bound()); }
  ::testing::AssertionResult right(const Inputs& inputs, Tolerance tolerance) const {
    if (needs_vectors() && (inputs.sizes.width | inputs.sizes.value_width) % 8 != 0) {
      const Result<DeviceRun> run = run_on_device(inputs.build(type()), options());
      if (!run.ok() && run.status().code() == StatusCode::kUnsupported) return ::testing::AssertionSuccess();
      return ::testing::AssertionFailure() << "not refused: " << to_text(inputs.sizes);
    }
    return agrees(inputs.build(type()), tolerance, options()) << to_text(inputs.sizes);
  }
};

/// Which keys are whose does not depend on their type.
class AttentionShapeTest : public AttentionTest {};

/// Those that no model has; check runs the others.
TEST_P(AttentionTest, HeadWidths) {
  for (std::int64_t width : {1, 3, 37, 72, 127, 320, 512}) {
    if (is_matrix() && width > 128 && !std::getenv("RONDO_TEST_THOROUGH")) continue;  // a CPU driver compiles minutes on these
    for (std::int64_t queries : {1, 5}) EXPECT_TRUE(right(Inputs({1, 2, 1, queries, 71, width})));
  }
}

TEST_P(AttentionTest, ValuesOfAnotherWidth) {
  EXPECT_TRUE(right(Inputs({1, 2, 2, 3, 41, 40, 24})));
  EXPECT_TRUE(right(Inputs({2, 2, 1, 2, 41, 16, 113})));
}

TEST_P(AttentionShapeTest, QueriesAndKeys) {
  for (std::int64_t keys : {1, 2, 37, 63, 64, 65, 127, 128, 129, 257, 521}) {
    for (std::int64_t queries : {std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, std::int64_t{17}, std::int64_t{37}, std::int64_t{70}}) {
      if (queries <= keys) {
        EXPECT_TRUE(right(Inputs({1, 2, 1, queries, keys, 8})));
      }
    }
  }
}

TEST_P(AttentionShapeTest, GroupsOfHeads) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, std::pair{6, 6}, std::pair{6, 2}, std::pair{6, 3}, std::pair{7, 1}, std::pair{16, 1}}) {
    for (std::int64_t queries : {1, 3, 13}) EXPECT_TRUE(right(Inputs({2, heads, kv_heads, queries, 41, 16})));
  }
}

TEST_P(AttentionShapeTest, NotCausal) {
  for (std::int64_t queries : {1, 7, 41}) {
    Inputs inputs({2, 4, 2, queries, 89, 16});
    inputs.causal = false;
    EXPECT_TRUE(right(inputs));
    inputs.lengths = {89, 13};
    EXPECT_TRUE(right(inputs));
  }
}

TEST_P(AttentionShapeTest, OffsetsAndLengths) {
  for (std::int32_t length : {0, 1, 2, 63, 64, 65, 100, 113}) {
    Inputs inputs({2, 2, 1, 5, 113, 16});
    inputs.lengths = {length, 113 - length};
    inputs.offset = {std::max(length - 5, 0), std::max(113 - length - 5, 0)};
    EXPECT_TRUE(right(inputs)) << "length " << length;
    inputs.offset = {-3, 200};  // queries before the first key see none; those behind the last see all
    EXPECT_TRUE(right(inputs)) << "length " << length << ", offsets outside";
  }
}

TEST_P(AttentionShapeTest, LengthsOutsideTheCacheAreClamped) {
  Inputs inputs({2, 2, 1, 3, 41, 8});
  inputs.causal = false;
  inputs.lengths = {-5, 1000};
  EXPECT_TRUE(right(inputs));
}

/// Keys that a query may not see hold NaN and huge values; whatever a query sees is finite.
TEST_P(AttentionTest, MaskedKeysDoNotLeak) {
  for (float poison : {kNan, 1e30f, -1e30f, std::numeric_limits<float>::infinity()}) {
    for (std::int64_t keys : {37, 64, 200}) {
      Inputs inputs({1, 4, 2, 5, keys, 16});
      const auto used = static_cast<std::int32_t>(keys) - 7;
      inputs.lengths = {used};
      inputs.offset = {used - 5};
      for (std::size_t g = 0; g < 2; ++g) {
        for (std::size_t i = (g * static_cast<std::size_t>(keys) + static_cast<std::size_t>(used)) * 16; i < (g + 1) * static_cast<std::size_t>(keys) * 16; ++i) inputs.key[i] = inputs.value[i] = poison;
      }
      EXPECT_TRUE(right(inputs)) << poison << ", " << keys;
      inputs.causal = false;
      EXPECT_TRUE(right(inputs)) << poison << ", " << keys << ", not causal";
    }
  }
}

/// Under the causal mask the last key is visible to the last query only: NaN there leaves the others alone.
TEST_P(AttentionTest, CausallyMaskedValuesDoNotLeak) {
  Inputs inputs({1, 2, 1, 9, 70, 8});
  for (std::size_t d = 0; d < 8; ++d) inputs.key[69 * 8 + d] = inputs.value[69 * 8 + d] = kNan;
  const OpCase c = inputs.build(type());
  EXPECT_TRUE(agrees(c, bound(), options()));
  const auto reference = c.run_reference();
  ASSERT_TRUE(reference.ok());
  std::vector<float> output(9 * 2 * 8);
  std::memcpy(output.data(), reference->back().data(), output.size() * 4);
  for (std::size_t i = 0; i < output.size(); ++i) EXPECT_EQ(std::isnan(output[i]), i >= 8 * 2 * 8) << i;
}

/// Scores in the hundreds: one key takes all, whatever block it is in, and e^score alone would overflow. What is rounded moves them by tenths.
TEST_P(AttentionShapeTest, LargeScores) {
  for (std::int64_t keys : {41, 200}) {
    Inputs inputs({1, 2, 1, 3, keys, 64}, 30.0f);
    EXPECT_TRUE(right(inputs, is_matrix() ? Tolerance{100 * graph::kRoundedFactors} : bound()));
  }
}

/// Equal keys average their values, which are whole numbers over a power of two of keys: exact.
TEST_P(AttentionTest, EqualKeysAverageExactly) {
  for (std::int64_t keys : {1, 64, 256}) {
    Inputs inputs({1, 2, 2, 3, keys, 8});
    inputs.causal = false;
    std::fill(inputs.key.begin(), inputs.key.end(), 0.0f);
    inputs.value = integer_values(inputs.value.size(), 4, 100);
    for (std::size_t i = 0; i < inputs.value.size(); i += 8) inputs.value[i] = 127;  // makes a scale of 1 of q8_0
    EXPECT_TRUE(agrees(inputs.build(type()), kExact, options())) << keys;
  }
}

TEST_P(AttentionShapeTest, AScaleOfItsOwn) {
  Inputs inputs({1, 2, 1, 3, 41, 16});
  inputs.scale = 1;
  EXPECT_TRUE(right(inputs));
}

TEST_P(AttentionShapeTest, RowsBeyondTheCountStayUntouched) {
  for (std::int32_t valid : {0, 1, 2, 6, 7, 8}) {
    for (std::int64_t heads : {1, 3}) {
      Inputs inputs({2, heads, 1, 7, 89, 8});
      inputs.offset = {10, 64};
      inputs.lengths = {10 + valid, 66};
      OpCase c = inputs.build(type());
      c.set_count(0, valid);
      c.set_count(1, 2, valid != 6);
      EXPECT_TRUE(agrees(c, bound(), options())) << valid << " rows, " << heads << " heads";
    }
  }
}

/// Some drivers end loops silently after so many iterations: whatever is not refused for it must be right to the last key.
TEST_P(AttentionShapeTest, TheLongestContextThatIsAccepted) {
  for (const auto& [heads, width] : {std::pair{1, 16}, std::pair{8, 64}, std::pair{4, 256}}) {
    const auto inputs = [heads = heads, width = width](std::int64_t blocks) { return Inputs({1, heads, 1, 1, 64 * blocks, width}); };
    const std::int64_t most = is_wide() && heads == 1 ? 2048 : 128;
    std::int64_t accepted = 1, beyond = most + 1;
    while (beyond - accepted > 1) {
      const std::int64_t blocks = (accepted + beyond) / 2;
      OpCase c = inputs(blocks).build(type());
      graph::LoweringOptions lowering;
      lowering.forced_kernels = options().kernels;
      (graph::lower(c.graph, test_runtime_device().caps(), lowering).ok() ? accepted : beyond) = blocks;
    }
    EXPECT_GE(accepted, is_wide() ? most : 8) << "this many blocks are few enough for every driver";
    EXPECT_TRUE(right(inputs(accepted))) << accepted << " blocks of keys";
  }
}

/// The partition into splits follows the device; no split count may show beyond rounding.
TEST_P(AttentionShapeTest, SplitsOfOtherDevices) {
  for (std::int64_t keys : {1, 64, 129, 1031, 2049}) {
    const Inputs inputs({1, 4, 2, 1, keys, 16});
    EXPECT_TRUE(agrees(inputs.build(type()), bound(), options(runtime::DeviceType::kDiscrete))) << keys;
  }
}

std::string param_name(const ::testing::TestParamInfo<std::tuple<Type, const char*>>& tested) {
  return fmt::format("{}_{}", graph::type_name(std::get<0>(tested.param)), std::get<1>(tested.param));
}

constexpr const char* kKernels[] = {"tiled", "split", "wide", "wide_split", "subgroup", "matrix"};
INSTANTIATE_TEST_SUITE_P(TypesAndKernels, AttentionTest,
                         ::testing::Combine(::testing::Values(Type::kF32, Type::kF16, Type::kQ8_0), ::testing::ValuesIn(kKernels)), param_name);
INSTANTIATE_TEST_SUITE_P(Kernels, AttentionShapeTest, ::testing::Combine(::testing::Values(Type::kF16), ::testing::ValuesIn(kKernels)), param_name);

/// Rounding to q8_0 costs what it may and no more, whatever the kernel; the same of what no cache holds.
TEST_P(AttentionTest, RoundedKeysAndValues) {
  if (type() != Type::kQ8_0) return;
  for (const std::int64_t width : {40, 64, 72, 128}) {
    for (const std::int64_t queries : {1, 9}) {
      const Inputs inputs({1, 4, 2, queries, 200, width});
      const OpCase rounded = inputs.build(Type::kQ8_0, graph::StorageKind::kInput);
      EXPECT_TRUE(agrees(rounded, bound(), options()));
      const Result<DeviceRun> run = run_on_device(rounded, options());
      ASSERT_TRUE(run.ok()) << run.status().message();
      const auto exact = inputs.build(Type::kF32).run_reference();
      ASSERT_TRUE(exact.ok());
      const auto floats = [](const std::vector<std::byte>& bytes) {
        std::vector<float> values(bytes.size() / 4);
        std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
      };
      const double error = graph::normalised_error(floats(run->after.back()), floats(exact->back()));
      EXPECT_LE(error, 2e-4) << width;
      EXPECT_GE(error, 1e-6) << width << ": that was not rounded";
    }
  }
}

/// Query, key and value inside one tensor, as a merged linear leaves them, read without a cache.
TEST(AttentionOfActivationsTest, ViewsOfOneTensor) {
  OpCase c(2);
  const TensorId rows = c.f32("rows", {2, 11, 8 * 24 + 5}, random_values(2 * 11 * 197, 5));
  const auto heads = [&](std::int64_t first, std::int64_t n) {
    return c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, 3 + first * 24, 3 + (first + n) * 24), {2, 11, n, 24}), {0, 2, 1, 3});
  };
  c.output(c.graph.add(Op::attention, {heads(0, 4), heads(4, 2), heads(6, 2)}, AttentionAttributes{0, true}), 2);
  for (const char* kernel : {"tiled", "split"}) {  // its offsets are not whole vectors
    RunOptions options;
    options.kernels["attention"] = kernel;
    EXPECT_TRUE(agrees(c, kBound, options)) << kernel;
  }
}

/// Rows of an odd width in f16 lie in whole words, of which the last half may be anything.
TEST(AttentionKeysTest, WhatLiesBehindOddRowsIsNotRead) {
  for (const float behind : {kNan, std::numeric_limits<float>::infinity()}) {
    OpCase c;
    const auto rows = [&](const char* name, std::uint32_t seed) {
      std::vector<float> values = random_values(1 * 2 * 9 * 8, seed);
      for (std::size_t i = 7; i < values.size(); i += 8) values[i] = behind;
      return c.graph.slice(c.activation(name, Type::kF16, {1, 2, 9, 8}, values), 3, 0, 7);
    };
    c.output(c.graph.add(Op::attention, {c.f32("query", {1, 2, 3, 7}, random_values(42, 3)), rows("key", 1), rows("value", 2)}), 2);
    EXPECT_EQ(c.graph.nodes().size(), 1u) << "read where they are";
    for (const char* kernel : {"tiled", "split"}) {
      RunOptions options;
      options.kernels["attention"] = kernel;
      EXPECT_TRUE(agrees(c, kBound, options)) << kernel;
    }
  }
}

/// Few queries split the keys, and a device with more to fill splits more.
TEST(AttentionChoiceTest, KernelsFollowRowsAndDevice) {
  const auto n_splits = [](std::int64_t queries, runtime::DeviceType device) {
    RunOptions options;
    options.pretend = device;
    const Result<DeviceRun> run = run_on_device(Inputs({1, 2, 1, queries, 700, 8}).build(Type::kF16), options);
    EXPECT_TRUE(run.ok());
    return run.ok() ? run->program.dispatches.front().grid[2] : 0;
  };
  EXPECT_GE(n_splits(1, runtime::DeviceType::kCpu), 2u);
  EXPECT_GT(n_splits(1, runtime::DeviceType::kDiscrete), n_splits(1, runtime::DeviceType::kCpu));
  EXPECT_EQ(n_splits(17, runtime::DeviceType::kCpu), 1u);
  EXPECT_GT(n_splits(17, runtime::DeviceType::kDiscrete), 1u);
}

}  // namespace
}  // namespace rondo::tests::attention_test
