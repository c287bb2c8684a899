// rondo eval --graph: what comes out of every kind of output, on the device, without fusion and by reference; and what is
// refused, in one line, quickly, in little memory and without touching what is there.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/float16.h"
#include "models/formats/safetensors.h"
#include "tests/support/command_runner.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/test_data.h"

namespace rondo::eval_graph_test {
namespace {

using models::SafetensorsDtype;
using testing::Arguments;
using testing::bytes_of_values;
using testing::CommandInput;
using testing::CommandResult;
using testing::expect_error;
using testing::FileTensor;
using testing::TemporaryFolder;

std::vector<float> wave(std::size_t n, float step) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = std::sin(step * static_cast<float>(i) + 0.3f);
  return values;
}

std::string halves(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits;
  for (float value : values) bits.push_back(graph::float_to_half(value));
  return bytes_of_values(bits);
}

CommandResult evaluate(const TemporaryFolder& folder, const Arguments& more = {}) {
  Arguments all = {"eval", "--graph", folder.path("g.json"), "--inputs", folder.path("in.safetensors"), "--outputs", folder.path("out.safetensors")};
  all.insert(all.end(), more.begin(), more.end());
  return testing::run_device_command(all);
}

/// It was refused because the device has no activations in f16.
bool lacks_storage16(const CommandResult& result) { return result.exit_status == 1 && result.err.find("storageBuffer16BitAccess") != std::string::npos; }

/// On the CPU, where Vulkan finds no driver.
CommandResult evaluate_reference(const TemporaryFolder& folder) {
  CommandInput input;
  input.arguments = {"eval", "--graph", folder.path("g.json"), "--inputs", folder.path("in.safetensors"), "--outputs", folder.path("out.safetensors"), "--reference"};
  input.environment = {{"VK_ICD_FILENAMES", "/nonexistent"}, {"VK_DRIVER_FILES", "/nonexistent"}};
  return testing::run_command(input);
}

struct Output {
  SafetensorsDtype dtype;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

std::map<std::string, Output> read_outputs(const TemporaryFolder& folder) {
  const auto source = open_file(folder.path("out.safetensors"));
  if (!source.ok()) {
    ADD_FAILURE() << source.status().message();
    return {};
  }
  const auto file = models::SafetensorsFile::parse(*source);
  if (!file.ok()) {
    ADD_FAILURE() << file.status().message();
    return {};
  }
  std::map<std::string, Output> outputs;
  for (const models::SafetensorsEntry& entry : file->entries()) {
    Output& output = outputs[entry.name];
    output = {entry.dtype, entry.shape, {}};
    if (entry.dtype == SafetensorsDtype::kU8) {
      std::vector<std::byte> bytes(entry.size_bytes);
      EXPECT_TRUE(source->read(entry.offset_bytes, bytes).ok());
      for (const std::byte byte : bytes) output.values.push_back(static_cast<float>(byte));
    } else if (entry.dtype == SafetensorsDtype::kI32) {
      const std::vector<std::int64_t> values = file->read_i64(*source, entry.name).value();
      output.values.assign(values.begin(), values.end());
    } else {
      output.values = file->read_f32(*source, entry.name).value();
    }
  }
  return outputs;
}

/// Normalised mean squared error.
double error_of(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return INFINITY;
  double difference = 0, power = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = expected[i], d = found[i] - e;
    difference += d * d;
    power += e * e;
  }
  return power > 0 ? difference / power : difference;
}

/// A step of attention: q, k and v in one tensor, RoPE, both caches written in place (f16, rows of 6), attention, a linear of
/// q8_0 with the input as residual, GLU of bf16 and f32 weights, the best output and views. With `f16` so is x.
void write_layer(const TemporaryFolder& folder, bool f16 = false) {
  std::string q8;
  for (int block = 0; block < 12; ++block) {
    q8 += halves({0.01f * static_cast<float>(block + 1)});
    for (int i = 0; i < 32; ++i) q8 += static_cast<char>(i * 7 % 23 - 11);
  }
  std::vector<std::uint16_t> upper;
  for (float value : wave(8 * 12, 0.7f)) upper.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  folder.write("in.safetensors",
               testing::safetensors_bytes({{"x", f16 ? "F16" : "F32", {1, 3, 32}, f16 ? halves(wave(96, 0.37f)) : bytes_of_values(wave(96, 0.37f))},
                                           {"wqkv", "F32", {24, 32}, bytes_of_values(wave(24 * 32, 0.11f))},
                                           {"wo", "U8", {12, 34}, q8},
                                           {"wa", "BF16", {8, 12}, bytes_of_values(upper)},
                                           {"wb", "F32", {8, 12}, bytes_of_values(wave(8 * 12, 0.9f))},
                                           {"residual", "F32", {1, 3, 12}, bytes_of_values(wave(36, 0.5f))},
                                           {"positions", "I64", {3}, bytes_of_values<std::int64_t>({4, 5, 6})},
                                           {"start", "I32", {1}, bytes_of_values<std::int32_t>({4})},
                                           {"lengths", "I32", {1}, bytes_of_values<std::int32_t>({7})},
                                           {"kc", "F16", {1, 2, 9, 5}, halves(wave(90, 0.21f))},
                                           {"vc", "F16", {1, 2, 9, 5}, halves(wave(90, 0.23f))}}));
  const auto heads = [](const std::string& name, int first, int width) {
    return R"({"op":"slice","inputs":{"input":"qkv"},"attributes":{"starts":[0,0,)" + std::to_string(first) + R"(],"ends":[1,3,)" + std::to_string(first + 2 * width) +
           R"(]},"outputs":[")" + name + R"(0"]},{"op":"reshape","inputs":{"input":")" + name + R"(0"},"attributes":{"shape":[1,3,2,)" + std::to_string(width) + R"(]},"outputs":[")" + name +
           R"(1"]},{"op":"transpose","inputs":{"input":")" + name + R"(1"},"attributes":{"permutation":[0,2,1,3]},"outputs":[")" + name + R"(2"]},)";
  };
  // Heads of 4 in q and k, of 5 in the caches: padded, so that the values' rows are odd.
  folder.write(
      "g.json",
      R"({"note":"a layer","inputs":{"x":{"type":")" + std::string(f16 ? "f16" : "f32") +
          std::string(R"(","shape":[1,3,32]},"wqkv":{"type":"f32","shape":[24,32]},"wo":{"type":"q8_0","shape":[12,32]},)"
                  R"("wa":{"type":"bf16","shape":[8,12]},"wb":{"type":"f32","shape":[8,12]},"residual":{"type":"f32","shape":[1,3,12]},"positions":{"type":"i64","shape":[3]},)"
                  R"("start":{"type":"i32","shape":[1]},"lengths":{"type":"i32","shape":[1]},"kc":{"type":"f16","shape":[1,2,9,5]},"vc":{"type":"f16","shape":[1,2,9,5]}},"nodes":[)"
                  R"({"op":"linear","inputs":{"input":"x","weight":"wqkv"},"outputs":["qkv"]},)") +
          heads("q", 0, 4) + heads("k", 8, 4) + heads("v", 16, 4) +
          R"({"op":"rope","inputs":{"input":"q2","positions":"positions"},"outputs":["q3"]},{"op":"rope","inputs":{"input":"k2","positions":"positions"},"outputs":["k3"]},)"
          R"({"op":"pad","inputs":{"input":"q3"},"attributes":{"after":[0,0,0,1]},"outputs":["q4"]},{"op":"pad","inputs":{"input":"k3"},"attributes":{"after":[0,0,0,1]},"outputs":["k4"]},)"
          R"({"op":"pad","inputs":{"input":"v2"},"attributes":{"after":[0,0,0,1],"value":0.5},"outputs":["v4"]},)"
          R"({"op":"kv_write","inputs":{"cache":"kc","update":"k4","start":"start"},"outputs":["kc1"]},{"op":"kv_write","inputs":{"cache":"vc","update":"v4","start":"start"},"outputs":[]},)"
          R"({"op":"attention","inputs":{"query":"q4","key":"kc1","value":"vc","query_offset":"start","lengths":"lengths"},"attributes":{"causal":true},"outputs":["a"]},)"
          R"({"op":"linear","inputs":{"input":"x","weight":"wo"},"outputs":["o"]},{"op":"add","inputs":{"a":"residual","b":"o"},"outputs":["r"]},)"
          R"({"op":"linear","inputs":{"input":"r","weight":"wa"},"attributes":{"activation":"gelu"},"outputs":["ga"]},{"op":"linear","inputs":{"input":"r","weight":"wb"},"outputs":["gb"]},)"
          R"({"op":"glu","inputs":{"gate":"ga","up":"gb"},"outputs":["g"]},{"op":"argmax","inputs":{"input":"g"},"outputs":["best"]},)"
          R"({"op":"transpose","inputs":{"input":"g"},"attributes":{"permutation":[2,0,1]},"outputs":["gt"]},)"
          R"({"op":"slice","inputs":{"input":"positions"},"attributes":{"starts":[1],"ends":[3]},"outputs":["later"]}],)"
          R"("outputs":["g","gt","best","later","a","kc","vc","kc1"]})");
}

