// What operators refuse, in words: the operator in brackets, then what was found and what it must be.
#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "lib/step_state.h"
#include "tools/check/op_case.h"

namespace rondo::graph::infer_test {
namespace {

using check::OpCase;

/// Tensors by shape, without content: nothing runs here.
class Builder {
 public:
  OpCase c;
  TensorId f32(const Shape& shape) { return c.graph.add_tensor("x", StorageKind::kInput, Type::kF32, shape); }
  TensorId f16(const Shape& shape) { return c.graph.add_tensor("h", StorageKind::kInput, Type::kF16, shape); }
  TensorId i32(const Shape& shape) { return c.graph.add_tensor("n", StorageKind::kInput, Type::kI32, shape); }
  TensorId weight(Type type, std::int64_t rows, std::int64_t columns) { return c.weight("w", type, rows, columns, {}); }
  TensorId cache(Type type, const Shape& shape) { return c.cache("cache", type, shape, {}); }
  TensorId turned(const Shape& shape) { return c.graph.transpose(f32(shape), {1, 0}); }  ///< columns that are not dense
  TensorId uneven() { return c.graph.slice(f32({2, 3, 5}), 1, 0, 2); }                   ///< (2, 2, 5), rows 0, 1, 3, 4
  /// (1, heads, rows, width) inside a tensor that others share.
  TensorId heads(TensorId rows, std::int64_t first, std::int64_t n, std::int64_t width) {
    Graph& g = c.graph;
    const Shape shape = g.tensor(rows).shape;
    return g.transpose(g.reshape(g.slice(rows, 2, first * width, (first + n) * width), {shape[0], shape[1], n, width}), {0, 2, 1, 3});
  }
  TensorId add(Op op, std::vector<TensorId> inputs, Attributes attributes = {}) { return c.graph.add(op, std::move(inputs), attributes); }
};

struct Refused {
  const char* message;
  void (*build)(Builder&);
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.message; }

class InferTest : public ::testing::TestWithParam<Refused> {};

TEST_P(InferTest, IsRefusedInWords) {
  Builder builder;
  GetParam().build(builder);
  EXPECT_EQ(builder.c.graph.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(builder.c.graph.status().message(), GetParam().message);
  EXPECT_TRUE(builder.c.graph.nodes().empty());
}

struct Layout {
  const char* name;
  void (*build)(Builder&);
};
void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

class LayoutTest : public ::testing::TestWithParam<Layout> {};

/// Any layout of a legal shape is legal: what a kernel can't read as it lies is copied first.
TEST_P(LayoutTest, IsCopiedWhereNoKernelReadsIt) {
  Builder builder;
  GetParam().build(builder);
  ASSERT_TRUE(builder.c.graph.status().ok()) << builder.c.graph.status().message();
  const std::vector<Node>& nodes = builder.c.graph.nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].op, Op::copy);
  EXPECT_NE(std::count(nodes[1].inputs.begin(), nodes[1].inputs.end(), nodes[0].outputs[0]), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Views, LayoutTest,
    ::testing::Values(Layout{"LinearColumns", [](Builder& b) { b.add(Op::linear, {b.turned({2, 32}), b.weight(Type::kF32, 3, 2)}); }},
                      Layout{"LinearRows", [](Builder& b) { b.add(Op::linear, {b.uneven(), b.weight(Type::kF32, 3, 5)}); }},
                      Layout{"LinearResidual", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF32, 3, 32), b.turned({3, 2})}); }},
                      Layout{"LinearGlu", [](Builder& b) { b.add(Op::linear_glu, {b.turned({2, 32}), b.weight(Type::kF32, 4, 2)}); }},
                      Layout{"Route", [](Builder& b) { b.add(Op::route, {b.turned({2, 3})}, RouteAttributes{1}); }},
                      Layout{"ExpertLinear", [](Builder& b) { b.add(Op::expert_linear, {b.turned({2, 32}), b.weight(Type::kF32, 4, 2), b.i32({32, 1})}, ExpertAttributes{2, {}}); }},
                      Layout{"WeightedSum", [](Builder& b) { b.add(Op::weighted_sum, {b.turned({2, 3}), b.f32({3, 1})}); }},
                      Layout{"WeightedSumWeights", [](Builder& b) { b.add(Op::weighted_sum, {b.f32({3, 4}), b.turned({2, 3})}); }},
                      Layout{"RmsNorm", [](Builder& b) { b.add(Op::rms_norm, {b.turned({2, 3})}); }},
                      Layout{"LayerNorm", [](Builder& b) { b.add(Op::layer_norm, {b.uneven()}); }},
                      Layout{"Glu", [](Builder& b) { b.add(Op::glu, {b.f32({3, 2}), b.turned({2, 3})}); }},
                      Layout{"Argmax", [](Builder& b) { b.add(Op::argmax, {b.uneven()}); }},
                      Layout{"TopK", [](Builder& b) { b.add(Op::top_k, {b.turned({2, 3})}, TopKAttributes{1}); }},
                      Layout{"KvWrite", [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF16, {1, 2, 9, 8}), b.c.graph.transpose(b.f32({1, 2, 8, 3}), {0, 1, 3, 2}), b.i32({1})}); }},
                      Layout{"Attention", [](Builder& b) { b.add(Op::attention, {b.c.graph.transpose(b.f32({1, 2, 8, 3}), {0, 1, 3, 2}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
                      Layout{"AttentionKeys", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.c.graph.transpose(b.f32({1, 2, 8, 9}), {0, 1, 3, 2}), b.f32({1, 2, 9, 8})}); }},
                      Layout{"Rope", [](Builder& b) { b.add(Op::rope, {b.c.graph.transpose(b.f32({1, 2, 8, 4}), {0, 1, 3, 2}), b.i32({4})}); }}),
    [](const ::testing::TestParamInfo<Layout>& each) { return std::string(each.param.name); });

