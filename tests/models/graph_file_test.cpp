#include "models/formats/graph_file.h"

#include <cmath>
#include <cstring>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "graph/float16.h"
#include "models/formats/graph_description.h"
#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"

namespace rondo::models::graph_file_test {
namespace {

using rondo::testing::bytes_of_values;
using rondo::testing::safetensors_bytes;
using rondo::testing::source_of;

Result<GraphFile> read(const std::string& graph, const std::string& inputs) { return read_graph_file(source_of(graph, "g.json"), source_of(inputs, "in.safetensors")); }

std::string halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (float value : values) bits.push_back(graph::float_to_half(value));
  return bytes_of_values(bits);
}

/// x (3, 4) f32, h the same as f16, ids (3) i64 = 0, 2, 1, flags (3) bool, w (2, 32) q8_0, c (1, 1, 4, 3) f16 and k (1, 1, 2, 3)
/// f32 of ones, s (1) i32 = 1, big (2) i64 beyond 32 bits.
const std::string& inputs() {
  static const std::string kInputs = safetensors_bytes({
      {"x", "F32", {3, 4}, bytes_of_values<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})},
      {"h", "F16", {3, 4}, halves({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})},
      {"ids", "I64", {3}, bytes_of_values<std::int64_t>({0, 2, 1})},
      {"flags", "BOOL", {3}, std::string("\0\1\2", 3)},
      {"w", "U8", {2, 34}, std::string(68, '\1')},
      {"c", "F16", {1, 1, 4, 3}, halves(std::vector<float>(12, 1.0f))},
      {"k", "F32", {1, 1, 2, 3}, bytes_of_values(std::vector<float>(6, 2.5f))},
      {"s", "I32", {1}, bytes_of_values<std::int32_t>({1})},
      {"big", "I64", {2}, bytes_of_values<std::int64_t>({1, std::int64_t{1} << 31})},
  });
  return kInputs;
}

constexpr const char* kDeclared =
    R"("x":{"type":"f32","shape":[3,4]},"h":{"type":"f16","shape":[3,4]},"ids":{"type":"i64","shape":[3]},"flags":{"type":"bool","shape":[3]},)"
    R"("w":{"type":"q8_0","shape":[2,32]},"c":{"type":"f16","shape":[1,1,4,3]},"k":{"type":"f32","shape":[1,1,2,3]},"s":{"type":"i32","shape":[1]},)"
    R"("big":{"type":"i64","shape":[2]})";

/// A file with those inputs.
std::string graph_of(const std::string& nodes, const std::string& outputs = R"("y")") {
  return fmt::format(R"({{"inputs":{{{}}},"nodes":[{}],"outputs":[{}]}})", kDeclared, nodes, outputs);
}
std::string node(const std::string& op, const std::string& node_inputs, const std::string& outputs = R"("y")", const std::string& attributes = "") {
  return fmt::format(R"({{"op":"{}","inputs":{{{}}},"attributes":{{{}}},"outputs":[{}]}})", op, node_inputs, attributes, outputs);
}
std::string relu(const std::string& input, const std::string& output) { return node("relu", "\"input\":\"" + input + "\"", "\"" + output + "\""); }

/// Output `name` after the interpreter, as floats.
std::vector<float> evaluated(const std::string& graph, const std::string& name) {
  Result<GraphFile> file = read(graph, inputs());
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return {};
  const std::vector<GraphFile::Output> outputs = file->outputs;
  const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const GraphFile::Output& output) { return output.name == name; });
  if (found == outputs.end()) return {};
  const graph::Tensor tensor = file->graph.tensor(found->tensor);
  const Result<StorageBytes> after = interpret_graph_file(std::move(*file));
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (!after.ok()) return {};
  const std::vector<std::byte> bytes = dense_elements(tensor, after->at(tensor.storage));
  std::vector<float> values;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.shape.n_elements()); ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i * (tensor.type == graph::Type::kF16 ? 2 : 4), tensor.type == graph::Type::kF16 ? 2 : 4);
    float value = 0;
    std::memcpy(&value, &word, 4);
    values.push_back(tensor.type == graph::Type::kF16 ? graph::half_to_float(static_cast<std::uint16_t>(word)) : tensor.type == graph::Type::kI32 ? static_cast<float>(word) : value);
  }
  return values;
}

using Floats = std::vector<float>;

TEST(GraphFileTest, WidensHalves) { EXPECT_EQ(evaluated(graph_of(node("sub", R"("a":"x","b":"h")")), "y"), Floats(12, 0.0f)); }

TEST(GraphFileTest, TypesAndShapesMayBeTheFiles) {
  const std::string nodes = node("sub", R"("a":"x","b":"h")");
  EXPECT_EQ(evaluated(fmt::format(R"({{"inputs":["x","h"],"nodes":[{}],"outputs":["y"]}})", nodes), "y"), Floats(12, 0.0f));
  EXPECT_EQ(evaluated(fmt::format(R"({{"inputs":{{"x":{{}},"h":{{"shape":[3,4]}}}},"nodes":[{}],"outputs":["y"]}})", nodes), "y"), Floats(12, 0.0f));
  const std::string rows = node("embedding", R"("ids":1,"weight":"w")");
  EXPECT_EQ(evaluated(fmt::format(R"({{"inputs":{{"w":{{"type":"q8_0"}}}},"nodes":[{}],"outputs":["y"]}})", rows), "y"), Floats(32, graph::half_to_float(0x0101)));
}

TEST(GraphFileTest, NumbersAreInputs) {
  EXPECT_EQ(evaluated(graph_of(node("sub", R"("a":"x","b":-0.5)")), "y"), (Floats{0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f, 8.5f, 9.5f, 10.5f, 11.5f}));
  EXPECT_EQ(evaluated(graph_of(node("div", R"("a":1,"b":4)")), "y"), (Floats{0.25f}));
  EXPECT_EQ(evaluated(graph_of(node("embedding", R"("ids":2,"weight":"x")")), "y"), (Floats{8, 9, 10, 11}));
  // Beside halves a number is a half, and does not widen them.
  const Result<GraphFile> file = read(graph_of(node("mul", R"("a":"h","b":2)")), inputs());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->graph.tensor(file->outputs[0].tensor).type, graph::Type::kF16);
  EXPECT_EQ(evaluated(graph_of(node("mul", R"("a":"h","b":2)")), "y"), (Floats{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}));
}