TEST(EvalGraphTest, DeviceFusedOrNotAgreesWithTheReference) {
  const TemporaryFolder folder;
  write_layer(folder);
  testing::expect_done(evaluate_reference(folder));
  const std::map<std::string, Output> expected = read_outputs(folder);
  ASSERT_EQ(expected.size(), 8U);
  EXPECT_EQ(expected.at("g").shape, (std::vector<std::uint64_t>{1, 3, 8}));
  EXPECT_EQ(expected.at("gt").shape, (std::vector<std::uint64_t>{8, 1, 3}));
  EXPECT_EQ(expected.at("gt").values[1], expected.at("g").values[8]);
  EXPECT_EQ(expected.at("best").dtype, SafetensorsDtype::kI32);
  EXPECT_EQ(expected.at("later").values, (std::vector<float>{5, 6}));
  EXPECT_EQ(expected.at("kc").dtype, SafetensorsDtype::kF16);
  EXPECT_EQ(expected.at("kc").shape, (std::vector<std::uint64_t>{1, 2, 9, 5}));
  EXPECT_EQ(expected.at("kc").values, expected.at("kc1").values);
  EXPECT_EQ(expected.at("vc").values[4 * 5 + 4], 0.5f);  // the first row written, its padding
  EXPECT_EQ(expected.at("vc").values[3 * 5], graph::half_to_float(graph::float_to_half(wave(90, 0.23f)[15])));
  for (const Arguments& flags : {Arguments{}, {"--no-fusion"}, {"--segment-us", "0.001"}, {"--kernel", "linear=vector"}, {"--kernel", "attention=tiled"}, {"--as", "baseline"}}) {
    const CommandResult result = evaluate(folder, flags);
    testing::expect_done(result);
    EXPECT_EQ(result.out, "");
    const std::map<std::string, Output> found = read_outputs(folder);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [name, output] : expected) {
      EXPECT_EQ(found.at(name).dtype, output.dtype) << name;
      EXPECT_EQ(found.at(name).shape, output.shape) << name;
      // f16 keys of the device may round the other way: 1e-6 as for all f16 values.
      EXPECT_LT(error_of(found.at(name).values, output.values), name == "g" || name == "gt" ? 1e-11 : 1e-6) << name << (flags.empty() ? "" : " " + flags[0]);
    }
  }
}