/// A node of an f16 graph: the type of its first output, and the operators that were added before it to read what it reads.
struct Halves {
  const char* name;
  Type type;
  std::vector<Op> before;
  void (*build)(Builder&);
};
void PrintTo(const Halves& halves, std::ostream* out) { *out << halves.name; }

class HalvesTest : public ::testing::TestWithParam<Halves> {};

TEST_P(HalvesTest, TypesFollowTheActivations) {
  Builder builder;
  GetParam().build(builder);
  const Graph& graph = builder.c.graph;
  ASSERT_TRUE(graph.status().ok()) << graph.status().message();
  std::vector<Op> before;
  for (const Node& node : graph.nodes()) before.push_back(node.op);
  before.pop_back();
  EXPECT_EQ(before, GetParam().before);
  EXPECT_EQ(graph.tensor(graph.last_outputs().front()).type, GetParam().type);
}

INSTANTIATE_TEST_SUITE_P(
    Operators, HalvesTest,
    ::testing::Values(
        Halves{"Add", Type::kF16, {}, [](Builder& b) { b.add(Op::add, {b.f16({2, 3}), b.f16({3})}); }},
        Halves{"AddToF32", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::add, {b.f16({2, 3}), b.f32({3})}); }},
        Halves{"AddOfAView", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::add, {b.f32({3, 2}), b.c.graph.transpose(b.f16({2, 3}), {1, 0})}); }},
        Halves{"Concat", Type::kF32, {Op::widen, Op::widen}, [](Builder& b) { b.add(Op::concat, {b.f16({2}), b.f32({3}), b.f16({4})}, ConcatAttributes{0}); }},
        Halves{"Argmax", Type::kI32, {}, [](Builder& b) { b.add(Op::argmax, {b.f16({2, 3})}); }},
        Halves{"TopK", Type::kF16, {}, [](Builder& b) { b.add(Op::top_k, {b.f16({2, 3})}, TopKAttributes{1}); }},
        Halves{"Linear", Type::kF16, {}, [](Builder& b) { b.add(Op::linear, {b.f16({2, 32}), b.weight(Type::kF16, 3, 32), b.f16({2, 3}), b.f32({3})}); }},
        Halves{"LinearBias", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF16, 3, 32), kNone, b.f16({3})}); }},
        Halves{"LinearResidual", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::linear, {b.f16({2, 32}), b.weight(Type::kQ8_0, 3, 32), b.f32({2, 3})}); }},
        Halves{"Route", Type::kI32, {}, [](Builder& b) { b.add(Op::route, {b.f16({2, 3})}); }},
        Halves{"ExpertLinear", Type::kF16, {Op::widen}, [](Builder& b) { b.add(Op::expert_linear, {b.f16({2, 32}), b.weight(Type::kF16, 6, 32), b.i32({2, 1}), b.f16({6})}, ExpertAttributes{2, {}}); }},
        Halves{"WeightedSum", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::weighted_sum, {b.f16({2, 6}), b.f32({2, 2}), b.f32({3})}); }},
        Halves{"WeightedSumWeights", Type::kF16, {Op::widen}, [](Builder& b) { b.add(Op::weighted_sum, {b.f16({2, 6}), b.f16({2, 2})}); }},
        Halves{"RmsNormWeight", Type::kF16, {Op::widen}, [](Builder& b) { b.add(Op::rms_norm, {b.f16({2, 3}), b.f16({3})}); }},
        Halves{"SoftmaxMask", Type::kF16, {Op::widen}, [](Builder& b) { b.add(Op::softmax, {b.f16({2, 3}), b.f16({3})}); }},
        Halves{"Embedding", Type::kF16, {}, [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.weight(Type::kQ8_0, 3, 32)}, EmbeddingAttributes{.type = Type::kF16}); }},
        Halves{"EmbeddingOfF16Weight", Type::kF32, {}, [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.weight(Type::kF16, 3, 32)}); }},
        Halves{"EmbeddingOfActivation", Type::kF16, {}, [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.f16({3, 5})}); }},
        Halves{"Attention", Type::kF16, {}, [](Builder& b) { b.add(Op::attention, {b.f16({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Halves{"AttentionKeys", Type::kF32, {}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f16({1, 2, 9, 8}), b.f16({1, 2, 9, 8})}); }},
        Halves{"AttentionKeysOfTwoTypes", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f16({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Halves{"AttentionTurnedKeysOfTwoTypes", Type::kF32, {Op::widen}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.c.graph.transpose(b.f16({1, 2, 8, 9}), {0, 1, 3, 2}), b.f32({1, 2, 9, 8})}); }},
        Halves{"AttentionValuesOfTwoTypes", Type::kF16, {Op::widen}, [](Builder& b) { b.add(Op::attention, {b.f16({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f16({1, 2, 9, 8})}); }},
        Halves{"AttentionOddKeys", Type::kF32, {Op::pad, Op::pad}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 7}), b.f16({1, 2, 9, 7}), b.f16({1, 2, 9, 7})}); }},
        Halves{"AttentionOddOffset", Type::kF32, {Op::copy}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.c.graph.slice(b.f16({1, 2, 9, 10}), 3, 1, 9), b.f16({1, 2, 9, 8})}); }},
        Halves{"AttentionTurnedKeys", Type::kF32, {Op::copy}, [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.c.graph.transpose(b.f16({1, 2, 8, 9}), {0, 1, 3, 2}), b.f16({1, 2, 9, 8})}); }},
        Halves{"SharedMask", Type::kF32, {Op::widen, Op::softmax}, [](Builder& b) {
                 const TensorId mask = b.f16({3});
                 b.add(Op::softmax, {b.add(Op::softmax, {b.f32({2, 3}), mask}), mask});
               }},
        Halves{"Sinusoidal", Type::kF16, {}, [](Builder& b) { b.add(Op::sinusoidal_positions, {b.i32({2})}, SinusoidAttributes{4, 10000, SinusoidLayout::kSplit, Type::kF16}); }}),
    [](const ::testing::TestParamInfo<Halves>& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Add, InferTest,
    ::testing::Values(Refused{"[add] has 1 inputs but takes 2", [](Builder& b) { b.add(Op::add, {b.f32({2})}); }},
                      Refused{"[add] b is missing", [](Builder& b) { b.add(Op::add, {b.f32({2}), kNone}); }},
                      Refused{"[add] a is i32 but must be f32 or f16", [](Builder& b) { b.add(Op::add, {b.i32({2}), b.f32({2})}); }},
                      Refused{"[add] a is bf16 but must be f32 or f16", [](Builder& b) { b.add(Op::add, {b.weight(Type::kBF16, 2, 2), b.f32({2})}); }},
                      Refused{"[add] a is (2, 3) and b is (2, 2), which do not broadcast", [](Builder& b) { b.add(Op::add, {b.f32({2, 3}), b.f32({2, 2})}); }},
                      Refused{"[add] a is (3, 2) and b is (3), which do not broadcast", [](Builder& b) { b.add(Op::add, {b.f32({3, 2}), b.f32({3})}); }}));

