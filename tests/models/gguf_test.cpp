#include "models/formats/gguf.h"

#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_data.h"

namespace rondo::models::gguf_test {
namespace {

using rondo::testing::ByteWriter;
using rondo::testing::GgufWriter;
using rondo::testing::source_of;

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

/// A file with a bit of everything; hostile cases are this file with one thing wrong.
GgufWriter good_file() {
  GgufWriter writer;
  writer.string("general.architecture", "llama")
      .u32("llama.block_count", 5)
      .f32("llama.epsilon", 1e-5F)
      .boolean("llama.flag", true)
      .strings("words", {"a", "", "ccc"})
      .f32s("scores", {0.5F, -1.0F})
      .i32s("types", {1, 2, 3});
  writer.tensor("a", {32, 2}, GgmlType::kQ8_0, std::string(68, 'x'));
  writer.tensor("b", {3}, GgmlType::kF32, std::string(12, 'y'));
  return writer;
}

Result<GgufFile> parse_bytes(const std::string& bytes) { return GgufFile::parse(source_of(bytes)); }

TEST(GgufTest, ReadsMetadataAndTensors) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter writer = good_file();
    writer.version = version;
    const std::string bytes = writer.build();
    Result<GgufFile> file = parse_bytes(bytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    EXPECT_EQ(file->name(), "model.gguf");
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(file->metadata().size(), 7U);
    EXPECT_EQ(file->metadata()[1].key, "llama.block_count");
    EXPECT_EQ(file->u32("llama.block_count").value(), 5U);
    EXPECT_EQ(file->f32("llama.epsilon").value(), 1e-5F);
    EXPECT_TRUE(file->boolean("llama.flag").value());
    EXPECT_EQ(file->string("general.architecture").value(), "llama");
    const GgufStrings& words = *file->strings("words").value();
    ASSERT_EQ(words.size(), 3U);
    EXPECT_EQ(words[0], "a");
    EXPECT_EQ(words[1], "");
    EXPECT_EQ(words[2], "ccc");
    EXPECT_EQ(file->f32s("scores").value()[1], -1.0F);
    EXPECT_EQ(file->i32s("types").value()[2], 3);

    ASSERT_EQ(file->tensors().size(), 2U);
    const GgufTensor* a = file->find_tensor("a");
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(a->n_dims, 2U);
    EXPECT_EQ(a->dims, (std::array<std::uint64_t, 4>{32, 2, 1, 1}));
    EXPECT_EQ(a->type, GgmlType::kQ8_0);
    EXPECT_EQ(a->size_bytes, 68U);
    EXPECT_EQ(bytes.substr(a->offset_bytes, a->size_bytes), std::string(68, 'x'));
    const GgufTensor* b = file->find_tensor("b");
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(bytes.substr(b->offset_bytes, b->size_bytes), std::string(12, 'y'));
    EXPECT_EQ(file->find_tensor("c"), nullptr);
    EXPECT_EQ(file->find_tensor(""), nullptr);
  }
}

TEST(GgufTest, TensorMayEndAtTheEndOfTheFile) {
  std::string bytes = good_file().build();
  bytes.resize(bytes.size() - 20);  // the padding behind the last tensor
  EXPECT_TRUE(parse_bytes(bytes).ok());
  bytes.pop_back();
  EXPECT_FALSE(parse_bytes(bytes).ok());
}

TEST(GgufTest, AlignmentIsTheFilesOwn) {
  GgufWriter writer;
  writer.alignment_bytes = 256;
  writer.u32("general.alignment", 256);
  writer.tensor("a", {4}, GgmlType::kF32, std::string(16, 'x')).tensor("b", {4}, GgmlType::kF32, std::string(16, 'y'));
  const std::string bytes = writer.build();
  Result<GgufFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find_tensor("b")->offset_bytes % 256, 0U);
  EXPECT_EQ(bytes.substr(file->find_tensor("b")->offset_bytes, 16), std::string(16, 'y'));
}