TEST(GraphFileTest, ScalarsAreReadAsOneElement) {
  const std::string file = safetensors_bytes({{"x", "F32", {2}, bytes_of_values<float>({1, 2})}, {"s", "F32", {}, bytes_of_values<float>({0.5f})}});
  const Result<GraphFile> graph = read(R"({"inputs":{"x":{},"s":{"type":"f32","shape":[]}},"nodes":[{"op":"mul","inputs":{"a":"x","b":"s"},"outputs":["y"]}],"outputs":["y"]})", file);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->graph.tensor(graph->outputs[0].tensor).shape, (graph::Shape{2}));
}

TEST(GraphFileTest, WeightsMayBeTransposedInTheFile) {
  // (K, N) = (3, 4): row n of the weight is column n of x.
  const auto transposed = [](const std::string& name) { return fmt::format(R"({{"inputs":{{"{}":{{"layout":"kn"}}}},"nodes":[{{"op":"embedding","inputs":{{"ids":1,"weight":"{}"}},"outputs":["y"]}}],"outputs":["y"]}})", name, name); };
  EXPECT_EQ(evaluated(transposed("x"), "y"), (Floats{1, 5, 9}));
  EXPECT_EQ(evaluated(transposed("h"), "y"), (Floats{1, 5, 9}));
}

TEST(GraphFileTest, InputsMayLieInSeveralFiles) {
  const std::string a = safetensors_bytes({{"x", "F32", {2}, bytes_of_values<float>({1, 2})}, {"unused", "F32", {1}, std::string(4, '\0')}});
  const std::string b = safetensors_bytes({{"w", "F32", {2}, bytes_of_values<float>({3, 4})}, {"unused", "F32", {1}, std::string(4, '\0')}, {"x2", "F64", {3}, std::string(24, '\0')}});
  const auto read_both = [&](const std::string& names) {
    const ByteSource files[] = {source_of(a, "a.safetensors"), source_of(b, "b.safetensors")};
    return read_graph_file(source_of(fmt::format(R"({{"inputs":[{}],"nodes":[{{"op":"add","inputs":{{"a":"x","b":"w"}},"outputs":["y"]}}],"outputs":["y"]}})", names), "g.json"), files);
  };
  EXPECT_TRUE(read_both(R"("x","w")").ok()) << read_both(R"("x","w")").status().message();
  EXPECT_EQ(read_both(R"("x","w","unused")").status().message(), "tensor 'unused' is in a.safetensors and in b.safetensors, an input of g.json");
  EXPECT_EQ(read_both(R"("x","w","x2")").status().message(), "b.safetensors: tensor 'x2' has dtype F64, which no input can have");
  EXPECT_EQ(read_both(R"("x","w","unusde")").status().message(), "a.safetensors, b.safetensors: tensor 'unusde' is missing, an input of g.json; did you mean 'unused'?");
}