INSTANTIATE_TEST_SUITE_P(
    Linear, InferTest,
    ::testing::Values(Refused{"[linear] has 5 inputs but takes 4", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF32, 3, 32), kNone, kNone, kNone}); }},
                      Refused{"[linear] bias is (4) but must be (3)", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF32, 3, 32), kNone, b.f32({4})}); }},
                      Refused{"[linear] bias is i32 but must be f32", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF32, 3, 32), kNone, b.i32({3})}); }},
                      Refused{"[linear] input is missing", [](Builder& b) { b.add(Op::linear, {kNone, b.weight(Type::kF32, 3, 32)}); }},
                      Refused{"[linear] weight is missing", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), kNone}); }},
                      Refused{"[linear] weight must be an input as it is stored, not computed or a view", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.f32({3, 32})}); }},
                      Refused{"[linear] weight is (3, 64) but input has 32 columns", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kQ8_0, 3, 64)}); }},
                      Refused{"[linear] weight is (3, 48) of type q4_0, whose rows come in blocks of 32", [](Builder& b) { b.add(Op::linear, {b.f32({2, 48}), b.weight(Type::kQ4_0, 3, 48)}); }},
                      Refused{"[linear] weight is (3, 288) of type q4_K, whose rows come in blocks of 256", [](Builder& b) { b.add(Op::linear, {b.f32({2, 288}), b.weight(Type::kQ4_K, 3, 288)}); }},
                      Refused{"[linear] weight is (3, 128) of type q6_K, whose rows come in blocks of 256", [](Builder& b) { b.add(Op::linear, {b.f32({2, 128}), b.weight(Type::kQ6_K, 3, 128)}); }},
                      Refused{"[linear] residual is (2, 4), which does not broadcast to (2, 3)", [](Builder& b) { b.add(Op::linear, {b.f32({2, 32}), b.weight(Type::kF32, 3, 32), b.f32({2, 4})}); }},
                      Refused{"[linear_glu] has 1 inputs but takes 2", [](Builder& b) { b.add(Op::linear_glu, {b.f32({2, 32})}); }},
                      Refused{"[linear_glu] weight has 7 rows, which can't be halves of gates and ups", [](Builder& b) { b.add(Op::linear_glu, {b.f32({2, 32}), b.weight(Type::kF32, 7, 32)}); }},
                      Refused{"[linear_glu] weight is (8, 64) but input has 32 columns", [](Builder& b) { b.add(Op::linear_glu, {b.f32({2, 32}), b.weight(Type::kF32, 8, 64)}); }}));

INSTANTIATE_TEST_SUITE_P(
    Rings, InferTest,
    ::testing::Values(Refused{"[kv_write] 10 rows at once are more than the ring's 9", [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF16, {1, 2, 9, 8}), b.f32({1, 2, 10, 8}), b.i32({1})}, KvWriteAttributes{true}); }},
                      Refused{"[attention] keys in a ring need query_offset and lengths",
                              [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8}), b.i32({1})}, AttentionAttributes{.ring = true}); }},
                      Refused{"[attention] keys in a ring can't have a mask",
                              [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8}), b.i32({1}), b.i32({1}), b.f32({3, 9})}, AttentionAttributes{.ring = true}); }},
                      Refused{"[rms_norm] attributes are another operator's", [](Builder& b) { b.add(Op::rms_norm, {b.f32({2, 3})}, LayerNormAttributes{}); }},
                      Refused{"[rope_kv_write] attributes are another operator's", [](Builder& b) { b.add(Op::rope_kv_write, {kNone}, RopeAttributes{}); }},
                      Refused{"[argmax] attributes are another operator's", [](Builder& b) { b.add(Op::argmax, {b.f32({2, 3})}, TopKAttributes{}); }}));