/// The layer with x in f16: so is all that is made of it alone, and what meets the residual in f32 is f32.
TEST(EvalGraphTest, ActivationsInF16) {
  const TemporaryFolder folder;
  write_layer(folder, true);
  if (lacks_storage16(evaluate(folder))) GTEST_SKIP() << "no 16-bit storage";
  testing::expect_done(evaluate_reference(folder));
  const std::map<std::string, Output> expected = read_outputs(folder);
  EXPECT_EQ(expected.at("a").dtype, SafetensorsDtype::kF16);
  EXPECT_EQ(expected.at("g").dtype, SafetensorsDtype::kF32);
  for (const Arguments& flags : {Arguments{}, {"--no-fusion"}, {"--kernel", "linear=vector"}, {"--kernel", "linear=tiled"}, {"--kernel", "attention=tiled"}, {"--kernel", "attention=split"}}) {
    testing::expect_done(evaluate(folder, flags));
    const std::map<std::string, Output> found = read_outputs(folder);
    for (const auto& [name, output] : expected) {
      EXPECT_EQ(found.at(name).dtype, output.dtype) << name;
      EXPECT_LT(error_of(found.at(name).values, output.values), 1e-6) << name << (flags.empty() ? "" : " " + flags[1]);
    }
  }
  expect_error(evaluate(folder, {"--kernel", "linear=wide"}), 1, {"[linear]", "'wide'", "activations in f32"});
  expect_error(evaluate(folder, {"--as", "baseline"}), 1, {"[linear]", "activations in f16", "storageBuffer16BitAccess"});
}