TEST(GraphFileTest, OutputsMayBeViewsOfInputs) {
  EXPECT_EQ(evaluated(graph_of(node("transpose", R"("input":"x")", R"("y")", R"("permutation":[1,0])")), "y"), (Floats{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(evaluated(graph_of(node("slice", R"("input":"ids")", R"("y")", R"("starts":[1],"ends":[3])")), "y"), (Floats{2, 1}));
  EXPECT_EQ(evaluated(graph_of(node("reshape", R"("input":"flags")", R"("y")", R"("shape":[3,1])")), "y"), (Floats{0, 1, 1}));
}

TEST(GraphFileTest, StoresAnInputTwiceWhereRolesDiffer) {
  // x x^T: the input of linear is an activation, its weight a matrix.
  const Result<GraphFile> file = read(graph_of(node("linear", R"("input":"x","weight":"x")")), inputs());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->contents.size(), 3U);  // and the step state
  EXPECT_EQ(evaluated(graph_of(node("linear", R"("input":"x","weight":"x")")), "y"), (Floats{14, 38, 62, 38, 126, 214, 62, 214, 366}));
  const Result<GraphFile> once = read(graph_of(node("add", R"("a":"x","b":"x")")), inputs());
  ASSERT_TRUE(once.ok());
  EXPECT_EQ(once->contents.size(), 2U);
}

TEST(GraphFileTest, ReadsBlocksInFileOrder) {
  // Each block: scale 0x0101 as f16, quants 1.
  const float value = graph::half_to_float(0x0101);
  EXPECT_EQ(evaluated(graph_of(node("slice", R"("input":"ids")", R"("i")", R"("starts":[0],"ends":[1])") + "," + node("embedding", R"("ids":"i","weight":"w")")), "y"), Floats(32, value));
}

TEST(GraphFileTest, CachesAreChangedInPlace) {
  const std::string write = node("kv_write", R"("cache":"c","update":"k","start":"s")", "");
  const Floats expected = {1, 1, 1, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 2.5f, 1, 1, 1};
  EXPECT_EQ(evaluated(graph_of(write, R"("c")"), "c"), expected);
  const std::string named = node("kv_write", R"("cache":"c","update":"k","start":"s")", R"("c1")");
  EXPECT_EQ(evaluated(graph_of(named, R"("c1")"), "c1"), expected);
}

/// Blocks of q8_0 for rows of 40: `scale` times quants that differ from row to row, behind the row's end 99.
std::string rows_of_40(std::size_t n_rows, float scale) {
  std::string bytes;
  for (std::size_t i = 0; i < 64 * n_rows; ++i) {
    if (i % 32 == 0) bytes += halves({scale * static_cast<float>(1 + i / 32 % 5)});
    bytes += static_cast<char>(i % 64 < 40 ? static_cast<int>(i * 31 % 255) - 127 : 99);
  }
  return bytes;
}
std::vector<float> dequantised(const std::string& blocks) {
  std::vector<float> values;
  for (std::size_t block = 0; block < blocks.size(); block += 34) {
    std::uint16_t scale = 0;
    std::memcpy(&scale, blocks.data() + block, 2);
    for (std::size_t i = 0; i < (block / 34 % 2 == 0 ? 32 : 8); ++i) values.push_back(graph::half_to_float(scale) * static_cast<float>(static_cast<signed char>(blocks[block + 2 + i])));
  }
  return values;
}

/// x (1, 2, 3, 40) f32; c and v (1, 2, 3, 40) q8_0, d and e f32 of the same values; s (1) i32 = 1.
constexpr const char* kCaches =
    R"({"inputs":{"x":{"type":"f32","shape":[1,2,3,40]},"u":{"type":"f32","shape":[1,2,1,40]},"c":{"type":"q8_0","shape":[1,2,3,40]},"v":{"type":"q8_0","shape":[1,2,3,40]},)"
    R"("d":{"type":"f32","shape":[1,2,3,40]},"e":{"type":"f32","shape":[1,2,3,40]},"s":{"type":"i32","shape":[1]}},)";
std::string cache_file() {
  std::vector<float> x(240), u(80);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < u.size(); ++i) u[i] = 127 - static_cast<float>(i);
  const std::string c = rows_of_40(6, 0.01f), v = rows_of_40(6, 0.03f);
  return safetensors_bytes({{"x", "F32", {1, 2, 3, 40}, bytes_of_values(x)}, {"u", "F32", {1, 2, 1, 40}, bytes_of_values(u)}, {"c", "U8", {1, 2, 3, 68}, c}, {"v", "U8", {1, 2, 3, 68}, v},
                            {"d", "F32", {1, 2, 3, 40}, bytes_of_values(dequantised(c))}, {"e", "F32", {1, 2, 3, 40}, bytes_of_values(dequantised(v))}, {"s", "I32", {1}, bytes_of_values<std::int32_t>({1})}});
}
/// What the file's outputs hold after the interpreter, as a file has them.
std::vector<std::vector<std::byte>> outputs_of(const std::string& nodes_and_outputs, std::vector<std::uint64_t>* shape = nullptr) {
  Result<GraphFile> file = read(kCaches + nodes_and_outputs, cache_file());
  EXPECT_TRUE(file.ok()) << file.status().message();
  if (!file.ok()) return {};
  std::vector<graph::Tensor> tensors;
  for (const GraphFile::Output& output : file->outputs) tensors.push_back(file->graph.tensor(output.tensor));
  const Result<StorageBytes> after = interpret_graph_file(std::move(*file));
  EXPECT_TRUE(after.ok()) << after.status().message();
  if (!after.ok()) return {};
  if (shape) *shape = dense_shape(tensors.front());
  std::vector<std::vector<std::byte>> all;
  for (const graph::Tensor& tensor : tensors) all.push_back(dense_elements(tensor, after->at(tensor.storage)));
  return all;
}

TEST(GraphFileTest, CachesOfBlocksAreChangedInPlace) {
  std::vector<std::uint64_t> shape;
  const auto found = outputs_of(R"("nodes":[{"op":"kv_write","inputs":{"cache":"c","update":"u","start":"s"},"outputs":[]}],"outputs":["c"]})", &shape);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(shape, (std::vector<std::uint64_t>{1, 2, 3, 68}));
  // The rows that are written have whole numbers for quants where the scale is 1, and the nearest ones elsewhere.
  std::string expected = rows_of_40(6, 0.01f);
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t block = 0; block < 2; ++block) {
      const float largest = 127 - static_cast<float>(40 * head + 32 * block);
      const std::uint16_t scale = graph::float_to_half(largest / 127);
      std::string bytes = bytes_of_values(std::vector<std::uint16_t>{scale});
      for (std::size_t i = 0; i < (block == 0 ? 32 : 8); ++i) bytes += static_cast<char>(std::lround((largest - static_cast<float>(i)) / graph::half_to_float(scale)));
      expected.replace((3 * head + 1) * 68 + 34 * block, bytes.size(), bytes);
    }
  }
  for (std::size_t row = 0; row < 6; ++row) expected.replace(68 * row + 44, 24, 24, '\0');
  ASSERT_EQ(found[0].size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(static_cast<char>(found[0][i]), expected[i]) << i;
}

TEST(GraphFileTest, KeysAndValuesOfBlocksAreWhatTheyStandFor) {
  const auto found = outputs_of(R"("nodes":[{"op":"attention","inputs":{"query":"x","key":"c","value":"v"},"outputs":["y"]},)"
                                R"({"op":"attention","inputs":{"query":"x","key":"d","value":"e"},"outputs":["z"]},)"
                                R"({"op":"attention","inputs":{"query":"x","key":"d","value":"d"},"outputs":["other"]}],"outputs":["y","z","other"]})");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NE(found[0], found[2]);
}

TEST(GraphFileTest, WeightsHaveWholeBlocksWhateverTheirRank) {
  const std::string graph = R"({"inputs":{"x":{"type":"f32","shape":[1,1,4,4]},"w":{"type":"q8_0","shape":[1,1,2,2]}},"nodes":[)"
                            R"({"op":"patch_embed","inputs":{"pixels":"x","weight":"w"},"attributes":{"patch":2},"outputs":["y"]}],"outputs":["y"]})";
  const std::string bytes = safetensors_bytes({{"x", "F32", {1, 1, 4, 4}, std::string(64, '\0')}, {"w", "U8", {1, 1, 2, 34}, std::string(68, '\0')}});
  const Result<GraphFile> patches = read(graph, bytes);
  ASSERT_FALSE(patches.ok());
  EXPECT_EQ(patches.status().message(), "g.json: node 0 (patch_embed): input 'weight' is 'w': 'shape' is (1, 1, 2, 2), but rows of q8_0 come in blocks of 32");
}

TEST(GraphFileTest, AViewKeepsWhatItHadWhenItsInputIsChangedLater) {
  const std::string view = node("slice", R"("input":"k")", R"("v")", R"("starts":[0,0,0,0],"ends":[1,1,1,3])");
  const std::string update = node("neg", R"("input":"v")", R"("u")");
  const std::string write = node("kv_write", R"("cache":"k","update":"u","start":"s")", "");
  const std::string all = graph_of(view + "," + update + "," + write, R"("v","k")");
  EXPECT_EQ(evaluated(all, "k"), (Floats{2.5f, 2.5f, 2.5f, -2.5f, -2.5f, -2.5f}));
  // Row 0 is not what is written; a view of row 1 before the write is.
  const std::string row = node("slice", R"("input":"k")", R"("v")", R"("starts":[0,0,1,0],"ends":[1,1,2,3])");
  const std::string late = node("slice", R"("input":"k")", R"("l")", R"("starts":[0,0,1,0],"ends":[1,1,2,3])");
  const std::string both = graph_of(row + "," + update + "," + write + "," + late, R"("v","l")");
  EXPECT_EQ(evaluated(both, "v"), Floats(3, 2.5f));
  EXPECT_EQ(evaluated(both, "l"), Floats(3, -2.5f));
}