INSTANTIATE_TEST_SUITE_P(
    Experts, InferTest,
    ::testing::Values(Refused{"[route] k is 4 but logits (2, 3) are of 3 experts", [](Builder& b) { b.add(Op::route, {b.f32({2, 3})}, RouteAttributes{4}); }},
                      Refused{"[route] k is 0 but logits (2, 3) are of 3 experts", [](Builder& b) { b.add(Op::route, {b.f32({2, 3})}, RouteAttributes{0}); }},
                      Refused{"[route] logits are of 1025 experts; at most 1024 are there yet", [](Builder& b) { b.add(Op::route, {b.f32({2, 1025})}); }},
                      Refused{"[expert_linear] has 2 inputs but takes 4", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), b.weight(Type::kF32, 6, 32)}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] experts is f32 but must be i32", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), b.weight(Type::kF32, 6, 32), b.f32({2, 1})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] input is (3, 32) but must be (2, 32)", [](Builder& b) { b.add(Op::expert_linear, {b.f32({3, 32}), b.weight(Type::kF32, 6, 32), b.i32({2, 1})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] weight is (6, 32) but input has 96 columns", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 96}), b.weight(Type::kF32, 6, 32), b.i32({2, 2})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] weight has 7 rows, which 2 experts can't share", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), b.weight(Type::kF32, 7, 32), b.i32({2, 1})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] weight has 6 rows, which 0 experts can't share", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), b.weight(Type::kF32, 6, 32), b.i32({2, 1})}, ExpertAttributes{0, {}}); }},
                      Refused{"[expert_linear] weight is missing", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), kNone, b.i32({2, 1})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear] bias is (3) but must be (6)", [](Builder& b) { b.add(Op::expert_linear, {b.f32({2, 32}), b.weight(Type::kF32, 6, 32), b.i32({2, 1}), b.f32({3})}, ExpertAttributes{2, {}}); }},
                      Refused{"[expert_linear_glu] weight has 6 rows, which 2 experts with gates and ups can't share",
                              [](Builder& b) { b.add(Op::expert_linear_glu, {b.f32({2, 32}), b.weight(Type::kF32, 6, 32), b.i32({2, 1})}, ExpertAttributes{2, {}}); }},
                      Refused{"[weighted_sum] weights is (3, 2) but must be (2, 2)", [](Builder& b) { b.add(Op::weighted_sum, {b.f32({2, 6}), b.f32({3, 2})}); }},
                      Refused{"[weighted_sum] input (2, 7) has rows that 2 weights can't share", [](Builder& b) { b.add(Op::weighted_sum, {b.f32({2, 7}), b.f32({2, 2})}); }},
                      Refused{"[weighted_sum] residual is (2, 4), which does not broadcast to (2, 3)", [](Builder& b) { b.add(Op::weighted_sum, {b.f32({2, 6}), b.f32({2, 2}), b.f32({2, 4})}); }}));

INSTANTIATE_TEST_SUITE_P(
    Embedding, InferTest,
    ::testing::Values(Refused{"[embedding] ids is f32 but must be i32", [](Builder& b) { b.add(Op::embedding, {b.f32({2}), b.weight(Type::kF32, 3, 32)}); }},
                      Refused{"[embedding] ids is (1, 1, 2) but must have 1 or 2 dimensions", [](Builder& b) { b.add(Op::embedding, {b.i32({1, 1, 2}), b.weight(Type::kF32, 3, 32)}); }},
                      Refused{"[embedding] ids (2) must be contiguous", [](Builder& b) { b.add(Op::embedding, {b.c.graph.reshape(b.c.graph.slice(b.i32({2, 3}), 1, 0, 1), {2}), b.weight(Type::kF32, 3, 32)}); }},
                      Refused{"[embedding] weight is missing", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), kNone}); }},
                      Refused{"[embedding] weight is i32, which is not a weight type", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.i32({3, 32})}); }},
                      Refused{"[embedding] weight is (3) but must be (V, D)", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.f32({3})}); }},
                      Refused{"[embedding] weight is (3, 96) of type q6_K, whose rows come in blocks of 256", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.weight(Type::kQ6_K, 3, 96)}); }},
                      Refused{"[embedding] weight is bf16 but must be f32 or f16", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.c.graph.add_tensor("h", StorageKind::kInput, Type::kBF16, {3, 32})}); }},
                      Refused{"[embedding] type is f32, but the rows of an activation stay f16", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.f16({3, 32})}, EmbeddingAttributes{.type = Type::kF32}); }},
                      Refused{"[embedding] type is f16, but the rows of an activation stay f32", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.f32({3, 32})}, EmbeddingAttributes{.type = Type::kF16}); }},
                      Refused{"[embedding] weight (32, 3) has rows that are not evenly spaced", [](Builder& b) { b.add(Op::embedding, {b.i32({2}), b.turned({3, 32})}); }}));

INSTANTIATE_TEST_SUITE_P(
    RowsAndReductions, InferTest,
    ::testing::Values(Refused{"[rms_norm] input is i32 but must be f32 or f16", [](Builder& b) { b.add(Op::rms_norm, {b.i32({2, 3})}); }},
                      Refused{"[rms_norm] weight is (4) but must be (3)", [](Builder& b) { b.add(Op::rms_norm, {b.f32({2, 3}), b.f32({4})}); }},
                      Refused{"[rms_norm] weight is (1, 3) but must have 1 dimension", [](Builder& b) { b.add(Op::rms_norm, {b.f32({2, 3}), b.f32({1, 3})}); }},
                      Refused{"[glu] up is (2, 4) but must be (2, 3)", [](Builder& b) { b.add(Op::glu, {b.f32({2, 3}), b.f32({2, 4})}); }},
                      Refused{"[glu] gate is missing", [](Builder& b) { b.add(Op::glu, {kNone, b.f32({2, 3})}); }}));