TEST(GgufTest, IntegersAreReadWhateverTheirWidth) {
  using Type = GgufValueType;
  GgufWriter writer;
  writer.number("u8", Type::kU8, std::uint8_t{200})
      .number("i8", Type::kI8, std::int8_t{-3})
      .number("u16", Type::kU16, std::uint16_t{60000})
      .number("i16", Type::kI16, std::int16_t{300})
      .number("i32", Type::kI32, std::int32_t{-1})
      .number("u64", Type::kU64, std::uint64_t{4294967295U})
      .number("u64 large", Type::kU64, std::uint64_t{4294967296U})
      .number("i64", Type::kI64, std::int64_t{9})
      .number("f64", Type::kF64, 0.25)
      .number("f64 large", Type::kF64, 1e300)
      .f32("f32", 3.0F)
      .boolean("bool", true)
      .string("string", "7");
  writer.raw_array("u32s", static_cast<std::uint32_t>(Type::kU32), 2,
                   ByteWriter().number(7U).number(4294967295U).bytes());
  const std::string bytes = writer.build();
  Result<GgufFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->u32("u8").value(), 200U);
  EXPECT_EQ(file->u32("u16").value(), 60000U);
  EXPECT_EQ(file->u32("i16").value(), 300U);
  EXPECT_EQ(file->u32("u64").value(), 4294967295U);
  EXPECT_EQ(file->u32("i64").value(), 9U);
  EXPECT_EQ(file->f32("f64").value(), 0.25F);
  for (const char* key : {"i8", "i32", "u64 large", "f32", "f64", "bool", "string", "u32s"}) {
    const Result<std::uint32_t> value = file->u32(key);
    ASSERT_FALSE(value.ok()) << key;
    EXPECT_EQ(value.status().code(), StatusCode::kCorruptData);
    EXPECT_EQ(value.status().message().find("model.gguf: metadata key '" + std::string(key) + "' is "), 0U)
        << value.status().message();
  }
  for (const char* key : {"u8", "f64 large", "string", "bool"}) EXPECT_FALSE(file->f32(key).ok()) << key;
  EXPECT_FALSE(file->boolean("u8").ok());
  EXPECT_FALSE(file->string("u32s").ok());
  EXPECT_FALSE(file->strings("u32s").ok());
  EXPECT_FALSE(file->f32s("u32s").ok());
  EXPECT_FALSE(file->f32s("f32").ok());
  EXPECT_NE(file->i32s("u32s").status().message().find("4294967295 at index 1"), std::string::npos);
  EXPECT_EQ(file->u32("i8").status().message(),
            "model.gguf: metadata key 'i8' is -3 (i8), expected an integer from 0 to 4294967295");
}

TEST(GgufTest, FallbacksAreForAbsentKeysOnly) {
  const std::string bytes = good_file().build();
  Result<GgufFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->u32_or("absent", 3).value(), 3U);
  EXPECT_EQ(file->f32_or("absent", 0.5F).value(), 0.5F);
  EXPECT_TRUE(file->boolean_or("absent", true).value());
  EXPECT_EQ(file->string_or("absent", "x").value(), "x");
  EXPECT_EQ(file->u32_or("llama.block_count", 3).value(), 5U);
  EXPECT_FALSE(file->u32_or("llama.epsilon", 3).ok());
  EXPECT_FALSE(file->f32_or("llama.block_count", 3).ok());
  const Status missing = file->u32("absent").status();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_EQ(missing.message(), "model.gguf: metadata key 'absent' is missing");
}

TEST(GgufTest, ListsValuesAsText) {
  const std::string bytes = good_file().string("odd", "a\nb").build();
  Result<GgufFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find("llama.block_count")->text(), "5");
  EXPECT_EQ(file->find("llama.epsilon")->text(), "1e-05");
  EXPECT_EQ(file->find("llama.flag")->text(), "true");
  EXPECT_EQ(file->find("words")->text(), "[string x 3]");
  EXPECT_EQ(file->find("odd")->text(), "a\\x0ab");
}

TEST(GgufTest, KnowsTheBlocksOfPublishedTypes) {
  EXPECT_STREQ(ggml_type_info(GgmlType::kQ4_K).name, "q4_K");
  EXPECT_EQ(ggml_type_info(GgmlType::kQ4_K).block_elements, 256U);
  EXPECT_EQ(ggml_type_info(GgmlType::kQ4_K).block_bytes, 144U);
  EXPECT_EQ(ggml_type_info(GgmlType::kMXFP4).block_bytes, 17U);
  std::uint32_t n_types = 0;
  for (std::uint32_t id = 0; id < 64; ++id) n_types += find_ggml_type(id) != nullptr ? 1U : 0U;
  EXPECT_EQ(n_types, 32U);
  for (const std::uint32_t removed : {4U, 5U, 31U, 32U, 33U, 36U, 37U, 38U}) {
    EXPECT_EQ(find_ggml_type(removed), nullptr);
  }
}

struct HostileCase {
  const char* name;
  std::function<std::string()> build;
  StatusCode code;
  std::string message;  // a part of it
};