TEST(GraphFileTest, NamesOfTypesWithBlocksComeInEitherCase) {
  for (const char* type : {"q4_K", "q4_k", "Q4_K"}) {
    const auto described = parse_graph_description(fmt::format(R"({{"inputs":{{"w":{{"type":"{}","shape":[1,256]}}}},"nodes":[{}],"outputs":["y"]}})", type, relu("w", "y")), "g.json");
    ASSERT_TRUE(described.ok()) << described.status().message();
    EXPECT_EQ(described->inputs.front().type.name, "q4_K");
  }
}

struct Refusal {
  const char* name;
  std::string graph;
  std::string message;
};
void PrintTo(const Refusal& refusal, std::ostream* stream) { *stream << refusal.name; }

class GraphFileRefusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(GraphFileRefusals, NameFileNodeAndField) {
  const rondo::testing::CpuTimer timer;
  const Result<GraphFile> file = read(GetParam().graph, inputs());
  const double seconds = timer.seconds();
  ASSERT_FALSE(file.ok());
  const std::string& message = file.status().message();
  EXPECT_EQ(message.find(GetParam().message), 0U) << message << "\nnot: " << GetParam().message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 500U);
  EXPECT_LT(seconds, 1.0);
}

std::string repeated(const std::string& text, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += text;
  return out;
}

/// One input x with this type and shape, read by relu.
std::string declared(const std::string& input) { return fmt::format(R"({{"inputs":{{"x":{}}},"nodes":[{}],"outputs":["y"]}})", input, relu("x", "y")); }
std::string shaped(const std::string& shape) { return declared(fmt::format(R"({{"type":"f32","shape":{}}})", shape)); }

const std::string kOther = R"("inputs":{"input":"x"},"outputs":["y"])";