INSTANTIATE_TEST_SUITE_P(
    UnaryAndNorms, InferTest,
    ::testing::Values(Refused{"[gelu] has 2 inputs but takes 1", [](Builder& b) { b.add(Op::gelu, {b.f32({2}), b.f32({2})}); }},
                      Refused{"[exp] input is i32 but must be f32 or f16", [](Builder& b) { b.add(Op::exp, {b.i32({2})}); }},
                      Refused{"[div] a is (2, 3) and b is (2, 2), which do not broadcast", [](Builder& b) { b.add(Op::div, {b.f32({2, 3}), b.f32({2, 2})}); }},
                      Refused{"[softmax] axis is 2 but input is (2, 3)", [](Builder& b) { b.add(Op::softmax, {b.f32({2, 3})}, SoftmaxAttributes{2}); }},
                      Refused{"[softmax] axis is -3 but input is (2, 3)", [](Builder& b) { b.add(Op::softmax, {b.f32({2, 3})}, SoftmaxAttributes{-3}); }},
                      Refused{"[softmax] scale is 0 but must be finite and not 0", [](Builder& b) { b.add(Op::softmax, {b.f32({2, 3})}, SoftmaxAttributes{-1, 0}); }},
                      Refused{"[log_softmax] mask is (4), which does not broadcast to input (2, 3)", [](Builder& b) { b.add(Op::log_softmax, {b.f32({2, 3}), b.f32({4})}); }},
                      Refused{"[softmax] mask is (1, 2, 3), which does not broadcast to input (2, 3)", [](Builder& b) { b.add(Op::softmax, {b.f32({2, 3}), b.f32({1, 2, 3})}); }},
                      Refused{"[layer_norm] weight is (4) but must be (3)", [](Builder& b) { b.add(Op::layer_norm, {b.f32({2, 3}), b.f32({4})}); }},
                      Refused{"[layer_norm] bias is (3, 1) but must have 1 dimension", [](Builder& b) { b.add(Op::layer_norm, {b.f32({2, 3}), kNone, b.f32({3, 1})}); }},
                      Refused{"[layer_norm] has 4 inputs but takes 3", [](Builder& b) { b.add(Op::layer_norm, {b.f32({2, 3}), kNone, kNone, kNone}); }}));