/// A mask, a weight and keys that are views of f16 inputs are read as they must be.
TEST(EvalGraphTest, ViewsOfF16Inputs) {
  const TemporaryFolder folder;
  folder.write("in.safetensors", testing::safetensors_bytes({{"x", "F32", {1, 2, 3, 7}, bytes_of_values(wave(42, 0.37f))},
                                                             {"k", "F16", {1, 9, 2, 8}, halves(wave(144, 0.71f))},
                                                             {"w", "F16", {7, 2}, halves(wave(14, 0.3f))},
                                                             {"m", "F16", {9, 3}, halves(wave(27, 0.2f))}}));
  folder.write("g.json", R"({"inputs":{"x":{"type":"f32","shape":[1,2,3,7]},"k":{"type":"f16","shape":[1,9,2,8]},"w":{"type":"f16","shape":[7,2]},"m":{"type":"f16","shape":[9,3]}},"nodes":[)"
                         R"({"op":"slice","inputs":{"input":"w"},"attributes":{"starts":[0,1],"ends":[7,2]},"outputs":["w1"]},{"op":"reshape","inputs":{"input":"w1"},"attributes":{"shape":[7]},"outputs":["w2"]},)"
                         R"({"op":"rms_norm","inputs":{"input":"x","weight":"w2"},"outputs":["q"]},{"op":"transpose","inputs":{"input":"m"},"attributes":{"permutation":[1,0]},"outputs":["m1"]},)"
                         R"({"op":"reshape","inputs":{"input":"m1"},"attributes":{"shape":[1,1,3,9]},"outputs":["m2"]},{"op":"transpose","inputs":{"input":"k"},"attributes":{"permutation":[0,2,1,3]},"outputs":["k1"]},)"
                         R"({"op":"slice","inputs":{"input":"k1"},"attributes":{"starts":[0,0,0,0],"ends":[1,2,9,7]},"outputs":["k2"]},)"
                         R"({"op":"attention","inputs":{"query":"q","key":"k2","value":"k1","mask":"m2"},"outputs":["y"]}],"outputs":["y"]})");
  testing::expect_done(evaluate_reference(folder));
  const Output expected = read_outputs(folder).at("y");
  EXPECT_EQ(expected.shape, (std::vector<std::uint64_t>{1, 2, 3, 8}));
  if (lacks_storage16(evaluate(folder))) GTEST_SKIP() << "no 16-bit storage";  // the transposed mask is reshaped, which takes a copy
  for (const Arguments& flags : {Arguments{}, {"--no-fusion"}}) {
    testing::expect_done(evaluate(folder, flags));
    EXPECT_LT(error_of(read_outputs(folder).at("y").values, expected.values), 1e-10);
  }
}

TEST(EvalGraphTest, ABoundRejectsWhatAnotherWeightGives) {
  const TemporaryFolder folder;
  write_layer(folder);
  testing::expect_done(evaluate_reference(folder));
  const std::vector<float> expected = read_outputs(folder).at("g").values;
  std::string graph = testing::read_whole_file(folder.path("g.json"));
  graph.replace(graph.find(R"("weight":"wb")"), 13, R"("weight":"wa")");
  folder.write("g.json", graph);
  testing::expect_done(evaluate_reference(folder));
  EXPECT_GT(error_of(read_outputs(folder).at("g").values, expected), 1e-4);
}

TEST(EvalGraphTest, TimingsAndTrace) {
  const TemporaryFolder folder;
  write_layer(folder);
  const CommandResult result = evaluate(folder, {"--timings", "--trace", folder.path("t.json")});
  testing::expect_done(result);
  for (const char* part : {"1 profiled steps", "| graph", "attention", "kv_write", "argmax"}) EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  const std::vector<std::string> names = folder.names();
  EXPECT_EQ(std::count(names.begin(), names.end(), "t.json"), 1);
}