void PrintTo(const HostileCase& hostile, std::ostream* out) { *out << hostile.name; }

class GgufHostileTest : public ::testing::TestWithParam<HostileCase> {};

TEST_P(GgufHostileTest, IsRefusedInOneLineAndQuickly) {
  const std::string bytes = GetParam().build();
  const rondo::testing::CpuTimer timer;
  const Result<GgufFile> file = parse_bytes(bytes);
  const double seconds = timer.seconds();
  ASSERT_FALSE(file.ok());
  const std::string& message = file.status().message();
  EXPECT_EQ(file.status().code(), GetParam().code) << message;
  EXPECT_EQ(message.find("model.gguf: "), 0U) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 500U);
  EXPECT_LT(seconds, 1.0);
}

std::string with_key(std::uint32_t type, std::string payload) {
  return good_file().raw_key("k", type, payload).build();
}

std::string with_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset) {
  return good_file().raw_tensor("t", dims, type, offset).raw_data(256).build();
}

std::string with_header(std::function<void(GgufWriter&)> change) {
  GgufWriter writer = good_file();
  change(writer);
  return writer.build();
}

constexpr StatusCode kCorrupt = StatusCode::kCorruptData;
constexpr StatusCode kUnsupported = StatusCode::kUnsupported;

std::vector<HostileCase> header_cases() {
  return {
      {"empty", [] { return std::string(); }, kCorrupt, "file is empty"},
      {"three_bytes", [] { return std::string("GGU"); }, kCorrupt, "truncated"},
      {"four_bytes", [] { return std::string("GGUF"); }, kCorrupt, "truncated"},
      {"magic", [] { return with_header([](GgufWriter& w) { w.magic = "GG\nF"; }); }, kCorrupt, "not a GGUF file"},
      {"version_0", [] { return with_header([](GgufWriter& w) { w.version = 0; }); }, kCorrupt, "version is 0"},
      {"version_1", [] { return with_header([](GgufWriter& w) { w.version = 1; }); }, kUnsupported, "GGUF version 1"},
      {"version_4", [] { return with_header([](GgufWriter& w) { w.version = 4; }); }, kUnsupported, "GGUF version 4"},
      {"big_endian", [] { return with_header([](GgufWriter& w) { w.version = 0x03000000; }); }, kUnsupported,
       "big-endian"},
      {"key_count", [] { return with_header([](GgufWriter& w) { w.n_keys = kHuge; }); }, kCorrupt,
       "metadata keys, but only"},
      {"tensor_count", [] { return with_header([](GgufWriter& w) { w.n_tensors = kHuge / 8; }); }, kCorrupt,
       "tensors, but only"},
      {"many_keys",
       [] {
         return with_header([](GgufWriter& w) {
           w.n_keys = 65537;
           w.raw_data(3 << 20);
         });
       },
       kCorrupt, "at most 65536"},
      {"many_tensors",
       [] {
         return with_header([](GgufWriter& w) {
           w.n_tensors = 65537;
           w.raw_data(3 << 20);
         });
       },
       kCorrupt, "at most 65536"},
  };
}

std::vector<HostileCase> metadata_cases() {
  constexpr std::uint32_t kArray = 9;
  const auto array = [](std::uint32_t type, std::uint64_t count) {
    return ByteWriter().number(type).number(count).bytes();
  };
  return {
      {"key_name_length",
       [] {
         GgufWriter writer;
         writer.n_keys = 1;
         return writer.build() + ByteWriter().number(kHuge).string("xxxxxxxx").bytes();
       },
       kCorrupt, "metadata key 1 of 1: name of 184467"},
      {"key_name_empty", [] { return good_file().u32("", 1).build(); }, kCorrupt,
       "metadata key 8 of 8: has an empty name"},
      {"key_twice", [] { return good_file().u32("llama.block_count", 6).build(); }, kCorrupt,
       "metadata key 'llama.block_count' is there twice"},
      {"key_name_control", [] { return good_file().raw_key("a\nb", 13, "").build(); }, kCorrupt, "'a\\x0ab'"},
      {"value_type", [] { return with_key(13, "xxxxxxxx"); }, kCorrupt, "'k' has type 13"},
      {"bool_value", [] { return with_key(7, "\x02"); }, kCorrupt, "'k' is a bool of value 2"},
      {"string_length", [] { return with_key(8, ByteWriter().number(kHuge).bytes()); }, kCorrupt,
       "'k' string of 184467"},
      {"array_type", [=] { return with_key(kArray, array(77, 1)); }, kCorrupt, "'k' is an array of type 77"},
      {"nested_array", [=] { return with_key(kArray, array(9, 1) + array(4, 1) + "xxxx"); }, kCorrupt,
       "array of arrays"},
      {"array_count", [=] { return with_key(kArray, array(4, kHuge / 4 + 1)); }, kCorrupt, "'k' is an array of"},
      {"array_count_zero_product", [=] { return with_key(kArray, array(10, std::uint64_t{1} << 61)); }, kCorrupt,
       "'k' is an array of"},
      {"string_array_count", [=] { return with_key(kArray, array(8, kHuge / 8)); }, kCorrupt, "'k' is an array of"},
      {"string_array_length", [=] { return with_key(kArray, array(8, 1) + ByteWriter().number(kHuge - 7).bytes()); },
       kCorrupt, "'k' element of 184467"},
  };
}

