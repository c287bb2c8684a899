#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "graph/compare.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "tests/support/made_up_llama.h"
#include "tools/check/op_case.h"

namespace rondo::graph::fusion_test {
namespace {

using models::Role;
using tests::MadeUpLlama;
using tests::MadeUpOptions;
using check::OpCase;
using check::random_values;
using check::weight_rows;
using check::WeightValues;

std::size_t n_dispatches(const MadeUpOptions& options, std::int64_t rows, bool fusion) {
  Graph step = MadeUpLlama(options).build(rows == 1 ? Role::kDecode : Role::kPrefillAndSample, rows);
  LoweringOptions lowering;
  lowering.fusion = fusion;
  const Result<Lowered> lowered = lower(step, runtime::DeviceCaps{}, lowering);
  EXPECT_TRUE(lowered.ok()) << lowered.status().message();
  return lowered.ok() ? lowered->program.dispatches.size() : 0;
}

std::size_t dispatches_per_layer(MadeUpOptions options, std::int64_t rows, bool fusion) {
  options.n_layers = 1;
  const std::size_t one = n_dispatches(options, rows, fusion);
  options.n_layers = 3;
  return (n_dispatches(options, rows, fusion) - one) / 2;
}

std::size_t count_nodes(const Graph& graph, Op op) {
  return static_cast<std::size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(), [op](const Node& node) { return node.op == op; }));
}

/// Every storage that outlives the step.
void expect_same_results(const MadeUpOptions& options, std::int64_t rows) {
  const MadeUpLlama llama(options);
  const Graph simple = llama.build(Role::kLogits, rows);
  Graph fused = simple;
  ASSERT_TRUE(fuse(fused).ok());
  ASSERT_LT(fused.nodes().size(), simple.nodes().size());
  ASSERT_TRUE(validate(fused).ok());
  const auto count = static_cast<std::int32_t>(rows);
  const auto expected = llama.interpret(simple, 11, count);
  const auto found = llama.interpret(fused, 11, count);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  ASSERT_TRUE(found.ok()) << found.status().message();
  for (std::size_t i = 0; i < simple.n_storages(); ++i) {
    const Storage& storage = simple.storage(static_cast<StorageId>(i));
    if (storage.kind == StorageKind::kActivation || storage.kind == StorageKind::kWeight) continue;
    // A fused residual saves a rounding, which may carry a cached half or quant over the middle between two.
    const double bound = options.kv_type == Type::kF32 ? 1e-11 : options.kv_type == Type::kF16 ? 1e-6 : 1e-5;
    const std::vector<std::byte> before((*expected)[i].size(), std::byte{0xa5});
    const Judged judged{storage.type, before, (*found)[i], (*expected)[i]};
    std::vector<std::byte> values[3];
    EXPECT_EQ(find_difference(decoded(simple, static_cast<StorageId>(i), judged, values), {bound}), "") << storage.name;
  }
}

TEST(FusionTest, ADecodeStepHasAtMostNineDispatchesPerLayer) {
  EXPECT_LE(dispatches_per_layer({}, 1, true), 9u);
  EXPECT_LE(dispatches_per_layer({}, 64, true), 8u) << "prefill needs no combine pass";
  EXPECT_GE(dispatches_per_layer({}, 1, false), 16u) << "the count must come from fusion";
}

TEST(FusionTest, AsManyWithOneKvHeadOrOnePerHead) {
  for (std::uint32_t n_kv_heads : {1u, 4u}) {
    MadeUpOptions options;
    options.n_kv_heads = n_kv_heads;
    EXPECT_LE(dispatches_per_layer(options, 1, true), 9u) << n_kv_heads;
    EXPECT_LE(dispatches_per_layer(options, 64, true), 8u) << n_kv_heads;
  }
}

/// Biases of q, k and v lie side by side, as their weights do, and the output's is added with its residual.
TEST(FusionTest, BiasesCostNoDispatch) {
  MadeUpOptions options;
  options.biases = true;
  EXPECT_EQ(dispatches_per_layer(options, 1, true), dispatches_per_layer({}, 1, true));
  EXPECT_EQ(dispatches_per_layer(options, 64, true), dispatches_per_layer({}, 64, true));
  expect_same_results(options, 5);
  options.value_type = Type::kF16;
  expect_same_results(options, 5);
}