/// q8_0 caches with heads of 40, which end within a block: written, read, and an output in blocks again.
TEST(EvalGraphTest, CachesOfBlocks) {
  const TemporaryFolder folder;
  std::string blocks;
  for (int block = 0; block < 2 * 9 * 2; ++block) {
    blocks += halves({0.002f * static_cast<float>(block % 7 + 1)});
    for (int i = 0; i < 32; ++i) blocks += static_cast<char>(block % 2 == 0 || i < 8 ? (i + block) * 37 % 251 - 125 : 0);
  }
  folder.write("in.safetensors", testing::safetensors_bytes({{"q", "F32", {1, 4, 3, 40}, bytes_of_values(wave(480, 0.37f))},
                                                             {"k", "F32", {1, 2, 3, 40}, bytes_of_values(wave(240, 0.71f))},
                                                             {"v", "F32", {1, 2, 3, 40}, bytes_of_values(wave(240, 0.53f))},
                                                             {"start", "I32", {1}, bytes_of_values<std::int32_t>({4})},
                                                             {"kc", "U8", {1, 2, 9, 68}, blocks},
                                                             {"vc", "U8", {1, 2, 9, 68}, blocks}}));
  folder.write("g.json", R"({"inputs":{"q":{"type":"f32","shape":[1,4,3,40]},"k":{"type":"f32","shape":[1,2,3,40]},"v":{"type":"f32","shape":[1,2,3,40]},"start":{"type":"i32","shape":[1]},)"
                         R"("kc":{"type":"q8_0","shape":[1,2,9,40]},"vc":{"type":"q8_0","shape":[1,2,9,40]}},"nodes":[)"
                         R"({"op":"attention","inputs":{"query":"q","key":"kc","value":"vc"},"outputs":["before"]},)"
                         R"({"op":"kv_write","inputs":{"cache":"kc","update":"k","start":"start"},"outputs":["kc1"]},{"op":"kv_write","inputs":{"cache":"vc","update":"v","start":"start"},"outputs":[]},)"
                         R"({"op":"attention","inputs":{"query":"q","key":"kc1","value":"vc"},"outputs":["after"]}],"outputs":["before","after","kc1","vc"]})");
  testing::expect_done(evaluate_reference(folder));
  const std::map<std::string, Output> expected = read_outputs(folder);
  ASSERT_EQ(expected.size(), 4U);
  EXPECT_GT(error_of(expected.at("before").values, expected.at("after").values), 1e-3);
  for (const char* cache : {"kc1", "vc"}) {
    EXPECT_EQ(expected.at(cache).dtype, SafetensorsDtype::kU8);
    EXPECT_EQ(expected.at(cache).shape, (std::vector<std::uint64_t>{1, 2, 9, 68}));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::size_t row = i / 68 % 9;
      if (row >= 4 && row <= 6) continue;
      ASSERT_EQ(expected.at(cache).values[i], static_cast<float>(static_cast<unsigned char>(blocks[i]))) << i;
    }
  }
  for (const Arguments& flags : {Arguments{}, {"--no-fusion"}, {"--kernel", "attention=tiled"}, {"--kernel", "attention=split"}, {"--as", "baseline"}}) {
    testing::expect_done(evaluate(folder, flags));
    const std::map<std::string, Output> found = read_outputs(folder);
    ASSERT_EQ(found.size(), expected.size());
    for (const char* cache : {"kc1", "vc"}) {
      EXPECT_EQ(found.at(cache).dtype, SafetensorsDtype::kU8);
      EXPECT_EQ(found.at(cache).values, expected.at(cache).values) << cache;
    }
    for (const char* name : {"before", "after"}) EXPECT_LT(error_of(found.at(name).values, expected.at(name).values), 1e-10) << name;
  }
}

const std::string kRelu = R"({"inputs":{"x":{"type":"f32","shape":[2,3]}},"nodes":[{"op":"relu","inputs":{"input":"x"},"outputs":["y"]}],"outputs":["y"]})";

void write_relu(const TemporaryFolder& folder) {
  folder.write("g.json", kRelu);
  folder.write("in.safetensors", testing::safetensors_bytes({{"x", "F32", {2, 3}, bytes_of_values<float>({-1, 2, -3, 4, -5, 6})}}));
}

TEST(EvalGraphTest, OnlyViewsTakeNoDispatch) {
  const TemporaryFolder folder;
  write_relu(folder);
  folder.write("g.json", R"({"inputs":{"x":{"type":"f32","shape":[2,3]}},"nodes":[{"op":"transpose","inputs":{"input":"x"},"attributes":{"permutation":[1,0]},"outputs":["y"]}],"outputs":["y"]})");
  for (const Arguments& flags : {Arguments{}, {"--timings"}}) {
    testing::expect_done(evaluate(folder, flags));
    EXPECT_EQ(read_outputs(folder).at("y").values, (std::vector<float>{-1, 4, 2, -5, -3, 6}));
  }
}

