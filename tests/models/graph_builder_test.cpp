// The public Graph: what its calls give, what they refuse and in which words, and that the graph it builds computes what a
// graph file does.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/graph.h>

#include "models/graph_builder.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace rondo::graph_builder_test {
namespace {

using rondo::testing::bytes_of_values;
using rondo::testing::safetensors_bytes;
using rondo::testing::source_of;

/// The first output's elements, by the references.
std::vector<float> evaluated(Graph graph) {
  Result<models::GraphFile> file = graph.internal()->finish();
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return {};
  for (const models::StoredInput& stored : file->inputs) {
    std::vector<std::byte>& bytes = file->contents[stored.storage];
    bytes.resize(models::stored_bytes_of(stored.input, stored.form));
    EXPECT_TRUE(models::read_elements(stored.input, stored.form, stored.elements, bytes).ok());
  }
  const graph::Tensor tensor = file->graph.tensor(file->outputs[0].tensor);
  const Result<models::StorageBytes> after = models::interpret_graph_file(std::move(*file));
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (!after.ok()) return {};
  const std::vector<std::byte> dense = models::dense_elements(tensor, after->at(tensor.storage));
  std::vector<float> values(dense.size() / 4);
  std::memcpy(values.data(), dense.data(), dense.size());
  return values;
}

/// The bytes are read where they are.
Weights open(std::string&& bytes) = delete;
Weights open(const std::string& bytes) { return open_weights(source_of(bytes, "w.safetensors")).value(); }

TEST(GraphBuilderTest, CallsGiveShapes) {
  Graph g;
  const Tensor x = g.input("x", Type::kF32, {1, 7, 8});
  const Tensor w = g.constant("w", {12, 8}, std::vector<float>(96));
  EXPECT_EQ(g.linear(x, w, Activation::kGelu).shape(), (Shape{1, 7, 12}));
  EXPECT_EQ(g.split_heads(x, 2).shape(), (Shape{1, 2, 7, 4}));
  EXPECT_EQ(g.merge_heads(g.split_heads(x, 2)).shape(), (Shape{1, 7, 8}));
  EXPECT_EQ(g.argmax(x).type(), Type::kI32);
  EXPECT_EQ(g.slice(x, 1, 2, 5).shape(), (Shape{1, 3, 8}));
  EXPECT_EQ(g.concat({x, x, x}, 2).shape(), (Shape{1, 7, 24}));
  EXPECT_EQ(g.top_k(x, 3).second.shape(), (Shape{1, 7, 3}));
  EXPECT_EQ(g.input("h", Type::kF16, {2}).type(), Type::kF16);
  EXPECT_TRUE(g.status().ok()) << g.status().message();
}

TEST(GraphBuilderTest, ComputesWhatTheReferencesDo) {
  Graph g;
  const Tensor a = g.constant("a", {2, 2}, std::vector<float>{1, 2, 3, 4});
  const Tensor b = g.constant("b", {2, 2}, std::vector<float>{1, 0, 1, 1});
  // a b^T as linear, of which b is a matrix; then with b as an activation.
  g.output("y", g.mul(g.sub(g.add(g.linear(a, b), b), 1), 0.5f));
  EXPECT_EQ(evaluated(std::move(g)), (std::vector<float>{0.5f, 1, 1.5f, 3.5f}));
}

TEST(GraphBuilderTest, ReadsWeightsByPrefix) {
  const std::string bytes = safetensors_bytes({{"layer.0.w", "F32", {2, 3}, bytes_of_values<float>({1, 2, 3, 4, 5, 6})},
                                               {"layer.0.t", "F32", {2, 3}, bytes_of_values<float>({1, 2, 3, 4, 5, 6})},
                                               {"layer.1.w", "U8", {1, 34}, std::string(34, '\1')},
                                               {"odd", "F64", {1}, std::string(8, '\0')}});
  const Weights weights = open(bytes);
  EXPECT_EQ(weights.at("layer.0.").names(), (std::vector<std::string>{"t", "w"}));
  EXPECT_TRUE(weights.at("layer.").at("1.").has("w"));
  Graph g;
  const Weights layer = weights.at("layer.0.");
  EXPECT_EQ(g.weight(layer, "w").shape(), (Shape{2, 3}));
  EXPECT_EQ(g.weight(layer, "t", {{}, true}).shape(), (Shape{3, 2}));
  EXPECT_EQ(g.weight(weights, "layer.1.w", {"q8_0", false}).shape(), (Shape{1, 32}));
  g.output("y", g.embedding(g.integer(1), g.weight(layer, "t", {{}, true})));
  EXPECT_EQ(evaluated(std::move(g)), (std::vector<float>{2, 5}));
}

/// The message of the call that `build` makes, in scope "layer 0".
template <typename Build>
std::string refusal(Build&& build) {
  Graph g("net");
  const Tensor x = g.input("x", Type::kF32, {1, 7, 8});
  auto scope = g.scope("layer 0");
  const Tensor made = build(g, x);
  EXPECT_FALSE(made);
  EXPECT_FALSE(g.argmax(x)) << "calls after an error do nothing";
  return g.status().message();
}

TEST(GraphBuilderTest, RefusesAtTheCallAndNamesTensors) {
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.linear(x, g.constant("w", {3, 9}, std::vector<float>(27))); }).substr(0, 23), "net: layer 0: [linear] ");
  const std::string linear = refusal([](Graph& g, Tensor x) { return g.linear(x, g.constant("w", {3, 9}, std::vector<float>(27))); });
  EXPECT_NE(linear.find("; input is 'x', weight is 'layer 0/w'"), std::string::npos) << linear;
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.constant("w", {2, 2}, std::vector<float>(3)); }), "net: layer 0: constant 'w': (2, 2) has 4 elements, but 3 are given");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.input("x", Type::kF32, {1}); }), "net: layer 0: there is an input 'x' already");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.input("z", Type::kF32, {1, 1, 1, 1, 1}); }), "net: layer 0: input 'z': its shape has 5 dimensions, at most 4 are there");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.input("z", Type::kF32, {1, 0}); }),
            "net: layer 0: input 'z': extent 0 of axis 1: extents are at least 1, and all together at most 2^31 - 1 elements");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.input("z", Type::kQ8_0, {1, 1, 8, 8}); }), "net: layer 0: input 'z': q8_0 is a type of caches and weights");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.cache("z", Type::kF16, {8, 8}); }), "net: layer 0: cache 'z': (8, 8) of f16 must be (B, G, S, D) of f32, f16 or q8_0");
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.split_heads(x, 3); }), "net: layer 0: [split_heads] (1, 7, 8) must be (B, T, 3 D) for 3 heads");
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.add("step_end", {{"token", x}}); }), "net: layer 0: operator 'step_end' belongs to sessions");
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.linear(x, g.scalar(2)); }), "net: layer 0: [linear]: input 'weight' is 2 but must be a tensor; input is 'x', weight is '2'");
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.embedding(x, x); }).find("net: layer 0: [embedding]: input 'ids' is 'x' of type f32 but must be i32"), 0U);
  Graph other;
  const Tensor foreign = other.input("x", Type::kF32, {1});
  EXPECT_EQ(refusal([&](Graph& g, Tensor x) { return g.add(x, foreign); }), "net: layer 0: [add]: input 'b' is a tensor of another graph; a is 'x'");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.input("z", static_cast<Type>(77), {1}); }), "net: layer 0: input 'z': 77 is no Type");
  EXPECT_NE(refusal([](Graph& g, Tensor x) { return g.glu(x, x, static_cast<Activation>(77)); }).find("Activation 77"), std::string::npos);
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.split_heads({}, 2); }), "net: layer 0: [split_heads] input is missing");
  EXPECT_EQ(refusal([](Graph& g, Tensor) { return g.merge_heads({}); }), "net: layer 0: [merge_heads] input is missing");
  EXPECT_EQ(refusal([](Graph& g, Tensor x) { return g.slice(x, 3, 0, 1); }).find("net: layer 0: [slice]"), 0U);
  const auto write = [](const char* what) {
    return refusal([&](Graph& g, Tensor) {
      const Tensor rows = g.input("rows", Type::kF32, {1, 1, 8, 4});
      const Tensor cache = std::string_view(what) == "rows" ? rows : std::string_view(what) == "c" ? g.constant("c", {1, 1, 8, 4}, std::vector<float>(32)) : g.activate(rows, Activation::kExp);
      return g.kv_write(cache, rows, g.integer(0));
    });
  };
  for (const char* what : {"rows", "c", "made"}) EXPECT_NE(write(what).find("which is no cache of the graph"), std::string::npos) << write(what);
}