INSTANTIATE_TEST_SUITE_P(
    Products, InferTest,
    ::testing::Values(Refused{"[matmul] a is (2, 3) and b is (2, 3): 3 columns against 2 rows", [](Builder& b) { b.add(Op::matmul, {b.f32({2, 3}), b.f32({2, 3})}); }},
                      Refused{"[matmul] a is (2, 3) transposed and b is (3, 5): 2 columns against 3 rows", [](Builder& b) { b.add(Op::matmul, {b.f32({2, 3}), b.f32({3, 5})}, MatmulAttributes{true}); }},
                      Refused{"[matmul] a is (2, 4, 3) and b is (3, 3, 5), whose batches do not broadcast", [](Builder& b) { b.add(Op::matmul, {b.f32({2, 4, 3}), b.f32({3, 3, 5})}); }},
                      Refused{"[matmul] a is (3) but must have 2 to 4 dimensions", [](Builder& b) { b.add(Op::matmul, {b.f32({3}), b.f32({3, 5})}); }},
                      Refused{"[matmul] a is (1, 49153): sums of 49153 terms, at most 49152 are there", [](Builder& b) { b.add(Op::matmul, {b.f32({1, 49153}), b.f32({49153, 1})}); }},
                      Refused{"[patch_embed] patch is 3, which does not divide pixels (1, 3, 8, 9)", [](Builder& b) { b.add(Op::patch_embed, {b.f32({1, 3, 8, 9}), b.weight(Type::kF32, 5, 27)}, PatchEmbedAttributes{3}); }},
                      Refused{"[patch_embed] weight is (5, 27) but input has 12 columns", [](Builder& b) { b.add(Op::patch_embed, {b.f32({1, 3, 8, 8}), b.weight(Type::kF32, 5, 27)}, PatchEmbedAttributes{2}); }},
                      Refused{"[patch_embed] bias is (4) but must be (5)", [](Builder& b) { b.add(Op::patch_embed, {b.f32({1, 3, 8, 8}), b.weight(Type::kF32, 5, 12), b.f32({4})}, PatchEmbedAttributes{2}); }}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, InferTest,
    ::testing::Values(Refused{"[mean] axis is 2 but input is (2, 3)", [](Builder& b) { b.add(Op::mean, {b.f32({2, 3})}, ReduceAttributes{2}); }},
                      Refused{"[softmax] mask is bool but must be f32 or f16: it is added, with a large negative number or -inf for what is hidden",
                              [](Builder& b) { b.add(Op::softmax, {b.f32({2, 3}), b.i32({2, 3})}); }},
                      Refused{"[max] input is () but must have 1 to 4 dimensions", [](Builder& b) { b.add(Op::max, {b.f32({})}); }},
                      Refused{"[top_k] k is 4 but input (2, 3) has rows of 3", [](Builder& b) { b.add(Op::top_k, {b.f32({2, 3})}, TopKAttributes{4}); }},
                      Refused{"[top_k] k is 0 but input (2, 3) has rows of 3", [](Builder& b) { b.add(Op::top_k, {b.f32({2, 3})}, TopKAttributes{0}); }},
                      Refused{"[top_k] k is 1025 but can be at most 1024", [](Builder& b) { b.add(Op::top_k, {b.f32({2, 2000})}, TopKAttributes{1025}); }},
                      Refused{"[concat] has no inputs", [](Builder& b) { b.add(Op::concat, {}); }},
                      Refused{"[concat] axis is 2 but 'a' is (2, 3)", [](Builder& b) { b.add(Op::concat, {b.f32({2, 3})}, ConcatAttributes{2}); }},
                      Refused{"[concat] 'b' is (3, 4) but 'a' is (2, 3): beside axis 1 they do not broadcast", [](Builder& b) { b.add(Op::concat, {b.f32({2, 3}), b.f32({3, 4})}, ConcatAttributes{1}); }},
                      Refused{"[concat] 'b' is missing", [](Builder& b) { b.add(Op::concat, {b.f32({2, 3}), kNone}, ConcatAttributes{1}); }},
                      Refused{"[pad] before is -1 and after 0 at dimension 0, but they must be from 0 to 1073741823", [](Builder& b) { b.add(Op::pad, {b.f32({2})}, PadAttributes{{-1}}); }},
                      Refused{"[pad] dimension 1 is to be padded, but input is (2)", [](Builder& b) { b.add(Op::pad, {b.f32({2})}, PadAttributes{{0, 1}}); }},
                      Refused{"[widen] input is f32 but must be f16", [](Builder& b) { b.add(Op::widen, {b.f32({2})}); }},
                      Refused{"[copy] input is i32 but must be f32 or f16", [](Builder& b) { b.add(Op::copy, {b.i32({2})}); }},
                      Refused{"[slice] x (2, 3): step -1 of axis 1 must be at least 1", [](Builder& b) { b.c.graph.slice(b.f32({2, 3}), std::array{SliceRange{0, 2}, SliceRange{2, 0, -1}}); }},
                      Refused{"[slice] x (2, 3): [2, 1) of axis 1 is empty", [](Builder& b) { b.c.graph.slice(b.f32({2, 3}), std::array{SliceRange{0, 2}, SliceRange{2, 1}}); }},
                      Refused{"[slice] x (2, 3) has 2 dimensions but 1 ranges are given", [](Builder& b) { b.c.graph.slice(b.f32({2, 3}), std::array{SliceRange{0, 2}}); }},
                      Refused{"[reshape] x (2, 3) can't become (4)", [](Builder& b) { b.c.graph.reshape_or_copy(b.f32({2, 3}), {4}); }},
                      Refused{"[sinusoidal_positions] width is 3 but must be even and from 2 to 1048576", [](Builder& b) { b.add(Op::sinusoidal_positions, {b.i32({2})}, SinusoidAttributes{3}); }},
                      Refused{"[sinusoidal_positions] theta is 0.5 but must be finite and at least 1", [](Builder& b) { b.add(Op::sinusoidal_positions, {b.i32({2})}, SinusoidAttributes{4, 0.5}); }},
                      Refused{"[sinusoidal_positions] positions is f32 but must be i32", [](Builder& b) { b.add(Op::sinusoidal_positions, {b.f32({2})}, SinusoidAttributes{4}); }}));

INSTANTIATE_TEST_SUITE_P(
    Rope, InferTest,
    ::testing::Values(Refused{"[rope] input is (2, 3, 8) but must have 4 dimensions", [](Builder& b) { b.add(Op::rope, {b.f32({2, 3, 8}), b.i32({3})}); }},
                      Refused{"[rope] dimensions is 3 but must be even and in [2, 8]", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3})}, RopeAttributes{RopeStyle::kHalf, 3}); }},
                      Refused{"[rope] dimensions is 10 but must be even and in [2, 8]", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3})}, RopeAttributes{RopeStyle::kHalf, 10}); }},
                      Refused{"[rope] dimensions is 7 but must be even and in [2, 7]", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 7}), b.i32({3})}); }},
                      Refused{"[rope] theta is -1 but must be positive", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3})}, RopeAttributes{RopeStyle::kHalf, 0, -1}); }},
                      Refused{"[rope] max_position is 0 but must be in [1, 2^24]", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3})}, RopeAttributes{RopeStyle::kHalf, 0, 1e4, 1, 0}); }},
                      Refused{"[rope] positions is (4) but must be (3)", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({4})}); }},
                      Refused{"[rope] positions is (2, 3) but must be (1, 3)", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({2, 3})}); }},
                      Refused{"[rope] frequency_factors is (8) but must be (4)", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3}), b.c.graph.add_constant("factors", {8}, std::vector<float>(8))}); }},
                      Refused{"[rope] frequency_factors must be a constant", [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 8}), b.i32({3}), b.f32({4})}); }}));

