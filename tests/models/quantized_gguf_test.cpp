// Matrices that are quantised while they are read: the same as by quantising them apart, by llama.cpp, and in any order of reads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "graph/block_format.h"
#include "graph/quantize.h"
#include "models/checkpoint.h"
#include "models/formats/gguf.h"
#include "models/reference.h"
#include "models/weights.h"
#include "runtime/fmt.h"
#include "tests/support/command_runner.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_data.h"

namespace rondo::models::quantized_gguf_test {
namespace {

std::vector<std::byte> bytes_of(const ByteSource& source, const GgufTensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes));
  const Status status = source.read(tensor.offset_bytes, bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

/// The tensor's blocks of `type`, made apart.
std::vector<std::byte> quantized_apart(const ByteSource& source, const GgufTensor& tensor, graph::Type type) {
  const std::vector<std::byte> stored = bytes_of(source, tensor);
  const graph::BlockFormat &from = *graph::find_block_format(*find_weight_type(tensor.type)), &to = *graph::find_block_format(type);
  std::vector<float> values(static_cast<std::size_t>(tensor.dims[0] * tensor.dims[1]));
  from.dequantize_row(stored, static_cast<std::uint32_t>(values.size()), values.data());
  std::vector<std::byte> blocks(static_cast<std::size_t>(graph::file_row_bytes(to, values.size())));
  graph::find_quantizer(type)(values, blocks.data());
  return blocks;
}

/// Every matrix of `path` is in blocks of `type_name`, and nothing else has changed.
void expect_quantized(const std::string& path, const std::string& type_name, std::size_t n_expected) {
  SCOPED_TRACE(path + " " + type_name);
  const graph::Type type = *graph::find_quantized_type(type_name);
  const Result<ByteSource> plain = open_model(path), quantized = open_model(path, {type_name});
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  ASSERT_TRUE(quantized.ok()) << quantized.status().message();
  const GgufFile before = GgufFile::parse(*plain).value(), after = GgufFile::parse(*quantized).value();
  ASSERT_EQ(before.tensors().size(), after.tensors().size());
  std::size_t n = 0;
  for (std::size_t i = 0; i < before.tensors().size(); ++i) {
    const GgufTensor &from = before.tensors()[i], &to = after.tensors()[i];
    EXPECT_EQ(from.name, to.name);
    EXPECT_EQ(from.dims, to.dims);
    const bool is_matrix = from.n_dims == 2 && from.dims[0] % graph::find_block_format(type)->block_elements == 0 && from.name != "position_embd.weight";
    EXPECT_EQ(is_matrix ? type : *find_weight_type(from.type), *find_weight_type(to.type)) << from.name;
    EXPECT_EQ(bytes_of(*quantized, to), is_matrix ? quantized_apart(*plain, from, type) : bytes_of(*plain, from)) << from.name;
    n += is_matrix;
  }
  EXPECT_EQ(n, n_expected);
  EXPECT_FALSE(after.has("general.file_type"));
  for (const GgufMetadata& entry : before.metadata()) EXPECT_EQ(after.has(entry.key), entry.key != "general.file_type") << entry.key;
}

TEST(QuantizedGgufTest, FoldersBecomeWhatQuantisingApartMakes) {
  // Rows of ffn_down have 176 elements, which are no whole blocks.
  for (const std::string type : {"f32", "f16", "bf16"}) expect_quantized(testing::tests_data_path("qwen2"), type, 22);
  for (const std::string type : {"q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "mxfp4"}) expect_quantized(testing::tests_data_path("qwen2"), type, 19);
}

/// GPT-2's matrices are turned over before, and its embedding of positions stays; Falcon's and others' rows are picked by heads.
TEST(QuantizedGgufTest, FoldersOfOtherFamilies) {
  RONDO_REQUIRE_TEST_DATA();
  for (const char* family : {"gpt2", "gpt_neox", "bloom", "llama"}) {
    const std::string path = testing::test_data_path(fmt::format("models/{}", family));
    const GgufFile file = GgufFile::parse(open_model(path).value()).value();
    std::size_t n = 0;
    for (const GgufTensor& tensor : file.tensors()) n += tensor.n_dims == 2 && tensor.name != "position_embd.weight" && tensor.dims[0] % 32 == 0;
    EXPECT_GT(n, 4u);
    expect_quantized(path, "q8_0", n);
    expect_quantized(path, "q5_1", n);
  }
}

/// llama.cpp's quantiser made these files of one model in f32. From its f16 a value in some hundred goes to the step beside.
TEST(QuantizedGgufTest, BytesAreNearlyThoseOfAnotherQuantiser) {
  RONDO_REQUIRE_TEST_DATA();
  std::size_t n_compared = 0;
  for (const char* type : {"BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"}) {
    const ByteSource theirs = open_file(testing::test_data_path(fmt::format("quant/tiny-{}.gguf", type))).value();
    const Result<ByteSource> ours = open_model(testing::test_data_path("quant/tiny-F16.gguf"), {type});
    ASSERT_TRUE(ours.ok()) << ours.status().message();
    const GgufFile ours_file = GgufFile::parse(*ours).value(), theirs_file = GgufFile::parse(theirs).value();
    for (const GgufTensor& expected : theirs_file.tensors()) {
      const GgufTensor* found = ours_file.find_tensor(expected.name);
      ASSERT_NE(found, nullptr) << expected.name;
      if (expected.n_dims != 2 || expected.type != found->type) continue;  // some types have a head of q6_K
      const std::vector<std::byte> a = bytes_of(*ours, *found), b = bytes_of(theirs, expected);
      ASSERT_EQ(a.size(), b.size());
      std::size_t n_others = 0;
      for (std::size_t i = 0; i < a.size(); ++i) n_others += a[i] != b[i];
      EXPECT_LT(n_others, a.size() / 30) << type << " " << expected.name;
      ++n_compared;
    }
  }
  EXPECT_GE(n_compared, 6u * 15);
}

/// A file of one matrix, larger than what is converted at once.
struct LargeFile {
  LargeFile() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::string data(std::size_t{4} * 992 * 700, '\0');
    for (std::size_t at = 0; at < data.size(); at += 4) {
      const float value = normal(random);
      std::memcpy(data.data() + at, &value, 4);
    }
    testing::GgufWriter writer;
    writer.string("general.architecture", "x").u32("general.file_type", 0).tensor("bias", {3}, GgmlType::kF32, "123456789abc");
    writer.tensor("m.weight", {992, 700}, GgmlType::kF32, data).tensor("odd.weight", {33, 2}, GgmlType::kF16, std::string(132, 'x')).tensor("tail.weight", {64, 1}, GgmlType::kF32, data.substr(0, 256));
    path = folder.write("large.gguf", writer.build());
  }
  testing::TemporaryFolder folder;
  std::string path;
};

TEST(QuantizedGgufTest, RangesOfAnySizeAreReadAlike) {
  const LargeFile file;
  for (const char* type : {"q4_0", "q8_0", "f16"}) {
    const ByteSource source = open_model(file.path, {type}).value();
    std::vector<std::byte> whole(static_cast<std::size_t>(source.size_bytes));
    ASSERT_TRUE(source.read(0, whole).ok());
    std::mt19937_64 random(9);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t offset = random() % source.size_bytes, size = std::min(random() % (i % 3 == 0 ? 200'000 : 50), source.size_bytes - offset);
      std::vector<std::byte> bytes(static_cast<std::size_t>(size));
      ASSERT_TRUE(source.read(offset, bytes).ok());
      ASSERT_TRUE(std::ranges::equal(bytes, std::span(whole).subspan(static_cast<std::size_t>(offset), bytes.size()))) << type << ": " << size << " bytes at " << offset;
    }
  }
  expect_quantized(file.path, "q4_0", 2);
}

TEST(QuantizedGgufTest, TypesThatAreNotThereAreRefusedByName) {
  const std::string folder = testing::tests_data_path("qwen2");
  for (const char* type : {"q4_K", "q6_K", "iq4_nl", "q8_1", "nonsense", "i32"}) {
    const Status status = open_model(folder, {type}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_EQ(status.message(), fmt::format("open_model: quantising to '{}' is not there (f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, mxfp4 are)", type));
  }
  const std::string path = testing::tests_data_path("tiny-Q4_0.gguf");
  const Status status = open_model(path, {"q8_0"}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find(path + ": tensor '"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("is q4_0, and only f32, f16 and bf16 are quantised to q8_0"), std::string::npos) << status.message();
  EXPECT_TRUE(open_model(path, {"q4_0"}).ok()) << "it is what it shall be";
  EXPECT_EQ(open_model("absent.gguf", {"q8_0"}).status().code(), StatusCode::kNotFound);
}

/// Logits move as far as the type is coarse.
TEST(QuantizedGgufTest, LogitsAreNear) {
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto logits = [&](const char* type) { return reference_logits(*open_checkpoint(open_model(testing::tests_data_path("qwen2"), {type}).value()).value(), ids, graph::Type::kF32).value(); };
  const std::vector<float> plain = logits(""), fine = logits("q8_0"), coarse = logits("q4_0");
  const auto distance = [&](const std::vector<float>& other) {
    double squares = 0, all = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) squares += std::pow(static_cast<double>(plain[i] - other[i]), 2), all += std::pow(static_cast<double>(plain[i]), 2);
    return squares / all;
  };
  EXPECT_EQ(logits("f32"), plain);
  EXPECT_GT(distance(fine), 0);
  EXPECT_LT(distance(fine), 1e-3);
  EXPECT_LT(distance(fine) * 10, distance(coarse));
  EXPECT_LT(distance(coarse), 0.5);
}

}  // namespace
}  // namespace rondo::models::quantized_gguf_test