/// A Tensor of a graph that is gone is no tensor of one that may lie where it lay.
TEST(GraphBuilderTest, TensorsOfGraphsThatAreGoneAreRefused) {
  for (int i = 0; i < 8; ++i) {
    Tensor stale;
    {
      Graph gone;
      stale = gone.input("x", Type::kF32, {1});
    }
    Graph g("net");
    if (i % 2) (void)g.input("x", Type::kF32, {1});
    EXPECT_FALSE(g.activate(stale, Activation::kRelu));
    EXPECT_EQ(g.status().message(), "net: [relu]: input 'input' is a tensor of another graph");
  }
}

TEST(GraphBuilderTest, SlicesCountFromTheEnd) {
  Graph g;
  const Tensor x = g.constant("x", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  g.output("y", g.activate(g.slice(x, -1, -2, 3), Activation::kNeg));
  EXPECT_EQ(evaluated(std::move(g)), (std::vector<float>{-2, -3, -5, -6}));
}

TEST(GraphBuilderTest, RefusesWeightsThatAreNotThere) {
  const std::string bytes = safetensors_bytes({{"query.weight", "F32", {2}, std::string(8, '\0')}, {"blocks", "U8", {1, 34}, std::string(34, '\0')}, {"odd", "F64", {1}, std::string(8, '\0')}});
  const Weights weights = open(bytes);
  const auto message = [&](std::string_view name, const WeightOptions& options = {}) {
    Graph g("net");
    EXPECT_FALSE(g.weight(weights, name, options));
    return g.status().message();
  };
  EXPECT_EQ(message("qeury.weight"), "net: w.safetensors: tensor 'qeury.weight' is missing; did you mean 'query.weight'?");
  EXPECT_EQ(message("odd"), "net: w.safetensors: tensor 'odd' has dtype F64, which no input can have");
  EXPECT_EQ(message("blocks").find("net: w.safetensors: tensor 'blocks' has dtype U8, which may be blocks of any type; say which"), 0U);
  EXPECT_EQ(message("blocks", {"q4_0", false}), "net: w.safetensors: tensor 'blocks' is (1, 34), but rows of q4_0 come in blocks of 18 bytes");
  EXPECT_EQ(message("query.weight", {"q8_0", false}), "net: w.safetensors: tensor 'query.weight' has dtype F32, which can't be 'q8_0'");
  EXPECT_EQ(message("query.weight", {{}, true}), "net: w.safetensors: tensor 'query.weight' 'layout' is kn, which is (K, N), but 'shape' is (2)");
  Graph g("net");
  EXPECT_FALSE(g.weight(Weights(), "w"));
}

TEST(GraphBuilderTest, RefusesOutputsThatNothingComputes) {
  const auto message = [](auto&& build) {
    Graph g("net");
    build(g, g.input("x", Type::kF32, {2}));
    return g.internal()->finish().status().message();
  };
  EXPECT_EQ(message([](Graph&, Tensor) {}), "net: has no output, so there is nothing to compute");
  EXPECT_EQ(message([](Graph& g, Tensor x) { g.output("y", x); }), "net: output 'y' is an input or a number, which nothing computes");
  EXPECT_EQ(message([](Graph& g, Tensor) { g.output("y", {}); }), "net: output 'y' is an empty tensor");
  EXPECT_EQ(message([](Graph& g, Tensor x) { g.output("y", g.activate(x, Activation::kRelu)), g.output("y", g.activate(x, Activation::kExp)); }), "net: output 'y' is there already");
  Graph g, moved = std::move(g);
  EXPECT_EQ(g.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(g.input("x", Type::kF32, {1}));
}

TEST(GraphBuilderTest, NothingIsAddedToALoadedGraph) {
  const std::string x = safetensors_bytes({{"x", "F32", {2}, bytes_of_values<float>({1, -2})}});
  const ByteSource files[] = {source_of(x, "x.safetensors")};
  Result<Graph> g = Graph::load(source_of(R"({"inputs":["x"],"nodes":[{"op":"relu","inputs":{"input":"x"},"outputs":["y"]}],"outputs":["y"]})", "g.json"), files);
  ASSERT_TRUE(g.ok()) << g.status().message();
  EXPECT_FALSE(g->input("z", Type::kF32, {1}));
  EXPECT_EQ(g->status().message(), "g.json: was loaded from a file, and nothing can be added to it");
}

}  // namespace
}  // namespace rondo::graph_builder_test