std::vector<HostileCase> tensor_cases() {
  return {
      {"alignment_zero", [] { return good_file().u32("general.alignment", 0).build(); }, kCorrupt,
       "'general.alignment' is 0, expected a power of two"},
      {"alignment_odd", [] { return good_file().u32("general.alignment", 48).build(); }, kCorrupt, "is 48"},
      {"alignment_type", [] { return good_file().string("general.alignment", "32").build(); }, kCorrupt,
       "'general.alignment' is 32 (string)"},
      {"alignment_large", [] { return good_file().u32("general.alignment", 0x80000000).build(); }, kCorrupt, "padding"},
      {"tensor_name_empty", [] { return good_file().raw_tensor("", {1}, 0, 0).build(); }, kCorrupt,
       "has an empty name"},
      {"tensor_name_long", [] { return good_file().raw_tensor(std::string(70000, 'n'), {1}, 0, 0).build(); }, kCorrupt,
       "70000 bytes"},
      {"tensor_twice", [] { return good_file().raw_tensor("a", {1}, 0, 128).raw_data(64).build(); }, kCorrupt,
       "tensor 'a': is there twice"},
      {"no_dims", [] { return with_tensor({}, 0, 128); }, kCorrupt, "tensor 't': has 0 dimensions"},
      {"five_dims",
       [] {
         return with_tensor({1, 1, 1, 1, 1}, 0, 128);
       },
       kCorrupt, "tensor 't': has 5 dimensions"},
      {"zero_dim",
       [] {
         return with_tensor({4, 0}, 0, 128);
       },
       kCorrupt, "dimension 1 is 0"},
      {"type_unknown", [] { return with_tensor({4}, 1000, 128); }, kUnsupported, "type 1000"},
      {"type_removed", [] { return with_tensor({32}, 4, 128); }, kUnsupported, "type 4"},
      {"row_of_half_a_block", [] { return with_tensor({48}, 8, 128); }, kCorrupt, "rows of 48 elements"},
      {"product_wraps",
       [] {
         return with_tensor({1ULL << 33, 1ULL << 33}, 0, 128);
       },
       kCorrupt, "beyond 64 bits"},
      {"product_wraps_to_0",
       [] {
         return with_tensor({1ULL << 32, 1ULL << 32}, 0, 128);
       },
       kCorrupt, "beyond 64 bits"},
      {"size_wraps",
       [] {
         return with_tensor({1ULL << 62, 1}, 0, 128);
       },
       kCorrupt, "beyond 64 bits"},
      {"too_large", [] { return with_tensor({1ULL << 40}, 0, 128); }, kCorrupt, "tensor 't': has 4398046511104 bytes"},
      {"offset_odd", [] { return with_tensor({1}, 0, 129); }, kCorrupt, "expected a multiple of 32"},
      {"offset_beyond", [] { return with_tensor({1}, 0, 1ULL << 40); }, kCorrupt, "at offset 1099511627776"},
      {"offset_wraps", [] { return with_tensor({16}, 0, kHuge - 31); }, kCorrupt, "at offset 18446744073709551584"},
      {"overlap", [] { return with_tensor({16}, 0, 64); }, kCorrupt, "overlaps tensor"},
      {"same_place", [] { return with_tensor({1}, 0, 96); }, kCorrupt, "overlaps tensor"},
  };
}