INSTANTIATE_TEST_SUITE_P(
    Caches, InferTest,
    ::testing::Values(
        Refused{"[kv_write] cache is missing", [](Builder& b) { b.add(Op::kv_write, {kNone, b.f32({1, 2, 3, 8}), b.i32({1})}); }},
        Refused{"[kv_write] cache is i32 but must be f32, f16 or q8_0", [](Builder& b) { b.add(Op::kv_write, {b.i32({1, 2, 9, 8}), b.f32({1, 2, 3, 8}), b.i32({1})}); }},
        Refused{"[kv_write] cache is (9, 8) but must be (B, G, S, D)", [](Builder& b) { b.add(Op::kv_write, {b.f32({9, 8}), b.f32({1, 2, 3, 8}), b.i32({1})}); }},
        Refused{"[kv_write] cache must have rows padded to whole words and nothing else between them",
                [](Builder& b) { b.add(Op::kv_write, {b.c.graph.slice(b.cache(Type::kF16, {1, 2, 9, 8}), 3, 0, 6), b.f32({1, 2, 3, 6}), b.i32({1})}); }},
        Refused{"[kv_write] cache is q8_0 and must be the whole of its storage: quants and scales lie apart",
                [](Builder& b) { b.add(Op::kv_write, {b.c.graph.slice(b.cache(Type::kQ8_0, {1, 2, 9, 64}), 2, 0, 6), b.f32({1, 2, 3, 64}), b.i32({1})}); }},
        Refused{"[kv_write] cache is q8_0 and must be the whole of its storage: quants and scales lie apart",
                [](Builder& b) { b.add(Op::kv_write, {b.c.graph.slice(b.cache(Type::kQ8_0, {2, 2, 9, 64}), 0, 0, 1), b.f32({1, 2, 3, 64}), b.i32({1})}); }},
        Refused{"[kv_write] update is (1, 2, 3, 7) but must be (1, 2, 3, 8)", [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF16, {1, 2, 9, 8}), b.f32({1, 2, 3, 7}), b.i32({1})}); }},
        Refused{"[kv_write] start is (2) but must be (1)", [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF16, {1, 2, 9, 8}), b.f32({1, 2, 3, 8}), b.i32({2})}); }},
        Refused{"[kv_write] count is f32 but must be i32", [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF16, {1, 2, 9, 8}), b.f32({1, 2, 3, 8}), b.i32({1}), b.f32({1})}); }},
        Refused{"[rope_kv_write] has 3 inputs but takes 9", [](Builder& b) { b.add(Op::rope_kv_write, {kNone, kNone, kNone}); }},
        Refused{"[rope_kv_write] query, key and value must be views of one storage with equal strides",
                [](Builder& b) {
                  const TensorId cache = b.cache(Type::kF16, {1, 1, 9, 8});
                  b.add(Op::rope_kv_write, {b.f32({1, 2, 3, 8}), b.f32({1, 1, 3, 8}), b.f32({1, 1, 3, 8}), b.i32({3}), b.i32({1}), kNone, cache, cache, kNone});
                }},
        Refused{"[rope_kv_write] key and value caches differ in type",
                [](Builder& b) {
                  const TensorId rows = b.f32({1, 3, 32});
                  b.add(Op::rope_kv_write, {b.heads(rows, 0, 2, 8), b.heads(rows, 2, 1, 8), b.heads(rows, 3, 1, 8), b.i32({3}), b.i32({1}), kNone, b.cache(Type::kF16, {1, 1, 9, 8}), b.cache(Type::kF32, {1, 1, 9, 8}), kNone});
                }},
        Refused{"[rope_kv_write] key is (1, 1, 3, 8) but must be (1, 2, 3, 8)",
                [](Builder& b) {
                  const TensorId rows = b.f32({1, 3, 32}), cache = b.cache(Type::kF16, {1, 2, 9, 8});
                  b.add(Op::rope_kv_write, {b.heads(rows, 0, 2, 8), b.heads(rows, 2, 1, 8), b.heads(rows, 3, 1, 8), b.i32({3}), b.i32({1}), kNone, cache, cache, kNone});
                }}));

INSTANTIATE_TEST_SUITE_P(
    Attention, InferTest,
    ::testing::Values(
        Refused{"[attention] key or value is missing", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), kNone}); }},
        Refused{"[attention] query is (2, 3, 8) but must have 4 dimensions", [](Builder& b) { b.add(Op::attention, {b.f32({2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] key is i32 but must be f32, f16 or q8_0", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.i32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] value is (9, 8) but must be (B, G, S, D)", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({9, 8})}); }},
        Refused{"[attention] key has heads 513 wide; at most 512 is there yet", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 513}), b.f32({1, 2, 9, 513}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] key and value differ in type", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.cache(Type::kF16, {1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] key is q8_0 and must be the whole of its storage: quants and scales lie apart",
                [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 32}), b.c.graph.slice(b.cache(Type::kQ8_0, {1, 2, 9, 64}), 3, 32, 64), b.cache(Type::kQ8_0, {1, 2, 9, 32})}); }},
        Refused{"[attention] value is q8_0 and must be the whole of its storage: quants and scales lie apart",
                [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 32}), b.cache(Type::kQ8_0, {1, 2, 9, 32}), b.c.graph.slice(b.cache(Type::kQ8_0, {1, 3, 9, 32}), 1, 0, 2)}); }},
        Refused{"[attention] key and value differ in type", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.cache(Type::kQ8_0, {1, 2, 9, 8}), b.cache(Type::kF16, {1, 2, 9, 8})}); }},
        Refused{"[attention] key is (1, 2, 9, 8) but must be (1, 2, 9, 16)", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 16}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] value is (1, 2, 7, 8) but must be (1, 2, 9, 8)", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 7, 8})}); }},
        Refused{"[attention] query has 3 heads, which 2 KV heads do not divide", [](Builder& b) { b.add(Op::attention, {b.f32({1, 3, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] key is (1, 2, 9, 32) in q8_0, which can't be one for 2 sequences; f32 and f16 can",
                [](Builder& b) { b.add(Op::attention, {b.f32({2, 2, 3, 32}), b.cache(Type::kQ8_0, {1, 2, 9, 32}), b.cache(Type::kQ8_0, {1, 2, 9, 32})}); }},
        Refused{"[attention] key is (2, 2, 9, 8) but must be (3, 2, 9, 8)", [](Builder& b) { b.add(Op::attention, {b.f32({3, 2, 3, 8}), b.f32({2, 2, 9, 8}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention] lengths is (2) but must be (3)", [](Builder& b) { b.add(Op::attention, {b.f32({3, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8}), kNone, b.i32({2})}); }},
        Refused{"[attention] lengths is (2) but must be (1)", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8}), kNone, b.i32({2})}); }},
        Refused{"[attention_weights] key is missing", [](Builder& b) { b.add(Op::attention_weights, {b.f32({1, 2, 3, 8}), kNone}); }},
        Refused{"[attention_weights] key is (1, 2, 9, 8) but must be (1, 2, 9, 16)", [](Builder& b) { b.add(Op::attention_weights, {b.f32({1, 2, 3, 16}), b.f32({1, 2, 9, 8})}); }},
        Refused{"[attention_weights] query_offset is (3) but must be (2)", [](Builder& b) { b.add(Op::attention_weights, {b.f32({2, 2, 3, 8}), b.f32({2, 2, 9, 8}), b.i32({3})}); }},
        Refused{"[attention_weights] mask is (3, 8) but must broadcast to (1, 2, 3, 9)", [](Builder& b) { b.add(Op::attention_weights, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), kNone, kNone, b.f32({3, 8})}); }},
        Refused{"[attention_weights] keys in a ring need query_offset and lengths", [](Builder& b) { b.add(Op::attention_weights, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8})}, AttentionAttributes{.ring = true}); }},
        Refused{"[attention] query_offset is f32 but must be i32", [](Builder& b) { b.add(Op::attention, {b.f32({1, 2, 3, 8}), b.f32({1, 2, 9, 8}), b.f32({1, 2, 9, 8}), b.f32({1})}); }}));