/// The device and the reference must refuse it in the same words, quickly and in little memory, and leave all files alone.
void expect_refused(const TemporaryFolder& folder, const std::vector<std::string>& parts) {
  folder.write("out.safetensors", "old");
  const std::vector<std::string> before = folder.names();
  const CommandResult device = evaluate(folder), reference = evaluate_reference(folder);
  for (const CommandResult& result : {device, reference}) {
    expect_error(result, 1, parts);
    const std::uint64_t files = testing::read_whole_file(folder.path("g.json")).size() + testing::read_whole_file(folder.path("in.safetensors")).size();
    EXPECT_LT(result.peak_bytes, files + (std::uint64_t{64} << 20));
  }
  EXPECT_EQ(device.err, reference.err);
  EXPECT_EQ(testing::read_whole_file(folder.path("out.safetensors")), "old");
  EXPECT_EQ(folder.names(), before);
}

TEST(EvalGraphErrorTest, RefusedBeforeAnyWork) {
  const TemporaryFolder folder;
  write_relu(folder);
  testing::expect_done(evaluate(folder));
  EXPECT_EQ(read_outputs(folder).at("y").values, (std::vector<float>{0, 2, 0, 4, 0, 6}));
  const auto graph = [&](const std::string& from, const std::string& to) {
    std::string text = kRelu;
    folder.write("g.json", text.replace(text.find(from), from.size(), to));
  };
  graph("relu", "relux");
  expect_refused(folder, {"g.json", "node 0", "'relux'"});
  graph("[2,3]", "[3,2]");
  expect_refused(folder, {"in.safetensors", "'x'", "(2, 3)", "(3, 2)"});
  graph("[2,3]", "[2147483647,2147483647,2147483647]");
  expect_refused(folder, {"g.json", "'x'", "'shape'"});
  graph("[2,3]", "[1e300]");
  expect_refused(folder, {"g.json", "'x'", "'shape'"});
  graph(R"("input":"x")", R"("input":"y")");
  expect_refused(folder, {"g.json", "node 0 (relu)", "cycle"});
  graph("[2,3]", std::string(100000, '['));
  expect_refused(folder, {"g.json", "nested"});
  graph("[2,3]", "[" + std::string(15 << 20, ' ') + "2,3");
  expect_refused(folder, {"g.json"});
  folder.write("g.json", "");
  expect_refused(folder, {"g.json", "not valid JSON"});
  folder.write("g.json", kRelu);
  folder.write("in.safetensors", testing::safetensors_bytes({{"x", "F16", {2, 3}, std::string(12, '\0')}}));
  expect_refused(folder, {"in.safetensors", "'x'", "F16", "F32"});
  folder.write("in.safetensors", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10));
  expect_refused(folder, {"in.safetensors", "header"});
}

TEST(EvalGraphErrorTest, FilesThatAreNotThereAndKernelsThatAreNot) {
  const TemporaryFolder folder;
  write_relu(folder);
  expect_error(evaluate(folder, {"--kernel", "relu=wide"}), 1, {"kernel relu=wide", "relu has the kernels"});
  expect_error(evaluate(folder, {"--trace", folder.path("no/such.json")}), 1, {"--trace"});
  Arguments arguments = {"eval", "--graph", folder.path("absent.json"), "--inputs", folder.path("in.safetensors"), "--outputs", folder.path("o")};
  expect_error(testing::run_command(arguments), 1, {"absent.json"});
  arguments[2] = folder.path("g.json");
  arguments[4] = folder.path("absent.safetensors");
  expect_error(testing::run_command(arguments), 1, {"absent.safetensors"});
  arguments[4] = folder.path("in.safetensors");
  arguments[6] = folder.path("no/such/folder");
  expect_error(testing::run_device_command(arguments), 1, {"no/such/folder"});
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"g.json", "in.safetensors"}));
}