const auto kCaseName = [](const auto& param_info) { return std::string(param_info.param.name); };
INSTANTIATE_TEST_SUITE_P(Header, GgufHostileTest, ::testing::ValuesIn(header_cases()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Metadata, GgufHostileTest, ::testing::ValuesIn(metadata_cases()), kCaseName);
INSTANTIATE_TEST_SUITE_P(Tensors, GgufHostileTest, ::testing::ValuesIn(tensor_cases()), kCaseName);

TEST(GgufTest, SaysThatATruncatedFileIsTruncated) {
  const std::string whole = rondo::testing::read_whole_file(rondo::testing::tests_data_path("tiny-Q4_0.gguf"));
  ASSERT_TRUE(parse_bytes(whole).ok());
  const std::size_t n_header = parse_bytes(whole)->tensors()[0].offset_bytes;
  for (std::size_t i = 0; i < 200; ++i) {
    // Half of the cuts within the header.
    const std::size_t size = i % 2 == 0 ? n_header * i / 200 : whole.size() * i / 200;
    const std::string bytes = whole.substr(0, size);
    const Result<GgufFile> file = parse_bytes(bytes);
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_EQ(file.status().code(), StatusCode::kCorruptData);
    EXPECT_NE(file.status().message().find("truncated"), std::string::npos) << file.status().message();
  }
}

TEST(GgufTest, PassesOnWhatReadingSays) {
  const std::string whole = rondo::testing::read_whole_file(rondo::testing::tests_data_path("tiny-Q4_0.gguf"));
  std::size_t n_reads = 0;
  for (std::size_t n_good = 0; n_good == 0 || n_reads > n_good; ++n_good) {
    n_reads = 0;
    ByteSource source = source_of(whole);
    source.read = [&, inner = source.read](std::uint64_t offset, std::span<std::byte> out) {
      if (n_reads++ < n_good) return inner(offset, out);
      return Status(StatusCode::kIo, "model.gguf: reading failed");
    };
    const Result<GgufFile> file = GgufFile::parse(source);
    EXPECT_EQ(file.ok(), n_reads <= n_good);
    if (!file.ok()) {
      EXPECT_EQ(file.status().code(), StatusCode::kIo);
    }
  }
  EXPECT_LE(n_reads, 3U) << "the header is read through a window";
  ByteSource empty;
  EXPECT_EQ(GgufFile::parse(empty).status().code(), StatusCode::kInvalidArgument);
}

TEST(GgufTest, SurvivesRandomDamage) {
  const std::string whole = good_file().build();
  std::mt19937 random(20260101);
  std::size_t n_refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    for (int n = 0; n <= i % 3; ++n) bytes[random() % bytes.size()] = static_cast<char>(i % 2 == 0 ? random() : 255);
    const Result<GgufFile> file = parse_bytes(bytes);
    if (!file.ok()) ++n_refused;
  }
  EXPECT_GT(n_refused, 5000U);
}

TEST(GgufTest, ReadsLargeStringArraysCompactly) {
  std::vector<std::string> values(300000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::string(i % 7, static_cast<char>('a' + i % 26));
  values[1000] = std::string(3 << 20, 'z');  // beyond the read window
  const std::string bytes = GgufWriter().strings("words", values).u32("after", 9).build();
  Result<GgufFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const GgufStrings& words = *file->strings("words").value();
  ASSERT_EQ(words.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(words[i], values[i]);
  EXPECT_EQ(file->u32("after").value(), 9U);
}

TEST(GgufTest, ReadsTheDemoModel) {
  Result<ByteSource> source = open_file(RONDO_DEMO_MODEL);
  ASSERT_TRUE(source.ok()) << source.status().message();
  Result<GgufFile> file = GgufFile::parse(*source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->string("general.architecture").value(), "llama");
  EXPECT_EQ(file->u32("llama.embedding_length").value(), 192U);
  EXPECT_EQ(file->tensors().size(), 47U);
  const GgufTensor* embedding = file->find_tensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->dims, (std::array<std::uint64_t, 4>{192, 1024, 1, 1}));
  EXPECT_EQ(embedding->size_bytes, 192U * 1024 / 32 * 34);
}

TEST(GgufTest, ReadsEveryFileOfTheTestData) {
  RONDO_REQUIRE_TEST_DATA();
  for (const char* name : {"stories260K/stories260K.gguf", "demo/kjv-f32.gguf", "quant/tiny-IQ4_NL.gguf",
                           "quant/tiny-Q6_K.gguf", "quant/tiny-BF16.gguf", "vocab/ggml-vocab-gpt-2.gguf"}) {
    Result<ByteSource> source = open_file(rondo::testing::test_data_path(name));
    ASSERT_TRUE(source.ok()) << source.status().message();
    const Result<GgufFile> file = GgufFile::parse(*source);
    EXPECT_TRUE(file.ok()) << file.status().message();
  }
}

}  // namespace
}  // namespace rondo::models::gguf_test
