#include "graph/named_node.h"

#include <gtest/gtest.h>

#include "graph/operator.h"
#include "tools/check/op_case.h"

namespace rondo::graph::named_node_test {
namespace {

using check::OpCase;

TensorId ones(OpCase& op, const char* name, const Shape& shape) {
  const std::vector<float> values(static_cast<std::size_t>(shape.n_elements()), 1.0f);
  return op.f32(name, shape, values);
}

/// What adding the node says, "" if it is taken.
std::string refusal(OpCase& op, const NamedNode& node) {
  const Result<std::vector<TensorId>> added = add_named_node(op.graph, node);
  return added.ok() ? "" : added.status().message();
}

TEST(NamedNodeTest, EveryOperatorHasItsInputsNamed) {
  for (std::size_t i = 0; i < kOpCount; ++i) EXPECT_FALSE(named_inputs(operator_of(static_cast<Op>(i)).name).empty()) << operator_of(static_cast<Op>(i)).name;
  for (const char* view : {"slice", "transpose", "reshape"}) EXPECT_EQ(named_inputs(view).size(), 1u);
  EXPECT_TRUE(named_inputs("no such thing").empty());
}

TEST(NamedNodeTest, PutsInputsInTheOperatorsOrder) {
  OpCase op;
  const TensorId input = ones(op, "x", {2, 3}), residual = ones(op, "r", {2, 5});
  const TensorId weight = op.weight("w", Type::kF32, 5, 3, check::weight_rows(Type::kF32, 5, 3, 1, check::WeightValues::kRandom));
  const Result<std::vector<TensorId>> outputs = add_named_node(op.graph, {"linear", {{"residual", residual}, {"weight", weight}, {"input", input}}, {{"activation", "gelu"}}});
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  const Node& node = op.graph.nodes().back();
  EXPECT_EQ(node.inputs[0], input);
  EXPECT_EQ(node.inputs[1], weight);
  EXPECT_EQ(node.inputs[2], residual);
  EXPECT_EQ(attributes_of<LinearAttributes>(node).activation, Activation::kGelu);
}

TEST(NamedNodeTest, ReadsEveryKindOfAttribute) {
  OpCase op;
  const TensorId query = ones(op, "q", {1, 2, 3, 8}), key = ones(op, "k", {1, 1, 5, 8});
  ASSERT_EQ(refusal(op, {"attention", {{"query", query}, {"key", key}, {"value", key}}, {{"causal", true}, {"window_back", std::int64_t{2}}, {"softcap", 2.5}, {"scale", std::int64_t{1}}}}), "");
  const auto attention = attributes_of<AttentionAttributes>(op.graph.nodes().back());
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(attention.window_back, 2);
  EXPECT_EQ(attention.softcap, 2.5);
  EXPECT_EQ(attention.scale, 1.0);
  const TensorId heads = ones(op, "h", {1, 1, 2, 8}), positions = op.i32("p", {2}, std::vector<std::int32_t>{0, 1});
  ASSERT_EQ(refusal(op, {"rope", {{"input", heads}, {"positions", positions}}, {{"style", "interleaved"}}}), "");
  EXPECT_EQ(attributes_of<RopeAttributes>(op.graph.nodes().back()).style, RopeStyle::kInterleaved);
  ASSERT_EQ(refusal(op, {"pad", {{"input", heads}}, {{"before", std::vector<std::int64_t>{0, 0, 1, 2}}}}), "");
  EXPECT_EQ(op.graph.tensor(op.graph.nodes().back().outputs[0]).shape, (Shape{1, 1, 3, 10}));
}

TEST(NamedNodeTest, MakesViews) {
  OpCase op;
  const TensorId input = ones(op, "x", {4, 6});
  using Integers = std::vector<std::int64_t>;
  const auto shape_of = [&](const NamedNode& node) {
    const Result<std::vector<TensorId>> outputs = add_named_node(op.graph, node);
    return outputs.ok() ? op.graph.tensor(outputs->front()).shape : Shape{};
  };
  EXPECT_EQ(shape_of({"slice", {{"input", input}}, {{"starts", Integers{-3, 0}}, {"ends", Integers{4, 6}}, {"steps", Integers{1, 4}}}}), (Shape{3, 2}));
  EXPECT_EQ(shape_of({"transpose", {{"input", input}}, {{"permutation", Integers{1, 0}}}}), (Shape{6, 4}));
  EXPECT_EQ(shape_of({"reshape", {{"input", input}}, {{"shape", Integers{3, 2, 4}}}}), (Shape{3, 2, 4}));
  EXPECT_EQ(shape_of({"reshape", {{"input", input}}, {{"shape", Integers{3, -1, 4}}}}), (Shape{3, 2, 4}));
  EXPECT_EQ(shape_of({"transpose", {{"input", input}}, {{"permutation", Integers{-1, -2}}}}), (Shape{6, 4}));
  EXPECT_EQ(shape_of({"slice", {{"input", input}}, {{"axis", std::int64_t{-1}}, {"start", std::int64_t{-5}}, {"step", std::int64_t{2}}}}), (Shape{4, 3}));
  EXPECT_EQ(shape_of({"sum", {{"input", input}}, {{"axes", Integers{0, 1}}}}), Shape{});
  EXPECT_EQ(shape_of({"sum", {{"input", input}}, {{"axes", Integers{0, 1}}, {"keep", true}}}), (Shape{1, 1}));
}

struct Refused {
  const char* name;
  const char* op;
  std::vector<std::string> inputs;  ///< all of them the same tensor
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  const char* message;
};
void PrintTo(const Refused& refused, std::ostream* stream) { *stream << refused.name; }

class NamedNodeRefusals : public ::testing::TestWithParam<Refused> {};

TEST_P(NamedNodeRefusals, NameWhatIsWrong) {
  OpCase op;
  const TensorId input = ones(op, "x", {4, 6});
  NamedNode node{GetParam().op, {}, GetParam().attributes};
  for (const std::string& name : GetParam().inputs) node.inputs.emplace_back(name, input);
  EXPECT_EQ(refusal(op, node), GetParam().message);
}

using Integers = std::vector<std::int64_t>;
INSTANTIATE_TEST_SUITE_P(
    Each, NamedNodeRefusals,
    ::testing::Values(
        Refused{"Operator", "relux", {"input"}, {}, "there is no operator 'relux'; did you mean 'relu'?"},
        Refused{"SwappedLetters", "rms_nrom", {"input"}, {}, "there is no operator 'rms_nrom'; did you mean 'rms_norm'?"},
        Refused{"NoSuchWord", "convolution", {"input"}, {}, "there is no operator 'convolution'"},
        Refused{"Input", "relu", {"input", "other"}, {}, "[relu] has no input 'other'; there are input"},
        Refused{"InputTwice", "add", {"a", "a"}, {}, "[add] input 'a' is given twice"},
        Refused{"InputMissing", "add", {"a"}, {}, "[add] input 'b' is missing"},
        Refused{"InputBetween", "concat", {"a", "c"}, {}, "[concat] input 'b' is missing"},
        Refused{"Attribute", "relu", {"input"}, {{"axis", std::int64_t{1}}}, "[relu] has no attributes, but 'axis' is given"},
        Refused{"UnknownAttribute", "softmax", {"input"}, {{"axes", std::int64_t{1}}}, "[softmax] has no attribute 'axes'; there are axis, scale; did you mean 'axis'?"},
        Refused{"AttributeTwice", "softmax", {"input"}, {{"scale", 1.0}, {"scale", 2.0}}, "[softmax] attribute 'scale' is given twice"},
        Refused{"AttributeMissing", "top_k", {"input"}, {}, "[top_k] attribute 'k' is missing"},
        Refused{"NotAnInteger", "softmax", {"input"}, {{"axis", 1.5}}, "[softmax] attribute 'axis' must be an integer of at most 31 bits"},
        Refused{"TooLarge", "top_k", {"input"}, {{"k", std::int64_t{1} << 40}}, "[top_k] attribute 'k' must be an integer of at most 31 bits"},
        Refused{"NotANumber", "softmax", {"input"}, {{"scale", "one"}}, "[softmax] attribute 'scale' must be a number that fits f32"},
        Refused{"BeyondF32", "softmax", {"input"}, {{"scale", 1e39}}, "[softmax] attribute 'scale' must be a number that fits f32"},
        Refused{"NotABool", "matmul", {"a", "b"}, {{"transpose_a", std::int64_t{1}}}, "[matmul] attribute 'transpose_a' must be true or false"},
        Refused{"NoActivation", "glu", {"gate", "up"}, {{"activation", "swish"}}, "[glu] attribute 'activation' must be one of none, relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid, exp, neg, not 'swish'"},
        Refused{"NoLayout", "sinusoidal_positions", {"positions"}, {{"width", std::int64_t{8}}, {"layout", "x"}}, "[sinusoidal_positions] attribute 'layout' must be \"interleaved\" or \"split\""},
        Refused{"LongList", "pad", {"input"}, {{"before", Integers(5, 1)}}, "[pad] attribute 'before' must be a list of at most 4 integers of at most 31 bits"},
        Refused{"RaggedSlice", "slice", {"input"}, {{"starts", Integers{0, 0}}, {"ends", Integers{1}}}, "[slice] 'starts', 'ends' and 'steps' differ in length"},
        Refused{"NearActivation", "glu", {"gate", "up"}, {{"activation", "gelu_tan"}},
                "[glu] attribute 'activation' must be one of none, relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid, exp, neg, not 'gelu_tan'; did you mean 'gelu_tanh'?"},
        Refused{"NegativeExtent", "reshape", {"input"}, {{"shape", Integers{-2, 2}}}, "[reshape] attribute 'shape' must have extents of at least 1 that fit 31 bits together, one of them -1 for what is left, not (-2, 2)"},
        Refused{"TwoOpenExtents", "reshape", {"input"}, {{"shape", Integers{-1, 2, -1}}}, "[reshape] attribute 'shape' must have extents of at least 1 that fit 31 bits together, one of them -1 for what is left, not (-1, 2, -1)"},
        Refused{"OpenExtent", "reshape", {"input"}, {{"shape", Integers{5, -1}}}, "[reshape] input (4, 6) of 24 elements can't become (5, -1)"},
        Refused{"SliceAxis", "slice", {"input"}, {{"axis", std::int64_t{2}}, {"end", std::int64_t{1}}}, "[slice] axis is 2 but input is (4, 6)"},
        Refused{"SliceWithoutAxis", "slice", {"input"}, {{"end", std::int64_t{1}}}, "[slice] attribute 'axis' is missing"},
        Refused{"SliceBothWays", "slice", {"input"}, {{"axis", std::int64_t{1}}, {"starts", Integers{0, 0}}}, "[slice] has no attribute 'starts'; there are axis, start, end, step; did you mean 'start'?"},
        Refused{"TransposeBeyond", "transpose", {"input"}, {{"permutation", Integers{-3, 0}}}, "[transpose] x (4, 6): (-3, 0) is not a permutation of its axes"},
        Refused{"AxisAndAxes", "sum", {"input"}, {{"axis", std::int64_t{0}}, {"axes", Integers{0}}}, "[sum] attributes 'axis' and 'axes' exclude each other"},
        Refused{"AxisTwice", "sum", {"input"}, {{"axes", Integers{1, -1}}}, "[sum] axis 1 is named twice"},
        Refused{"WhatInferRefuses", "softmax", {"input"}, {{"axis", std::int64_t{2}}}, "[softmax] axis is 2 but input is (4, 6)"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace rondo::graph::named_node_test