/// A network as people write it: no types, a weight (K, N) in another file, numbers, a name.
void write_short(const TemporaryFolder& folder) {
  folder.write("in.safetensors", testing::safetensors_bytes({{"x", "F32", {3, 4}, bytes_of_values(wave(12, 0.37f))}, {"odd", "F64", {1}, std::string(8, '\0')}}));
  folder.write("w.safetensors", testing::safetensors_bytes({{"w", "F16", {4, 6}, halves(wave(24, 0.11f))}}));
  folder.write("g.json", R"({"inputs":{"x":{},"w":{"layout":"kn"}},"nodes":[{"op":"linear","name":"up","inputs":{"input":"x","weight":"w"},"outputs":["h"]},)"
                         R"({"op":"mul","inputs":{"a":"h","b":-0.5},"outputs":["y"]}],"outputs":["y"]})");
}

TEST(EvalGraphTest, SeveralFilesOfInputs) {
  const TemporaryFolder folder;
  write_short(folder);
  std::vector<float> expected(18);
  for (std::size_t i = 0; i < 18; ++i) {
    for (std::size_t k = 0; k < 4; ++k) expected[i] -= 0.5f * wave(12, 0.37f)[i / 6 * 4 + k] * graph::half_to_float(graph::float_to_half(wave(24, 0.11f)[k * 6 + i % 6]));
  }
  for (const Arguments& more : {Arguments{}, {"--reference"}}) {
    Arguments all = {"--inputs", folder.path("w.safetensors")};
    all.insert(all.end(), more.begin(), more.end());
    testing::expect_done(evaluate(folder, all));
    const std::map<std::string, Output> found = read_outputs(folder);
    EXPECT_EQ(found.at("y").shape, (std::vector<std::uint64_t>{3, 6}));
    EXPECT_LT(error_of(found.at("y").values, expected), 1e-11);
  }
  expect_error(evaluate(folder), 1, {"in.safetensors: tensor 'w' is missing, an input of"});
  folder.write("again.safetensors", testing::safetensors_bytes({{"w", "F32", {1}, std::string(4, '\0')}}));
  expect_error(evaluate(folder, {"--inputs", folder.path("w.safetensors"), "--inputs", folder.path("again.safetensors")}), 1, {"tensor 'w' is in ", "w.safetensors and in ", "again.safetensors"});
}

TEST(EvalGraphTest, InfoAndGraphOfAGraphFile) {
  const TemporaryFolder folder;
  write_short(folder);
  const Arguments files = {"--graph", folder.path("g.json"), "--inputs", folder.path("in.safetensors"), "--inputs", folder.path("w.safetensors")};
  const auto run_with = [&](const char* command, const Arguments& more) {
    CommandInput input;
    input.arguments = {command};
    input.arguments.insert(input.arguments.end(), files.begin(), files.end());
    input.arguments.insert(input.arguments.end(), more.begin(), more.end());
    input.environment = {{"VK_ICD_FILENAMES", "/nonexistent"}, {"VK_DRIVER_FILES", "/nonexistent"}};
    return testing::run_command(input);
  };
  const CommandResult info = run_with("info", {"--json"});
  testing::expect_done(info);
  const nlohmann::json report = testing::parse_output(info);
  EXPECT_EQ(report["operators"], (nlohmann::json{{"linear", 1}, {"mul", 1}}));
  EXPECT_EQ(report["inputs"].size(), 2U);
  EXPECT_EQ(report["outputs"][0]["shape"], "(3, 6)");
  EXPECT_EQ(report["plan"]["weight_bytes"], 512) << "six rows of f16, each padded to 32 elements, in planes of 256 bytes";
  const CommandResult graph = run_with("graph", {"--as", "baseline", "--format", "json"});
  testing::expect_done(graph);
  const nlohmann::json program = testing::parse_output(graph);
  EXPECT_EQ(program["dispatches"].size(), report["plan"]["dispatches"]);
  EXPECT_EQ(program["dispatches"][0]["bindings"][2]["tensor"], "w");
  EXPECT_EQ(program["rows"], nlohmann::json());
  for (const char* format : {"text", "dot"}) testing::expect_done(run_with("graph", {"--as", "baseline", "--format", format}));
  testing::expect_done(run_with("info", {}));
  expect_error(run_with("graph", {"--as", "baseline", "--step", "prefill"}), 2, {"--step is about models"});
  expect_error(run_with("info", {"--ctx", "3"}), 2, {"--ctx is about models"});
}

}  // namespace
}  // namespace rondo::eval_graph_test