TEST(FusionTest, AValueOfAnotherTypeIsALinearOfItsOwn) {
  MadeUpOptions mixed;
  mixed.value_type = Type::kF16;
  EXPECT_EQ(dispatches_per_layer(mixed, 1, true), dispatches_per_layer({}, 1, true) + 1);
  Graph step = MadeUpLlama(mixed).build(Role::kDecode, 1);
  ASSERT_TRUE(fuse(step).ok());
  EXPECT_EQ(count_nodes(step, Op::rope_kv_write), 2u);
  EXPECT_EQ(count_nodes(step, Op::rope), 0u);
  mixed.value_type = Type::kQ8_0;
  mixed.up_type = Type::kQ4_0;
  Graph ups = MadeUpLlama(mixed).build(Role::kDecode, 1);
  ASSERT_TRUE(fuse(ups).ok());
  EXPECT_EQ(count_nodes(ups, Op::linear_glu), 0u);
  EXPECT_EQ(count_nodes(ups, Op::rope_kv_write), 2u);
}

TEST(FusionTest, FusedAndSimpleStepsAgree) {
  for (Type kv_type : {Type::kF32, Type::kF16, Type::kQ8_0}) {
    for (Type value_type : {Type::kQ8_0, Type::kF16}) {
      MadeUpOptions options;
      options.kv_type = kv_type;
      options.value_type = value_type;
      expect_same_results(options, 1);
      expect_same_results(options, 5);
    }
  }
  MadeUpOptions other;
  other.up_type = Type::kF32;
  expect_same_results(other, 5);
  other.n_kv_heads = 1;
  expect_same_results(other, 5);
}

/// input -> three linears of adjoining rows -> sum of the first two, third alone.
OpCase three_linears(TensorId (&outputs)[3]) {
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1));
  const TensorId weight = c.weight("weight", Type::kF32, 21, 32, weight_rows(Type::kF32, 21, 32, 2, WeightValues::kRandom));
  for (int i = 0; i < 3; ++i) outputs[i] = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 7 * i, 7 * i + 7)});
  return c;
}

TEST(FusionTest, AdjoiningLinearsBecomeOne) {
  TensorId outputs[3];
  OpCase c = three_linears(outputs);
  c.output(c.graph.add(Op::add, {c.graph.add(Op::add, {outputs[0], outputs[1]}), outputs[2]}));
  Graph fused = c.graph;
  ASSERT_TRUE(fuse(fused).ok());
  EXPECT_EQ(count_nodes(fused, Op::linear), 1u);
  EXPECT_EQ(fused.tensor(fused.nodes().front().outputs[0]).shape, (Shape{3, 21}));
  EXPECT_EQ(fused.tensor(outputs[1]).offset_elements, 7);
  EXPECT_EQ(fused.tensor(outputs[1]).strides[0], 21);
}

/// Keys in f16 are read in words: columns that begin with one must still do so.
TEST(FusionTest, LinearsOfOddWidthsInF16StayApart) {
  for (const auto& [type, width, n_linears] : {std::tuple{Type::kF16, 4, 1u}, std::tuple{Type::kF16, 3, 2u}, std::tuple{Type::kF32, 3, 1u}}) {
    OpCase c;
    const TensorId input = c.activation("input", type, {2, 32}, std::vector<float>(64));
    const TensorId weight = c.weight("weight", Type::kF32, 16, 32, {});
    const TensorId first = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 0, width)});
    const TensorId second = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, width, 16)});
    c.output(c.graph.add(Op::relu, {first}));
    c.output(c.graph.add(Op::relu, {second}));
    ASSERT_TRUE(fuse(c.graph).ok());
    EXPECT_EQ(count_nodes(c.graph, Op::linear), n_linears) << type_name(type) << " " << width;
    EXPECT_EQ(c.graph.tensor(first).type, type);
  }
}

