// Masks, windows, prefixes, chunks, soft caps, biases, relative tables and sinks: each alone, and many together.
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/ops/attention_inputs.h"
#include "tests/support/device_environment.h"
#include "tests/support/op_runner.h"

namespace rondo::tests::attention_features_test {
namespace {

using graph::AttentionAttributes;
using graph::Op;
using graph::TensorId;
using graph::Type;

constexpr Tolerance kBound{1e-10};
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

/// One attention with whatever is not empty.
struct Inputs {
  std::int64_t sequences = 2, heads = 4, kv_heads = 2, queries = 7, keys = 41, width = 16, value_width = 24;
  AttentionAttributes attributes;
  std::vector<std::int32_t> offset, lengths;
  graph::Shape mask_shape;  ///< with the values of one of the two:
  std::vector<std::int32_t> allowed;
  std::vector<float> added;
  bool slopes = false, sinks = false;
  std::int64_t buckets = 0, key_radius = -1, value_radius = -1;
  std::vector<float> value;
  std::array<float, 3> magnitudes = {1, 1, 1};  ///< of queries, keys and values
  std::string features;  ///< in words

  std::vector<float> random(std::int64_t n, std::uint32_t seed, float magnitude = 1.0f) const { return random_values(static_cast<std::size_t>(n), seed, magnitude); }

  /// Of attention, or of attention_weights, which takes no values.
  OpCase build(Type type, Op op = Op::attention) const {
    OpCase c(sequences);
    std::vector<TensorId> in(graph::kAttentionFileInputs, graph::kNone);
    in[graph::kQuery] = c.f32("query", {sequences, heads, queries, width}, random(sequences * heads * queries * width, 1, magnitudes[0]));
    in[graph::kKey] = c.cache("key", type, {sequences, kv_heads, keys, width}, random(sequences * kv_heads * keys * width, 2, magnitudes[1]));
    const auto made = random(sequences * kv_heads * keys * value_width, 3, magnitudes[2]);
    in[graph::kValue] = c.cache("value", type, {sequences, kv_heads, keys, value_width}, value.empty() ? made : value);
    if (!offset.empty()) in[graph::kOffset] = c.i32("offset", {sequences}, offset);
    if (!lengths.empty()) in[graph::kLengths] = c.i32("lengths", {sequences}, lengths);
    if (!allowed.empty()) in[graph::kMask] = c.i32("mask", mask_shape, allowed);
    if (!added.empty()) in[graph::kMask] = c.f32("mask", mask_shape, added);
    if (slopes) in[graph::kSlopes] = c.f32("slopes", {heads}, random(heads, 4, 0.3f));
    if (buckets) in[graph::kBias] = c.f32("bias", {buckets, heads}, random(buckets * heads, 5));
    if (key_radius >= 0) in[graph::kRelativeKey] = c.f32("relative keys", {2 * key_radius + 1, width}, random((2 * key_radius + 1) * width, 6));
    if (value_radius >= 0) in[graph::kRelativeValue] = c.f32("relative values", {2 * value_radius + 1, value_width}, random((2 * value_radius + 1) * value_width, 7));
    if (sinks) in[graph::kSinks] = c.f32("sinks", {heads}, random(heads, 8, 2.0f));
    const TensorId output = c.graph.add(op, op == Op::attention ? in : graph::inputs_of_weights({op, in, {}, {}}), attributes);
    if (c.graph.status().ok()) c.output(output, 2);
    return c;
  }
};

RunOptions with_kernel(const char* kernel) {
  RunOptions options;
  options.kernels["attention"] = kernel;
  return options;
}

/// A mask of one of the shapes that broadcast, boolean or added, with some keys gone.
void add_mask(Inputs& inputs, std::mt19937& random) {
  const auto either = [&](std::int64_t extent) { return random() % 2 ? extent : 1; };
  inputs.mask_shape = {either(inputs.sequences), either(inputs.heads), either(inputs.queries), either(inputs.keys)};
  if (random() % 2) inputs.mask_shape = {inputs.mask_shape[2], inputs.mask_shape[3]};
  const bool boolean = random() % 2;
  for (std::int64_t i = 0; i < inputs.mask_shape.n_elements(); ++i) {
    const bool gone = random() % 4 == 0;
    if (boolean) inputs.allowed.push_back(gone ? 0 : 1);
    else inputs.added.push_back(gone ? -kInfinity : static_cast<float>(random() % 1000) / 500.0f - 1);
  }
  inputs.features += boolean ? " mask(bool)" : " mask(f32)";
}

/// Sizes and features that a seed chooses.
Inputs made_up(std::uint32_t seed) {
  std::mt19937 random(seed);
  Inputs inputs;
  const auto one_of = [&](std::initializer_list<std::int64_t> values) { return values.begin()[random() % values.size()]; };
  const auto chosen = [&](const char* name) {
    if (random() % 3 != 0) return false;
    inputs.features += std::string(" ") + name;
    return true;
  };
  inputs.sequences = one_of({1, 2, 3});
  inputs.kv_heads = one_of({1, 2, 3});
  inputs.heads = inputs.kv_heads * one_of({1, 2, 3});
  inputs.queries = one_of({1, 2, 7, 19, 37});
  inputs.keys = one_of({1, 7, 41, 64, 113, 257});
  inputs.width = one_of({2, 7, 16, 40});
  inputs.value_width = one_of({1, 8, 24, 37});
  AttentionAttributes& attributes = inputs.attributes;
  attributes.causal = chosen("causal");
  if (chosen("window_back")) attributes.window_back = one_of({0, 3, 70});
  if (chosen("window_ahead")) attributes.window_ahead = one_of({0, 2, 65});
  if (chosen("prefix")) attributes.prefix = one_of({1, 5, 300});
  if (chosen("chunk")) attributes.chunk = one_of({1, 8, 100}), attributes.chunks_back = one_of({0, 1, 3});
  if (chosen("softcap")) attributes.softcap = 2;
  if (chosen("slopes")) inputs.slopes = true;
  if (chosen("sinks")) inputs.sinks = true;
  if (chosen("bias")) {
    attributes.bidirectional_buckets = random() % 2;
    inputs.buckets = one_of({4, 16, 32});
    attributes.max_distance = one_of({20, 128});
  }
  if (chosen("relative_key")) inputs.key_radius = one_of({0, 3, 16});
  if (chosen("relative_value")) inputs.value_radius = one_of({0, 2, 16});
  for (std::int64_t b = 0; b < inputs.sequences; ++b) {
    inputs.offset.push_back(static_cast<std::int32_t>(random() % 60) - 5);
    inputs.lengths.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(inputs.keys + 2)));
  }
  if (!chosen("offset")) inputs.offset.clear();
  if (!chosen("lengths")) inputs.lengths.clear();
  if (random() % 3 == 0) add_mask(inputs, random);
  return inputs;
}