INSTANTIATE_TEST_SUITE_P(
    Steps, InferTest,
    ::testing::Values(Refused{"[step_begin] tokens is (9) but must have 2 dimensions", [](Builder& b) { b.add(Op::step_begin, {b.i32({9}), b.c.state}); }},
                      Refused{"[step_begin] state is (1, 9) but must be (1, 64)", [](Builder& b) { b.add(Op::step_begin, {b.i32({1, 9}), b.i32({1, 9})}); }},
                      Refused{"[step_begin] rows is 0 but must be at least 1", [](Builder& b) { b.add(Op::step_begin, {b.i32({1, 9}), b.c.state}, StepBeginAttributes{0}); }},
                      Refused{"[step_begin] tokens (2, 3) must be contiguous", [](Builder& b) { b.add(Op::step_begin, {b.c.graph.transpose(b.i32({3, 2}), {1, 0}), b.i32({2, 64})}); }},
                      Refused{"[step_end] has 2 inputs but takes 4", [](Builder& b) { b.add(Op::step_end, {kNone, kNone}); }},
                      Refused{"[step_end] mirror is (1, 8) but must be (1, 9)", [](Builder& b) { b.add(Op::step_end, {kNone, b.i32({1, 9}), b.i32({1, 8}), b.c.state}); }},
                      Refused{"[step_end] state is (1, 32) but must be (1, 64)", [](Builder& b) { b.add(Op::step_end, {kNone, b.i32({1, 9}), b.i32({1, 9}), b.i32({1, 32})}); }},
                      Refused{"[step_end] token is (2) but must be (1)", [](Builder& b) { b.add(Op::step_end, {b.i32({2}), b.i32({1, 9}), b.i32({1, 9}), b.c.state}); }}));

/// Kernels have no stride and no offset for these.
INSTANTIATE_TEST_SUITE_P(
    PartsOfOtherTensors, InferTest,
    ::testing::Values(Refused{"[kv_write] start (1) must begin with its storage",
                              [](Builder& b) { b.add(Op::kv_write, {b.cache(Type::kF32, {1, 2, 8, 4}), b.f32({1, 2, 3, 4}), b.c.graph.slice(b.i32({2}), 0, 1, 2)}); }},
                      Refused{"[kv_write] count (2) must be contiguous",
                              [](Builder& b) {
                                const SliceRange every_other[] = {{0, 4, 2}};
                                b.add(Op::kv_write, {b.cache(Type::kF32, {2, 2, 8, 4}), b.f32({2, 2, 3, 4}), b.i32({2}), b.c.graph.slice(b.i32({4}), every_other)});
                              }},
                      Refused{"[attention] lengths (1) must begin with its storage",
                              [](Builder& b) {
                                b.add(Op::attention, {b.f32({1, 2, 3, 4}), b.f32({1, 2, 5, 4}), b.f32({1, 2, 5, 4}), kNone, b.c.graph.slice(b.i32({2}), 0, 1, 2)}, AttentionAttributes{});
                              }},
                      Refused{"[rope] positions (3) must begin with its storage",
                              [](Builder& b) { b.add(Op::rope, {b.f32({1, 2, 3, 4}), b.c.graph.slice(b.i32({4}), 0, 1, 4)}, RopeAttributes{}); }},
                      Refused{"[rms_norm] weight (4) must be contiguous",
                              [](Builder& b) {
                                const SliceRange every_other[] = {{0, 8, 2}};
                                b.add(Op::rms_norm, {b.f32({3, 4}), b.c.graph.slice(b.f32({8}), every_other)}, RmsNormAttributes{});
                              }},
                      Refused{"[step_end] token (1) must begin with its storage",
                              [](Builder& b) { b.add(Op::step_end, {b.c.graph.slice(b.i32({2}), 0, 1, 2), b.i32({1, 9}), b.i32({1, 9}), b.c.state}); }}));

static_assert(RONDO_STATE_WORDS == 64);

TEST(OperatorTableTest, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const Operator& table = operator_of(static_cast<Op>(i));
    EXPECT_TRUE(names.insert(table.name).second) << table.name;
    EXPECT_EQ(find_operator(table.name), static_cast<Op>(i));
    EXPECT_FALSE(table.kernels.empty()) << table.name;
    EXPECT_NE(table.reference != nullptr, table.decompose != nullptr) << table.name << " has one oracle";
  }
  EXPECT_EQ(find_operator("no such thing"), std::nullopt);
}

}  // namespace
}  // namespace rondo::graph::infer_test