TEST(FusionTest, GapsAndOtherOrdersStayApart) {
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1));
  const TensorId weight = c.weight("weight", Type::kF32, 21, 32, weight_rows(Type::kF32, 21, 32, 2, WeightValues::kRandom));
  const TensorId high = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 14, 21)}), low = c.graph.add(Op::linear, {input, c.graph.slice(weight, 0, 0, 7)});
  c.output(c.graph.add(Op::add, {high, low}));
  ASSERT_TRUE(fuse(c.graph).ok());
  EXPECT_EQ(count_nodes(c.graph, Op::linear), 2u) << "one of them takes the other as its residual";
  EXPECT_EQ(count_nodes(c.graph, Op::add), 0u);
}

/// What a caller wants to read must still be written when its consumer is fused with it.
TEST(FusionTest, OutputsSurvive) {
  const auto reads_as_before = [](const OpCase& c, StorageId id) {
    Graph fused = c.graph;
    ASSERT_TRUE(fuse(fused).ok());
    bool written = false;
    for (const Node& node : fused.nodes()) {
      for (TensorId output : node.outputs) written = written || fused.tensor(output).storage == id;
    }
    EXPECT_TRUE(written) << "storage " << fused.storage(id).name << " is an output that nothing writes";
  };
  for (int kept : {0, 1, 2}) {
    TensorId outputs[3];
    OpCase c = three_linears(outputs);
    c.output(outputs[kept]);
    reads_as_before(c, c.graph.tensor(outputs[kept]).storage);
  }
  for (int kept : {0, 1}) {
    TensorId outputs[3];
    OpCase c = three_linears(outputs);
    c.output(c.graph.add(Op::glu, {outputs[0], outputs[1]}));
    c.output(outputs[kept]);
    reads_as_before(c, c.graph.tensor(outputs[kept]).storage);
  }
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1)), residual = c.f32("residual", {3, 7}, random_values(21, 2));
  const TensorId product = c.graph.add(Op::linear, {input, c.weight("weight", Type::kF32, 7, 32, weight_rows(Type::kF32, 7, 32, 2, WeightValues::kRandom))});
  c.output(c.graph.add(Op::add, {product, residual}));
  c.output(product);
  reads_as_before(c, c.graph.tensor(product).storage);
}

TEST(FusionTest, ABroadcastOrTwiceReadAdditionStaysApart) {
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1)), bias = c.f32("bias", {7}, random_values(7, 2));
  const TensorId weight = c.weight("weight", Type::kF32, 7, 32, weight_rows(Type::kF32, 7, 32, 2, WeightValues::kRandom));
  const TensorId product = c.graph.add(Op::linear, {input, weight});
  c.output(c.graph.add(Op::add, {product, bias}));
  const TensorId other = c.graph.add(Op::linear, {input, weight});
  c.output(c.graph.add(Op::add, {other, other}));
  ASSERT_TRUE(fuse(c.graph).ok());
  EXPECT_EQ(count_nodes(c.graph, Op::add), 2u);
}

/// What a linear does with its sums comes before the residual, and keeps it from being merged with its neighbour.
TEST(FusionTest, ALinearStaysBeforeAWriteToWhatItReads) {
  for (bool written : {false, true}) {
    OpCase op;
    const TensorId cache = op.cache("cache", Type::kF32, {1, 1, 4, 8}, random_values(32, 1)), update = op.f32("update", {1, 1, 2, 8}, random_values(16, 2));
    const TensorId start = op.i32("start", {1}, std::vector<std::int32_t>{1}), residual = op.f32("residual", {1, 1, 4, 3}, random_values(12, 3));
    const TensorId linear = op.graph.add(Op::linear, {cache, op.weight("w", Type::kF32, 3, 8, weight_rows(Type::kF32, 3, 8, 4, WeightValues::kRandom))});
    if (written) op.graph.add(Op::kv_write, {cache, update, start});
    op.output(op.graph.add(Op::add, {linear, residual}));
    ASSERT_TRUE(fuse(op.graph).ok());
    EXPECT_EQ(count_nodes(op.graph, Op::add), written ? 1u : 0u);
  }
}