std::string described(const Inputs& inputs, std::uint32_t seed) {
  return "seed " + std::to_string(seed) + ":" + inputs.features + ", B " + std::to_string(inputs.sequences) + " H " + std::to_string(inputs.heads) + " G " + std::to_string(inputs.kv_heads) + " Q " +
         std::to_string(inputs.queries) + " S " + std::to_string(inputs.keys) + " D " + std::to_string(inputs.width) + " E " + std::to_string(inputs.value_width);
}

/// A kernel, how exact it is, and whether it has whole vectors of 8 elements, and no relative keys and values.
struct KernelUnderTest {
  const char* name;
  Tolerance bound = kBound;
  bool whole_vectors = false, no_relatives = false;
};

class AttentionFeaturesTest : public ::testing::TestWithParam<KernelUnderTest> {
 protected:
  void SetUp() override {
    if (GetParam().name == std::string_view("matrix") && test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  }

  ::testing::AssertionResult is_right(Inputs inputs, Type type) const {
    if (GetParam().whole_vectors) {
      inputs.width = (inputs.width + 7) / 8 * 8;
      if (inputs.value.empty()) inputs.value_width = (inputs.value_width + 7) / 8 * 8;
    }
    if (GetParam().no_relatives) inputs.key_radius = inputs.value_radius = -1;
    return agrees(inputs.build(type), GetParam().bound, with_kernel(GetParam().name));
  }
};

TEST_P(AttentionFeaturesTest, TogetherAgreeWithTheReference) {
  const std::uint32_t n_seeds = std::getenv("RONDO_TEST_THOROUGH") ? 90 : 9;  // nearly each is a pipeline of its own
  for (std::uint32_t seed = 0; seed < n_seeds; ++seed) {
    const Inputs inputs = made_up(seed);
    constexpr Type kTypes[] = {Type::kF32, Type::kF16, Type::kQ8_0};
    EXPECT_TRUE(is_right(inputs, kTypes[seed % 3])) << described(inputs, seed);
  }
}

/// Blocks of keys before the window are skipped, those inside are not.
TEST_P(AttentionFeaturesTest, WindowsBeginInLaterBlocks) {
  for (const auto& [queries, type] : {std::pair{1, Type::kF16}, std::pair{20, Type::kF16}, std::pair{1, Type::kQ8_0}, std::pair{20, Type::kQ8_0}}) {
    Inputs inputs;
    inputs.queries = queries, inputs.keys = 600;
    inputs.attributes.causal = true, inputs.attributes.window_back = 100;
    EXPECT_TRUE(is_right(inputs, type)) << queries;
    inputs.attributes.window_back = -1, inputs.attributes.chunk = 150;
    EXPECT_TRUE(is_right(inputs, type)) << queries;
  }
}

/// The same key is hidden in each of the ways there are; its value is poison.
TEST_P(AttentionFeaturesTest, AHiddenValueNeverLeaks) {
  for (const float poison : {1e30f, kInfinity, kNan}) {
    for (const std::string hidden_by : {"mask", "added", "lengths", "window", "chunk", "causal"}) {
      Inputs inputs;
      const std::size_t width = GetParam().whole_vectors ? 8 : 5;
      inputs.sequences = 1, inputs.heads = 2, inputs.kv_heads = 1, inputs.queries = 3, inputs.keys = 9, inputs.value_width = static_cast<std::int64_t>(width);
      inputs.value = inputs.random(9 * inputs.value_width, 9);
      const bool first = hidden_by == "window" || hidden_by == "chunk";  // else the last
      for (std::size_t e = 0; e < 5; ++e) inputs.value[first ? e : 8 * width + e] = poison;
      if (hidden_by == "mask") inputs.mask_shape = {9}, inputs.allowed = {1, 1, 1, 1, 1, 1, 1, 1, 0};
      if (hidden_by == "added") inputs.mask_shape = {1, 9}, inputs.added = {0, 0, 0, 0, 0, 0, 0, 0, -kInfinity};
      if (hidden_by == "lengths") inputs.lengths = {8};
      if (hidden_by == "window") inputs.attributes.window_back = 5;
      if (hidden_by == "chunk") inputs.attributes.chunk = 3, inputs.attributes.chunks_back = 1;
      if (hidden_by == "causal") inputs.attributes.causal = true, inputs.offset = {5};
      inputs.sinks = true;  // whatever else is there
      for (const Type type : {Type::kF32, Type::kF16}) {
        if (type == Type::kF16 && poison == 1e30f) continue;
        EXPECT_TRUE(is_right(inputs, type)) << hidden_by << ", " << poison;
      }
    }
  }
}

/// Rows whose keys are all hidden are zeros; rows whose masks add the lowest number everywhere weigh all keys alike.
TEST_P(AttentionFeaturesTest, RowsWithNothingToSee) {
  Inputs inputs;
  const std::size_t width = GetParam().whole_vectors ? 8 : 4;
  inputs.sequences = 1, inputs.heads = 1, inputs.kv_heads = 1, inputs.queries = 3, inputs.keys = 70, inputs.value_width = static_cast<std::int64_t>(width);
  inputs.mask_shape = {3, 70};
  for (const float lowest : {-kInfinity, std::numeric_limits<float>::lowest()}) {
    inputs.added.assign(3 * 70, 0.0f);
    for (std::size_t j = 0; j < 70; ++j) inputs.added[70 + j] = lowest;
    const OpCase c = inputs.build(Type::kF32);
    EXPECT_TRUE(is_right(inputs, Type::kF32));
    const auto reference = c.run_reference();
    ASSERT_TRUE(reference.ok());
    const graph::Tensor& output = c.graph.tensor(c.graph.nodes().back().outputs[0]);
    const std::vector<std::byte>& bytes = (*reference)[static_cast<std::size_t>(output.storage)];
    float second_row = 0;
    std::memcpy(&second_row, bytes.data() + width * sizeof(float), sizeof(float));
    const std::vector<float> values = inputs.random(70 * inputs.value_width, 3);
    double mean = 0;
    for (std::size_t j = 0; j < 70; ++j) mean += static_cast<double>(values[width * j]) / 70;
    EXPECT_NEAR(second_row, lowest == -kInfinity ? 0 : mean, 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, AttentionFeaturesTest, ::testing::Values(KernelUnderTest{"tiled"}, KernelUnderTest{"split"}, KernelUnderTest{"registers", kBound, true}, KernelUnderTest{"matrix", {graph::kRoundedFactors}, true, true}),
                         [](const ::testing::TestParamInfo<KernelUnderTest>& each) { return std::string(each.param.name); });

/// Queries, keys and values far beyond what f16 has, or far below: the result is as exact.
TEST(MatrixAttentionTest, F16NeedNotSuitTheNumbers) {
  if (test_runtime_device().caps().matrices.empty()) GTEST_SKIP() << "this device has no cooperative matrices";
  for (const auto& [queries, keys, values] : {std::array{1e7f, 1e-7f, 1.0f}, std::array{1e-7f, 1e7f, 1.0f}, std::array{1.0f, 1.0f, 1e7f}, std::array{1.0f, 1.0f, 1e-7f}, std::array{1.0f, 1.0f, 0.0f}, std::array{1e-7f, 1.0f, 1.0f}}) {
    for (const Type type : {Type::kF32, Type::kF16, Type::kQ8_0}) {
      if (type != Type::kF32 && (keys > 1 || values > 1)) continue;  // the cache has infinities then, or so do its scales
      Inputs inputs;
      inputs.queries = 37, inputs.keys = 150, inputs.width = 40;
      inputs.attributes.causal = true;
      inputs.magnitudes = {queries, keys, values};
      EXPECT_TRUE(agrees(inputs.build(type), {graph::kRoundedFactors}, with_kernel("matrix"))) << queries << " " << keys << " " << values << " " << graph::type_name(type);
    }
  }
}

TEST(AttentionFeaturesChoiceTest, TheWideKernelsTakeWindowsBackAndSoftCapsAlone) {
  Inputs inputs;
  inputs.width = inputs.value_width = 16;
  inputs.attributes.window_back = 3;
  inputs.attributes.softcap = 2;
  EXPECT_TRUE(agrees(inputs.build(Type::kF16), kBound, with_kernel("wide")));
  for (std::int64_t graph::AttentionAttributes::*other : {&graph::AttentionAttributes::window_ahead, &graph::AttentionAttributes::prefix, &graph::AttentionAttributes::chunk}) {
    Inputs more = inputs;
    more.attributes.*other = 2;
    const Result<DeviceRun> forced = run_on_device(more.build(Type::kF16), with_kernel("wide"));
    ASSERT_FALSE(forced.ok());
    EXPECT_EQ(forced.status().code(), StatusCode::kUnsupported);
    EXPECT_TRUE(agrees(more.build(Type::kF16), kBound, {}));
  }
}

TEST(AttentionWeightsTest, FeaturesTogetherAgreeWithTheReference) {
  const std::uint32_t n_seeds = std::getenv("RONDO_TEST_THOROUGH") ? 90 : 12;
  for (std::uint32_t seed = 0; seed < n_seeds; ++seed) {
    Inputs inputs = made_up(seed);
    inputs.value_radius = -1;
    constexpr Type kTypes[] = {Type::kF32, Type::kF16, Type::kQ8_0};
    EXPECT_TRUE(agrees(inputs.build(kTypes[seed % 3], Op::attention_weights), kBound)) << described(inputs, seed);
  }
}

/// Another variant of the operator is rejected.
TEST(AttentionWeightsTest, AWrongResultIsRejected) {
  Inputs inputs;
  inputs.attributes.causal = true, inputs.sinks = true;
  const OpCase right = inputs.build(Type::kF32, Op::attention_weights);
  EXPECT_TRUE(agrees_with(right, right, kBound));
  inputs.attributes.window_back = 20;
  EXPECT_FALSE(agrees_with(right, inputs.build(Type::kF32, Op::attention_weights), kBound));
  inputs.attributes.window_back = -1, inputs.attributes.scale = 0.26;
  EXPECT_FALSE(agrees_with(right, inputs.build(Type::kF32, Op::attention_weights), kBound));
}

/// A row of the identity as each key's value makes attention give its weights: the two operators mean the same.
TEST(AttentionWeightsTest, AreWhatAttentionMultipliesBy) {
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    Inputs inputs = made_up(seed);
    inputs.value_radius = -1, inputs.value_width = inputs.keys;
    if (inputs.keys > 256) continue;  // the widest value
    for (std::int64_t i = 0; i < inputs.sequences * inputs.kv_heads * inputs.keys * inputs.keys; ++i) inputs.value.push_back(i / inputs.keys % inputs.keys == i % inputs.keys ? 1.0f : 0.0f);
    const OpCase attention = inputs.build(Type::kF32), weights = inputs.build(Type::kF32, Op::attention_weights);
    const auto values_of = [](const OpCase& c, bool turned) {
      const graph::Tensor& output = c.graph.tensor(c.graph.nodes().back().outputs[0]);
      const std::vector<std::byte> bytes = c.run_reference().value()[static_cast<std::size_t>(output.storage)];
      std::vector<float> stored(bytes.size() / 4), values;
      std::memcpy(stored.data(), bytes.data(), bytes.size());
      const std::int64_t heads = output.shape[1], queries = output.shape[2], keys = output.shape[3];
      for (std::int64_t row = 0; row < output.shape[0] * heads * queries; ++row) {
        const std::int64_t b = row / (heads * queries), h = row / queries % heads, q = row % queries;
        const std::int64_t at = turned ? (b * queries + q) * heads + h : row;
        values.insert(values.end(), stored.begin() + static_cast<std::ptrdiff_t>(at * keys), stored.begin() + static_cast<std::ptrdiff_t>((at + 1) * keys));
      }
      return values;
    };
    EXPECT_EQ(values_of(attention, true), values_of(weights, false)) << described(inputs, seed);
  }
}

/// Boundaries of T5's encoder (32 buckets, both ways) and decoder, worked out by hand from the formula.
TEST(RelativeBucketTest, IsExactAndThenLogarithmic) {
  for (const auto& [distance, bucket] : {std::pair{0, 0}, std::pair{7, 7}, std::pair{8, 8}, std::pair{11, 8}, std::pair{12, 9}, std::pair{15, 9}, std::pair{16, 10}, std::pair{22, 10}, std::pair{23, 11},
                                         std::pair{31, 11}, std::pair{32, 12}, std::pair{64, 14}, std::pair{127, 15}, std::pair{128, 15}, std::pair{100000, 15}}) {
    EXPECT_EQ(graph::relative_bucket(distance, 16, 128), bucket) << distance;
  }
  for (const auto& [distance, bucket] : {std::pair{15, 15}, std::pair{16, 16}, std::pair{32, 21}, std::pair{64, 26}, std::pair{127, 31}, std::pair{128, 31}}) {
    EXPECT_EQ(graph::relative_bucket(distance, 32, 128), bucket) << distance;
  }
}

TEST(AttentionFeaturesRefusalTest, NamesTheInput) {
  const auto refusal = [](const auto& change) {
    Inputs inputs;
    change(inputs);
    return std::string(inputs.build(Type::kF32).graph.status().message());
  };
  EXPECT_EQ(refusal([](Inputs&) {}), "");
  EXPECT_NE(refusal([](Inputs& i) { i.mask_shape = {7, 40}, i.added.assign(280, 0.0f); }).find("mask is (7, 40) but must broadcast to (2, 4, 7, 41)"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.attributes.window_back = -2; }).find("window_back is -2"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.attributes.prefix = -1; }).find("prefix is -1"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.attributes.softcap = std::numeric_limits<double>::quiet_NaN(); }).find("softcap is nan"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.buckets = 3; }).find("relative_bias is (3, 4)"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.buckets = 32, i.attributes.max_distance = 8; }).find("max_distance is 8"), std::string::npos);
  EXPECT_NE(refusal([](Inputs& i) { i.attributes.chunk = 1 << 20, i.attributes.chunks_back = 1 << 20; }).find("too far back"), std::string::npos);

}

}  // namespace
}  // namespace rondo::tests::attention_features_test