INSTANTIATE_TEST_SUITE_P(
    Documents, GraphFileRefusals,
    ::testing::Values(
        Refusal{"Empty", "", "g.json: is not valid JSON"}, Refusal{"Array", "[]", "g.json: is array, expected an object"}, Refusal{"Deep", repeated("[", 100000), "g.json: JSON is nested more than 64 deep"},
        Refusal{"DeepObjects", repeated("{\"a\":", 100000), "g.json: JSON is nested more than 64 deep"}, Refusal{"KeyTwice", R"({"inputs":{},"inputs":{}})", "g.json: JSON has the key 'inputs' twice"},
        Refusal{"InputTwice", R"({"inputs":{"x":{"type":"f32","shape":[1]},"x":{"type":"f32","shape":[1]}}})", "g.json: JSON has the key 'x' twice"},
        Refusal{"NoInputs", "{}", "g.json: 'inputs' is missing"}, Refusal{"NoNodes", R"({"inputs":{}})", "g.json: 'nodes' is missing"},
        Refusal{"NoOutputs", R"({"inputs":{},"nodes":[]})", "g.json: 'outputs' is missing"}, Refusal{"EmptyOutputs", graph_of(relu("x", "y"), ""), "g.json: 'outputs' is empty"},
        Refusal{"Field", R"({"inputs":{},"nodes":[],"outputs":[],"output":[]})", "g.json: field 'output' is unknown, expected inputs, nodes, outputs, note"},
        Refusal{"Note", R"({"inputs":{},"nodes":[],"outputs":[],"note":1})", "g.json: 'note' is 1, expected a string"},
        Refusal{"OutputNumber", graph_of(relu("x", "y"), "1"), "g.json: 'outputs' holds 1, expected names"},
        Refusal{"OutputTwice", graph_of(relu("x", "y"), R"("y","y")"), "g.json: 'outputs' has 'y' twice"},
        Refusal{"OutputOfNobody", graph_of(relu("x", "y"), R"("z")"), "g.json: output 'z' is made by no node"},
        Refusal{"OutputIsInput", graph_of(relu("x", "y"), R"("x")"), "g.json: output 'x' is an input that no node changes"},
        Refusal{"ManyNodes", fmt::format(R"({{"inputs":{{}},"nodes":[{}0],"outputs":[]}})", repeated("0,", 20000)), "g.json: 'nodes' has 20001 nodes, at most 8192"},
        Refusal{"ManyValues", "[" + repeated("0,", 300000) + "0]", "g.json: JSON holds more than 250000 values"}, Refusal{"LongName", "{\"" + std::string(2 << 20, 'n') + "\":1}", "g.json: JSON at byte 1: one token is longer"},
        Refusal{"Large", std::string(17 << 20, ' '), "g.json: has 17825792 bytes, at most 16777216"}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Inputs, GraphFileRefusals,
    ::testing::Values(
        Refusal{"Number", declared("1"), "g.json: input 'x': is number, expected an object"}, Refusal{"Layout", declared(R"({"layout":"km"})"), "g.json: input 'x': layout 'km' is unknown, expected \"nk\" or \"kn\""},
        Refusal{"LayoutOfBlocks", declared(R"({"type":"q8_0","shape":[2,32],"layout":"kn"})"), "g.json: input 'x': 'layout' is kn, but q8_0 comes in blocks along K; only f32, f16 and bf16"},
        Refusal{"LayoutOfARow", declared(R"({"type":"f32","shape":[2],"layout":"kn"})"), "g.json: input 'x': 'layout' is kn, which is (K, N), but 'shape' is (2)"},
        Refusal{"LayoutOfAnActivation", declared(R"({"layout":"kn"})"), "g.json: node 0 (relu): input 'input' is 'x' with layout kn, which is for weights that are matrices"},
        Refusal{"BlocksOfWhat", R"({"inputs":["w"],"nodes":[],"outputs":["w"]})", "in.safetensors: tensor 'w' has dtype U8, which may be blocks of any type; say which"},
        Refusal{"InputTwice", R"({"inputs":["x","x"],"nodes":[],"outputs":["x"]})", "g.json: 'inputs' has 'x' twice"},
        Refusal{"Field", declared(R"({"type":"f32","shape":[1],"strides":[1]})"), "g.json: input 'x': field 'strides' is unknown, expected type, shape, layout"},
        Refusal{"Type", declared(R"({"type":"f64","shape":[1]})"), "g.json: input 'x': type 'f64' is unknown"}, Refusal{"TypeNumber", declared(R"({"type":1,"shape":[1]})"), "g.json: input 'x': 'type' is 1"},
        Refusal{"Scalar", shaped("[]"), "in.safetensors: tensor 'x' is (3, 4), but g.json says ()"}, Refusal{"FiveDimensions", shaped("[1,1,1,1,1]"), "g.json: input 'x': 'shape' has 5 dimensions, expected at most 4"},
        Refusal{"ZeroSized", shaped("[3,0]"), "g.json: input 'x': 'shape' holds 0"}, Refusal{"Negative", shaped("[-1]"), "g.json: input 'x': 'shape' holds -1"},
        Refusal{"Fraction", shaped("[1.5]"), "g.json: input 'x': 'shape' holds 1.5"}, Refusal{"Whole", shaped("[2.0]"), "g.json: input 'x': 'shape' holds 2.0"},
        Refusal{"Huge", shaped("[1e300]"), "g.json: input 'x': 'shape' holds 1e+300"}, Refusal{"Text", shaped(R"(["1"])"), "g.json: input 'x': 'shape' holds \"1\""},
        Refusal{"Product", shaped("[65536,65536]"), "g.json: input 'x': 'shape' has more than 2^31 - 1 elements"},
        Refusal{"WrappingProduct", shaped("[4294967296,4294967296,4]"), "g.json: input 'x': 'shape' has more than 2^31 - 1 elements"},
        Refusal{"LargestExtent", shaped("[18446744073709551615]"), "g.json: input 'x': 'shape' has more than 2^31 - 1 elements"},
        Refusal{"PartOfABlock", declared(R"({"type":"q8_0","shape":[2,33]})"), "g.json: input 'x': 'shape' is (2, 33), but rows of q8_0 come in blocks of 32"},
        Refusal{"Missing", R"({"inputs":{"absent":{"type":"f32","shape":[1]}},"nodes":[{"op":"relu","inputs":{"input":"absent"},"outputs":["y"]}],"outputs":["y"]})",
                "in.safetensors: tensor 'absent' is missing, an input of g.json"},
        Refusal{"MissingThoughUnused", R"({"inputs":{"x":{"type":"f32","shape":[3,4]},"z":{"type":"f32","shape":[1]}},"nodes":[{"op":"relu","inputs":{"input":"x"},"outputs":["y"]}],"outputs":["y"]})",
                "in.safetensors: tensor 'z' is missing"},
        Refusal{"Transposed", shaped("[4,3]"), "in.safetensors: tensor 'x' is (3, 4), but g.json says (4, 3)"}, Refusal{"Flattened", shaped("[12]"), "in.safetensors: tensor 'x' is (3, 4), but g.json says (12)"},
        Refusal{"Dtype", declared(R"({"type":"f16","shape":[3,4]})"), "in.safetensors: tensor 'x' has dtype F32, but g.json says f16, which is stored as F16"},
        Refusal{"BlockBytes", R"({"inputs":{"w":{"type":"q4_0","shape":[2,32]}},"nodes":[{"op":"relu","inputs":{"input":"w"},"outputs":["y"]}],"outputs":["y"]})",
                "in.safetensors: tensor 'w' is (2, 34), but g.json says (2, 32) of q4_0, which is stored as (2, 18)"}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Nodes, GraphFileRefusals,
    ::testing::Values(
        Refusal{"Number", graph_of("1"), "g.json: node 0: is number, expected an object"}, Refusal{"NoOperator", graph_of("{}"), "g.json: node 0: 'op' is missing"},
        Refusal{"Operator", graph_of("{\"op\":\"relux\"," + kOther + "}"), "g.json: node 0: there is no operator 'relux'; did you mean 'relu'?"},
        Refusal{"StepBegin", graph_of(node("step_begin", "")), "g.json: node 0: operator 'step_begin' belongs to sessions"}, Refusal{"Sample", graph_of(node("sample", "")), "g.json: node 0: operator 'sample' belongs"},
        Refusal{"StepEnd", graph_of(node("step_end", "")), "g.json: node 0: operator 'step_end' belongs"}, Refusal{"LinearGlu", graph_of(node("linear_glu", "")), "g.json: node 0: operator 'linear_glu' is made by fusion"},
        Refusal{"RopeKvWrite", graph_of(node("rope_kv_write", "")), "g.json: node 0: operator 'rope_kv_write' is made by fusion"}, Refusal{"Copy", graph_of(node("copy", "")), "g.json: node 0: operator 'copy' is made"},
        Refusal{"Field", graph_of("{\"op\":\"relu\",\"type\":\"a\"," + kOther + "}"), "g.json: node 0 (relu): field 'type' is unknown"},
        Refusal{"Named", graph_of("{\"op\":\"relu\",\"name\":\"first\",\"inputs\":{\"input\":\"flag\"},\"outputs\":[\"y\"]}"), "g.json: node 0 \"first\" (relu): input 'input' is 'flag', which is neither an input of the graph nor made by a node; did you mean 'flags'?"},
        Refusal{"Noted", graph_of("{\"op\":\"relu\",\"note\":\"as in the paper\",\"inputs\":{\"input\":\"w\"},\"outputs\":[\"y\"]}"), "g.json: node 0 \"as in the paper\" (relu): input 'input' is 'w' of type q8_0"},
        Refusal{"NumberForAWeight", graph_of(node("linear", R"("input":"x","weight":2)")), "g.json: node 0 (linear): input 'weight' is 2 but must be a tensor"},
        Refusal{"FractionForIds", graph_of(node("embedding", R"("ids":1.5,"weight":"x")")), "g.json: node 0 (embedding): input 'ids' is 1.5 but must be an integer of 32 bits"},
        Refusal{"NumberOutside", graph_of(node("embedding", R"("ids":3,"weight":"x")")), "g.json: node 0 (embedding): input 'ids' (3) holds 3, outside [0, 2]"},
        Refusal{"NumberBeyondF32", graph_of(node("add", R"("a":"x","b":1e39)")), "g.json: node 0 (add): input 'b' is 1e+39, beyond f32"},
        Refusal{"NoNodeInputs", graph_of(R"({"op":"relu","outputs":["y"]})"), "g.json: node 0 (relu): 'inputs' is missing"},
        Refusal{"NoNodeOutputs", graph_of(R"({"op":"relu","inputs":{"input":"x"}})"), "g.json: node 0 (relu): 'outputs' is missing"},
        Refusal{"InputList", graph_of(node("relu", R"("input":[1])")), "g.json: node 0 (relu): input 'input' is array, expected the name of a tensor or a number"},
        Refusal{"InputOfNobody", graph_of(relu("z", "y")), "g.json: node 0 (relu): input 'input' is 'z', which is neither"},
        Refusal{"Cycle", graph_of(relu("b", "a") + "," + relu("a", "b"), R"("b")"), "g.json: node 0 (relu): input 'input' is 'b', which node 1 makes later: a cycle"},
        Refusal{"OwnOutput", graph_of(relu("y", "y")), "g.json: node 0 (relu): input 'input' is 'y', which is its own output: a cycle"},
        Refusal{"OutputTwice", graph_of(relu("x", "y") + "," + relu("x", "y")), "g.json: node 1 (relu): output 'y' is already made by node 0"},
        Refusal{"OutputLikeAnInput", graph_of(relu("x", "h")), "g.json: node 0 (relu): output 'h' has the name of an input"},
        Refusal{"TooManyOutputs", graph_of(node("relu", R"("input":"x")", R"("y","z")")), "g.json: node 0 (relu): 'outputs' has 2 names, but the operator has 1 outputs"},
        Refusal{"TooFewOutputs", graph_of(node("top_k", R"("input":"x")", R"("y")", R"("k":1)")), "g.json: node 0 (top_k): 'outputs' has 1 names, but the operator has 2"},
        Refusal{"UnknownInput", graph_of(node("relu", R"("input":"x","other":"x")")), "g.json: node 0 (relu): has no input 'other'"},
        Refusal{"MissingInput", graph_of(relu("x", "z") + "," + node("add", R"("a":"z")")), "g.json: node 1 (add): input 'b' is missing"},
        Refusal{"UnknownAttribute", graph_of(node("softmax", R"("input":"x")", R"("y")", R"("axes":1)")), "g.json: node 0 (softmax): has no attribute 'axes'"},
        Refusal{"AttributeNull", graph_of(node("softmax", R"("input":"x")", R"("y")", R"("axis":null)")), "g.json: node 0 (softmax): attribute 'axis' is null"},
        Refusal{"AttributeObject", graph_of(node("softmax", R"("input":"x")", R"("y")", R"("axis":{})")), "g.json: node 0 (softmax): attribute 'axis' is object"},
        Refusal{"AttributeHuge", graph_of(node("softmax", R"("input":"x")", R"("y")", R"("scale":1e300)")), "g.json: node 0 (softmax): attribute 'scale' must be a number that fits f32"},
        Refusal{"AttributeLarge", graph_of(node("top_k", R"("input":"x")", R"("y")", R"("k":18446744073709551615)")), "g.json: node 0 (top_k): attribute 'k' must be an integer"},
        Refusal{"FractionInAList", graph_of(node("reshape", R"("input":"x")", R"("y")", R"("shape":[1.5,8])")), "g.json: node 0 (reshape): attribute 'shape' holds 1.5"},
        Refusal{"ReshapedProduct", graph_of(node("reshape", R"("input":"x")", R"("y")", R"("shape":[2147483647,2147483647])")), "g.json: node 0 (reshape): attribute 'shape' must have extents"},
        Refusal{"EmptySlice", graph_of(node("slice", R"("input":"x")", R"("y")", R"("starts":[0,2],"ends":[3,2])")), "g.json: node 0 (slice): x (3, 4)"},
        Refusal{"Rank", graph_of(node("rope", R"("input":"x","positions":"ids")")), "g.json: node 0 (rope): input is (3, 4) but must have 4 dimensions"},
        Refusal{"HugeTables", graph_of(node("rope", R"("input":"k","positions":"s")", R"("y")", R"("max_position":2147483648)")), "g.json: node 0 (rope): attribute 'max_position' must be"},
        Refusal{"HugePadding", graph_of(node("pad", R"("input":"x")", R"("y")", R"("after":[2147483647,2147483647])")), "g.json: node 0 (pad): "}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Roles, GraphFileRefusals,
    ::testing::Values(
        Refusal{"BlocksAsActivation", graph_of(relu("w", "y")), "g.json: node 0 (relu): input 'input' is 'w' of type q8_0 but must be f32, f16 or bf16"},
        Refusal{"IntegersAsActivation", graph_of(relu("ids", "y")), "g.json: node 0 (relu): input 'input' is 'ids' of type i64 but must be f32, f16 or bf16"},
        Refusal{"BlocksAsView", graph_of(node("reshape", R"("input":"w")", R"("y")", R"("shape":[64])")), "g.json: node 0 (reshape): input 'input' is 'w' of type q8_0"},
        Refusal{"FloatsAsIntegers", graph_of(node("embedding", R"("ids":"x","weight":"x")")), "g.json: node 0 (embedding): input 'ids' is 'x' of type f32 but must be i32 or i64"},
        Refusal{"BoolsAsIntegers", graph_of(node("embedding", R"("ids":"flags","weight":"x")")), "g.json: node 0 (embedding): input 'ids' is 'flags' of type bool"},
        Refusal{"IntegersAsMask", graph_of(node("softmax", R"("input":"x","mask":"ids")")), "g.json: node 0 (softmax): input 'mask' is 'ids' of type i64 but must be bool"},
        Refusal{"IntegersAsWeight", graph_of(node("linear", R"("input":"x","weight":"ids")")), "g.json: node 0 (linear): input 'weight' is 'ids' of type i64"},
        Refusal{"BlocksAsParameter", graph_of(node("rms_norm", R"("input":"x","weight":"w")")), "g.json: node 0 (rms_norm): input 'weight' is 'w' of type q8_0"},
        Refusal{"WeightRank", graph_of(node("linear", R"("input":"x","weight":"k")")), "g.json: node 0 (linear): input 'weight' is 'k': (1, 1, 2, 3) must be (N, K)"},
        Refusal{"PatchWeight", graph_of(node("patch_embed", R"("pixels":"k","weight":"k")", R"("y")", R"("patch":1)")), "g.json: node 0 (patch_embed): input 'weight' is 'k': (1, 1, 2, 3) must be (D, C, P, P)"},
        Refusal{"FlatKeys", graph_of(node("attention", R"("query":"k","key":"w","value":"k")")), "g.json: node 0 (attention): input 'key' is 'w': (2, 32) of q8_0 must be (B, G, S, D)"},
        Refusal{"IntegersAsCache", graph_of(node("kv_write", R"("cache":"ids","update":"k","start":"s")")), "g.json: node 0 (kv_write): input 'cache' is 'ids' of type i64 but must be f32, f16 or q8_0"},
        Refusal{"MadeCache", graph_of(relu("k", "m") + "," + node("kv_write", R"("cache":"m","update":"k","start":"s")", ""), R"("m")"), "g.json: node 1 (kv_write): input 'cache' is 'm', which a node makes"},
        Refusal{"ChangedAndWidened", graph_of(node("kv_write", R"("cache":"c","update":"k","start":"s")", "") + "," + relu("c", "y")), "g.json: node 1 (relu): input 'input' is 'c' of type f16, but a kv_write changes it"},
        Refusal{"TwoCacheNames", graph_of(node("kv_write", R"("cache":"c","update":"k","start":"s")", R"("a","b")"), R"("a")"), "g.json: node 0 (kv_write): 'outputs' has 2 names, but there is one cache"},
        Refusal{"WideConstant", graph_of(node("rope", R"("input":"k","positions":"ids","frequency_factors":"x")")), "g.json: node 0 (rope): input 'frequency_factors' is 'x': (3, 4) must have one dimension"}),
    [](const auto& test) { return std::string(test.param.name); });

/// Integers outside of what they count. `x` has 3 rows.
std::string integers_file(const std::string& dtype, const std::string& bytes, std::uint64_t n) {
  return safetensors_bytes({{"x", "F32", {3, 4}, std::string(48, '\0')}, {"k", "F32", {1, 1, 4, 2}, std::string(32, '\0')}, {"i", dtype, {n}, bytes}});
}
std::string integers_graph(const std::string& one_node, const std::string& outputs = R"("y")", std::size_t n = 1) {
  return fmt::format(R"({{"inputs":{{"x":{{"type":"f32","shape":[3,4]}},"k":{{"type":"f32","shape":[1,1,4,2]}},"i":{{"type":"i64","shape":[{}]}}}},"nodes":[{}],"outputs":[{}]}})", n, one_node, outputs);
}
std::string refused_integers(const std::string& graph, const std::vector<std::int64_t>& values) {
  const Result<GraphFile> file = read(graph, integers_file("I64", bytes_of_values(values), values.size()));
  return file.ok() ? "" : file.status().message();
}

TEST(GraphFileTest, RefusesIntegersOutsideOfWhatTheyCount) {
  const std::string embed = integers_graph(node("embedding", R"("ids":"i","weight":"x")"));
  EXPECT_EQ(refused_integers(embed, {2}), "");
  EXPECT_EQ(refused_integers(embed, {3}), "g.json: node 0 (embedding): input 'ids' (i) holds 3, outside [0, 2]");
  EXPECT_EQ(refused_integers(embed, {-1}), "g.json: node 0 (embedding): input 'ids' (i) holds -1, outside [0, 2]");
  EXPECT_EQ(refused_integers(embed, {std::int64_t{1} << 32}), "in.safetensors: tensor 'i' holds 4294967296, beyond 32 bits");
  const std::string sliced = integers_graph(node("slice", R"("input":"i")", R"("s")", R"("starts":[1],"ends":[2])") + "," + node("embedding", R"("ids":"s","weight":"x")"), R"("y")", 2);
  EXPECT_EQ(refused_integers(sliced, {7, 0}), "");
  EXPECT_EQ(refused_integers(sliced, {0, 7}), "g.json: node 1 (embedding): input 'ids' (i) holds 7, outside [0, 2]");
  const std::string rope = integers_graph(node("rope", R"("input":"k","positions":"i")", R"("y")", R"("max_position":10)"), R"("y")", 4);
  EXPECT_EQ(refused_integers(rope, {0, 1, 9, 9}), "");
  EXPECT_EQ(refused_integers(rope, {0, 1, 9, 10}), "g.json: node 0 (rope): input 'positions' (i) holds 10, outside [0, 9]");
  const std::string lengths = integers_graph(node("attention", R"("query":"k","key":"k","value":"k","lengths":"i")"));
  EXPECT_EQ(refused_integers(lengths, {4}), "");
  EXPECT_EQ(refused_integers(lengths, {5}), "g.json: node 0 (attention): input 'lengths' (i) holds 5, outside [0, 4]");
  const std::string offset = integers_graph(node("attention", R"("query":"k","key":"k","value":"k","query_offset":"i")"));
  EXPECT_EQ(refused_integers(offset, {-3}), "");
  EXPECT_NE(refused_integers(offset, {std::int64_t{1} << 30}), "");
  const std::string row = node("slice", R"("input":"k")", R"("u")", R"("starts":[0,0,0,0],"ends":[1,1,2,2])");
  const std::string start = integers_graph(row + "," + node("kv_write", R"("cache":"k","update":"u","start":"i")", ""), R"("k")");
  EXPECT_EQ(refused_integers(start, {2}), "");
  EXPECT_EQ(refused_integers(start, {3}), "g.json: node 1 (kv_write): writes rows 3 to 4 of sequence 0, but the cache has 4");
  EXPECT_EQ(refused_integers(start, {-1}), "g.json: node 1 (kv_write): input 'start' (i) holds -1, outside [0, 4]");
}

TEST(GraphFileTest, RefusesSafetensorsThatLie) {
  const std::string graph = shaped("[3,4]");
  const std::string whole = safetensors_bytes({{"x", "F32", {3, 4}, std::string(48, '\0')}});
  ASSERT_TRUE(read(graph, whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<GraphFile> cut = read(graph, whole.substr(0, size));
    ASSERT_FALSE(cut.ok()) << size;
    EXPECT_EQ(cut.status().message().find("in.safetensors: "), 0U) << cut.status().message();
  }
  EXPECT_FALSE(read(graph, safetensors_bytes({{"x", "F32", {3, 4}, std::string(44, '\0')}})).ok());
  EXPECT_FALSE(read(graph, safetensors_bytes({{"x", "F32", {3, 4}, std::string(48, '\0')}, {"x", "F32", {3, 4}, std::string(48, '\0')}})).ok());
}

TEST(GraphFileTest, BoundsTheTablesOfAllNodesTogether) {
  const std::string input = safetensors_bytes({{"x", "F32", {1, 1, 1, 256}, std::string(1024, '\0')}, {"p", "I32", {1}, std::string(4, '\0')}});
  const auto refused = [&](std::int64_t positions, int nodes) {
    std::string all;
    for (int i = 0; i < nodes; ++i) {
      all += fmt::format(R"({}{{"op":"rope","inputs":{{"input":"x","positions":"p"}},"attributes":{{"max_position":{},"theta":{}}},"outputs":["y{}"]}})", i == 0 ? "" : ",", positions, i + 2, i);
    }
    const Result<GraphFile> file = read(fmt::format(R"({{"inputs":{{"x":{{"type":"f32","shape":[1,1,1,256]}},"p":{{"type":"i32","shape":[1]}}}},"nodes":[{}],"outputs":["y0"]}})", all), input);
    return file.ok() ? "" : file.status().message();
  };
  EXPECT_EQ(refused(131072, 2), "");
  EXPECT_EQ(refused(131072, 30), "g.json: node 15 (rope): needs tables of 34603008 bytes with the nodes before it, at most 33554432 are there");
  EXPECT_EQ(refused(1 << 24, 1), "g.json: node 0 (rope): needs tables of 268500992 bytes with the nodes before it, at most 33554432 are there");
}

TEST(GraphFileTest, ATableOfAWideHeadIsRefusedBeforeItIsMade) {
  // The width is a padded one: no input is large.
  const std::string inputs = R"("x":{"type":"f32","shape":[1,1,1,2]},"p":{"type":"i32","shape":[1]})";
  const std::string file = safetensors_bytes({{"x", "F32", {1, 1, 1, 2}, std::string(8, '\0')}, {"p", "I32", {1}, std::string(4, '\0')}});
  const auto padded = [&](std::int64_t width, const std::string& attributes) {
    const std::string nodes = node("pad", R"("input":"x")", R"("w")", fmt::format(R"("after":[0,0,0,{}])", width - 2)) + "," + node("rope", R"("input":"w","positions":"p")", R"("y")", attributes);
    const Result<GraphFile> read_file = read(fmt::format(R"({{"inputs":{{{}}},"nodes":[{}],"outputs":["y"]}})", inputs, nodes), file);
    return read_file.ok() ? "" : read_file.status().message();
  };
  EXPECT_EQ(padded(1 << 30, ""), "g.json: node 1 (rope): needs tables of 9070970929152 bytes with the nodes before it, at most 33554432 are there");
  EXPECT_EQ(padded(1 << 16, R"("max_position":1048576)"), "g.json: node 1 (rope): needs tables of 4311744512 bytes with the nodes before it, at most 33554432 are there");
  EXPECT_EQ(padded(1 << 20, R"("dimensions":64)"), "");
}

TEST(GraphFileTest, ATableThatNodesShareCountsOnce) {
  const std::string file = safetensors_bytes({{"x", "F32", {1, 1, 1, 2048}, std::string(8192, '\0')}, {"p", "I32", {1}, std::string(4, '\0')}});
  std::string nodes;
  for (int i = 0; i < 4; ++i) nodes += std::string(i == 0 ? "" : ",") + node("rope", R"("input":"x","positions":"p")", fmt::format("\"y{}\"", i), "");
  const Result<GraphFile> read_file = read(fmt::format(R"({{"inputs":{{"x":{{"type":"f32","shape":[1,1,1,2048]}},"p":{{"type":"i32","shape":[1]}}}},"nodes":[{}],"outputs":["y3"]}})", nodes), file);
  EXPECT_TRUE(read_file.ok()) << read_file.status().message();
}

TEST(GraphFileTest, NoInputIsTakenForATable) {
  const char* name = "rope table n=4 theta=10000 factors=-1 positions=131072";
  const std::string file = safetensors_bytes({{name, "F32", {1, 1, 1, 4}, bytes_of_values<float>({1, 2, 3, 4})}, {"p", "I32", {1}, std::string(4, '\0')}});
  const std::string rope = node("rope", fmt::format(R"("input":"{}","positions":"p")", name));
  Result<GraphFile> read_file = read(fmt::format(R"({{"inputs":{{"{}":{{"type":"f32","shape":[1,1,1,4]}},"p":{{"type":"i32","shape":[1]}}}},"nodes":[{}],"outputs":["y"]}})", name, rope), file);
  ASSERT_TRUE(read_file.ok()) << read_file.status().message();
  const graph::TensorId table = read_file->graph.nodes().front().inputs.back();
  EXPECT_EQ(read_file->graph.storage_of(table).kind, graph::StorageKind::kConstant);
}

TEST(GraphFileTest, TheStateBlockHasARowForEachSequenceOfAnyNode) {
  const std::string file = safetensors_bytes({{"x", "F32", {5, 1, 2, 2}, std::string(80, '\0')}});
  const Result<GraphFile> read_file = read(fmt::format(R"({{"inputs":{{"x":{{"type":"f32","shape":[5,1,2,2]}}}},"nodes":[{}],"outputs":["y"]}})", node("attention", R"("query":"x","key":"x","value":"x")")), file);
  ASSERT_TRUE(read_file.ok()) << read_file.status().message();
  EXPECT_EQ(read_file->graph.n_sequences, 5);
  EXPECT_EQ(read_file->contents.at(read_file->graph.state).size(), 5U * 64 * 4);
}

}  // namespace
}  // namespace rondo::models::graph_file_test