TEST(FusionTest, ABiasAndAnActivationStayWithTheirLinear) {
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1)), bias = c.f32("bias", {7}, random_values(7, 2));
  const TensorId residual = c.f32("residual", {3, 7}, random_values(21, 3));
  const TensorId both = c.weight("weight", Type::kF32, 14, 32, weight_rows(Type::kF32, 14, 32, 2, WeightValues::kRandom));
  const TensorId low = c.graph.slice(both, 0, 0, 7), high = c.graph.slice(both, 0, 7, 14);
  const TensorId a = c.graph.add(Op::linear, {input, low, kNone, bias}, LinearAttributes{Activation::kGelu}), b = c.graph.add(Op::linear, {input, high});
  c.output(c.graph.add(Op::add, {a, residual}));
  c.output(b);
  ASSERT_TRUE(fuse(c.graph).ok());
  EXPECT_EQ(count_nodes(c.graph, Op::add), 0u);
  ASSERT_EQ(count_nodes(c.graph, Op::linear), 2u);
  const Node& fused = c.graph.nodes().back();
  EXPECT_EQ(fused.inputs, (std::vector<TensorId>{input, low, residual, bias}));
  EXPECT_EQ(attributes_of<LinearAttributes>(fused).activation, Activation::kGelu);
}

TEST(FusionTest, AGluKeepsItsActivation) {
  OpCase c;
  const TensorId input = c.f32("input", {3, 32}, random_values(3 * 32, 1));
  const TensorId both = c.weight("weight", Type::kF32, 14, 32, weight_rows(Type::kF32, 14, 32, 2, WeightValues::kRandom));
  const TensorId gate = c.graph.add(Op::linear, {input, c.graph.slice(both, 0, 0, 7)}), up = c.graph.add(Op::linear, {input, c.graph.slice(both, 0, 7, 14)});
  c.output(c.graph.add(Op::glu, {gate, up}, GluAttributes{Activation::kGeluTanh}));
  ASSERT_TRUE(fuse(c.graph).ok());
  ASSERT_EQ(c.graph.nodes().size(), 1u);
  EXPECT_EQ(attributes_of<GluAttributes>(c.graph.nodes().front()).activation, Activation::kGeluTanh);
}

/// The fused kernel has no binding left for a count of its own: only the step's will do.
TEST(FusionTest, CacheWritesWithACountOfTheirOwnStayApart) {
  OpCase c;
  const TensorId rows = c.f32("rows", {1, 4, 32}, random_values(128, 1)), count = c.i32("count", {1}, std::vector<std::int32_t>{2});
  const auto heads = [&](std::int64_t first, std::int64_t n) {
    return c.graph.transpose(c.graph.reshape(c.graph.slice(rows, 2, first * 8, (first + n) * 8), {1, 4, n, 8}), {0, 2, 1, 3});
  };
  const TensorId keys = c.cache("keys", Type::kF32, {1, 1, 16, 8}, random_values(128, 2)), values = c.cache("values", Type::kF32, {1, 1, 16, 8}, random_values(128, 3));
  const TensorId positions = c.i32("positions", {4}, std::vector<std::int32_t>{0, 1, 2, 3}), start = c.i32("start", {1}, std::vector<std::int32_t>{0});
  c.output(c.graph.add(Op::rope, {heads(0, 2), positions}), 2);
  const TensorId key = c.graph.add(Op::rope, {heads(2, 1), positions});
  c.graph.add(Op::kv_write, {keys, key, start, count});
  c.graph.add(Op::kv_write, {values, heads(3, 1), start, count});
  ASSERT_TRUE(fuse(c.graph).ok()) << c.graph.status().message();
  EXPECT_EQ(count_nodes(c.graph, Op::rope_kv_write), 0u);
  c.graph.add(Op::rope_kv_write, {heads(0, 2), heads(2, 1), heads(3, 1), positions, start, count, keys, values, kNone});
  EXPECT_EQ(c.graph.status().message(), "[rope_kv_write] count must be the step's or absent");
}

}  // namespace
}  // namespace rondo::graph::fusion_test
