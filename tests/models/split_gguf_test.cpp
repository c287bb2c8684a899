// GGUF files in parts: what they make together is the file that was split, and parts that don't fit are named.
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/checkpoint.h"
#include "models/formats/gguf.h"
#include "models/reference.h"
#include "runtime/fmt.h"
#include "tests/support/gguf_split.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_data.h"

namespace rondo::models::split_gguf_test {
namespace {

using rondo::testing::add_split_keys;
using rondo::testing::GgufWriter;
using rondo::testing::part_name;
using rondo::testing::source_of;
using Type = GgufValueType;

/// Metadata of every kind, arrays that the parser skips among them.
void add_metadata(GgufWriter& writer) {
  writer.string("general.architecture", "llama").u32("llama.block_count", 5).f32("llama.epsilon", 1e-5F);
  writer.raw_array("bytes", 0, 5, "abcde").strings("words", {"a", "", "ccc"}).i32s("types", {1, 2, 3}).boolean("flag", true);
}

struct TestTensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  GgmlType type;
  std::string data;
};

std::vector<TestTensor> test_tensors() {
  return {{"a", {32, 2}, GgmlType::kQ8_0, std::string(68, 'x')}, {"b", {3}, GgmlType::kF32, std::string(12, 'y')}, {"c", {7, 5}, GgmlType::kF16, std::string(70, 'z')}, {"d", {1}, GgmlType::kF32, "1234"}, {"e", {64}, GgmlType::kF32, std::string(256, 'e')}};
}

std::vector<std::byte> bytes_at(const ByteSource& source, std::uint64_t offset, std::uint64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  const Status status = source.read(offset, bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

/// The same keys with the same bytes, the same tensors with the same bytes, in the same order.
void expect_same_file(const ByteSource& found_source, const ByteSource& expected_source) {
  const Result<GgufFile> found = GgufFile::parse(found_source), expected = GgufFile::parse(expected_source);
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  const std::size_t n_keys = expected->metadata().size();
  ASSERT_EQ(found->metadata().size(), n_keys);
  const auto metadata_bytes = [&](const GgufFile& file, const ByteSource& source) { return bytes_at(source, file.metadata_offset(0), file.metadata_offset(n_keys) - file.metadata_offset(0)); };
  EXPECT_EQ(metadata_bytes(*found, found_source), metadata_bytes(*expected, expected_source));
  ASSERT_EQ(found->tensors().size(), expected->tensors().size());
  for (std::size_t i = 0; i < expected->tensors().size(); ++i) {
    const GgufTensor &ours = found->tensors()[i], &theirs = expected->tensors()[i];
    EXPECT_EQ(ours.name, theirs.name);
    EXPECT_EQ(ours.n_dims, theirs.n_dims) << theirs.name;
    EXPECT_EQ(ours.dims, theirs.dims) << theirs.name;
    EXPECT_EQ(ours.type, theirs.type) << theirs.name;
    EXPECT_EQ(bytes_at(found_source, ours.offset_bytes, ours.size_bytes), bytes_at(expected_source, theirs.offset_bytes, theirs.size_bytes)) << theirs.name;
  }
}

class SplitGgufTest : public ::testing::Test {
 protected:
  /// Parts with these numbers of tensors, of a file that says `alignment`; 0: the usual one, unsaid.
  void write_parts(const std::vector<std::size_t>& counts, std::uint32_t alignment = 0) {
    const std::vector<TestTensor> tensors = test_tensors();
    std::size_t at = 0, n = 0;
    for (const std::size_t count : counts) n += count;
    whole_ = GgufWriter();
    add_metadata(whole_);
    if (alignment) whole_.alignment_bytes = alignment, whole_.u32("general.alignment", alignment);
    for (std::size_t part = 0; part < counts.size(); ++part) {
      GgufWriter writer;
      // Keys of parts stand where they may: the first part has them amid others.
      if (part > 0) add_split_keys(writer, part, counts.size(), n);
      if (part == 0) {
        add_metadata(writer);
        add_split_keys(writer, part, counts.size(), n);
        if (alignment) writer.alignment_bytes = alignment, writer.u32("general.alignment", alignment);
      }
      for (std::size_t i = 0; i < counts[part]; ++i, ++at) {
        writer.tensor(tensors[at].name, tensors[at].dims, tensors[at].type, tensors[at].data);
        whole_.tensor(tensors[at].name, tensors[at].dims, tensors[at].type, tensors[at].data);
      }
      paths_.push_back(folder_.write(part_name(part + 1, counts.size()), writer.build()));
    }
  }
  void expect_whole(const std::string& path) const {
    const Result<ByteSource> source = open_model(path);
    ASSERT_TRUE(source.ok()) << source.status().message();
    EXPECT_EQ(source->name, path);
    const std::string whole = whole_.build();
    expect_same_file(*source, source_of(whole));
  }

  testing::TemporaryFolder folder_;
  std::vector<std::string> paths_;
  GgufWriter whole_;
};

TEST_F(SplitGgufTest, OneTwoAndThreePartsMakeTheFile) {
  const std::vector<std::vector<std::size_t>> splits = {{5}, {2, 3}, {1, 3, 1}, {0, 5}, {0, 2, 3}};
  for (const std::vector<std::size_t>& counts : splits) {
    for (const std::uint32_t alignment : {0u, 256u}) {
      paths_.clear();
      write_parts(counts, alignment);
      for (const std::string& path : paths_) {
        SCOPED_TRACE(path);
        expect_whole(path);
      }
    }
  }
}

TEST_F(SplitGgufTest, APartAloneIsRefused) {
  write_parts({2, 3});
  for (const std::string& path : paths_) {
    const std::string bytes = testing::read_whole_file(path);
    for (const ByteSource& source : {open_file(path).value(), source_of(bytes), open_model(folder_.write("renamed.gguf", bytes)).value()}) {
      const Status status = open_checkpoint(source).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), source.name + ": metadata key 'split.count' is 2: this is one part of a model, expected all of them; open_model finds them beside any one that is called NAME-00001-of-00002.gguf");
    }
  }
}

/// Merging leaves a count of 0; other files are only called so.
TEST_F(SplitGgufTest, WhatIsWholeIsOpenedAsItIs) {
  const auto whole = [](int count) {
    GgufWriter writer;
    add_metadata(writer);
    if (count >= 0) add_split_keys(writer, 0, static_cast<std::size_t>(count), 1);
    return writer.tensor("b", {3}, GgmlType::kF32, std::string(12, 'y')).build();
  };
  for (const auto& [name, count] : {std::pair{"merged.gguf", 0}, std::pair{"one.gguf", 1}, std::pair{"model-00002-of-00003.gguf", -1}, std::pair{"model-00000-of-00003.gguf", 0}, std::pair{"model-00004-of-00003.gguf", 1}}) {
    const std::string bytes = whole(count);
    const Result<ByteSource> source = open_model(folder_.write(name, bytes));
    ASSERT_TRUE(source.ok()) << source.status().message();
    expect_same_file(*source, source_of(bytes));
  }
}

/// A real model computes what it computed; a part under another name is refused.
TEST_F(SplitGgufTest, AModelInPartsComputesTheSame) {
  const std::string whole_path = testing::tests_data_path("tiny-Q4_0.gguf");
  const ByteSource source = open_file(whole_path).value();
  paths_ = testing::split_file(folder_, whole_path);
  const ByteSource split = open_model(paths_[2]).value();
  expect_same_file(split, source);
  const std::vector<std::int32_t> ids = {1, 2, 3, 200};
  const auto in_parts = open_checkpoint(split).value(), whole = open_checkpoint(source).value();
  EXPECT_EQ(reference_logits(*in_parts, ids, graph::Type::kF32).value(), reference_logits(*whole, ids, graph::Type::kF32).value());

  const std::string renamed = folder_.write("renamed.gguf", testing::read_whole_file(paths_[0]));
  const Status status = open_checkpoint(open_model(renamed).value()).status();
  EXPECT_NE(status.message().find("renamed.gguf"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("'split.count' is 3"), std::string::npos) << status.message();
}

/// Three parts with one thing wrong.
struct Fault {
  const char* name;
  StatusCode code;
  std::vector<std::string> parts;  ///< of the message; {1} to {3} are paths
  /// Changes part 1, 2 or 3 before its keys and its tensor are written.
  std::function<void(int part, GgufWriter& writer, std::map<std::string, std::size_t>& keys)> change;
  std::string second = {};  ///< what the second file holds where nothing changes; "-": there is none
};
void PrintTo(const Fault& fault, std::ostream* stream) { *stream << fault.name; }

class SplitFaultTest : public ::testing::TestWithParam<Fault> {};

constexpr StatusCode kCorrupt = StatusCode::kCorruptData;
using Keys = std::map<std::string, std::size_t>;

const Fault kFaults[] = {
    {"missing_part", StatusCode::kNotFound, {"{1}: part 2 of 3: {2}: can't be opened"}, nullptr, "-"},
    {"no_gguf", kCorrupt, {"{2}: header: begins with 'nons', expected 'GGUF'"}, nullptr, "nonsense that is long enough"},
    {"empty_part", kCorrupt, {"{2}: file is empty"}, nullptr, ""},
    {"count_of_first", kCorrupt, {"{1}: metadata key 'split.count' is 4, but its name says 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys["split.count"] = 4; }},
    {"count_of_second", kCorrupt, {"{2}: metadata key 'split.count' is 2, but its name says 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 2) keys["split.count"] = 2; }},
    {"count_zero", kCorrupt, {"{1}: metadata key 'split.count' is 0, but its name says 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys["split.count"] = 0; }},
    {"count_huge", kCorrupt, {"{1}: metadata key 'split.count' is 65535, but its name says 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys["split.count"] = 65535; }},
    {"number_of_second", kCorrupt, {"{2}: metadata key 'split.no' is 2, expected 1 in part 2 of 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 2) keys["split.no"] = 2; }},
    {"number_of_first", kCorrupt, {"{1}: metadata key 'split.no' is 1, expected 0 in part 1 of 3"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys["split.no"] = 1; }},
    {"no_number", StatusCode::kNotFound, {"{3}: metadata key 'split.no' is missing"}, [](int part, GgufWriter&, Keys& keys) { if (part == 3) keys.erase("split.no"); }},
    {"no_number_of_tensors", StatusCode::kNotFound, {"{1}: metadata key 'split.tensors.count' is missing"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys.erase("split.tensors.count"); }},
    {"too_few_tensors", kCorrupt, {"{1}: metadata key 'split.tensors.count' is 4, but its 3 parts have 3 tensors"}, [](int, GgufWriter&, Keys& keys) { keys["split.tensors.count"] = 4; }},
    {"numbers_of_tensors", kCorrupt, {"{3}: metadata key 'split.tensors.count' is 4, but 3 in {1}"}, [](int part, GgufWriter&, Keys& keys) { if (part == 3) keys["split.tensors.count"] = 4; }},
    {"negative_number_of_tensors", kCorrupt, {"{1}: metadata key 'split.tensors.count' is -1"}, [](int part, GgufWriter&, Keys& keys) { if (part == 1) keys["split.tensors.count"] = ~std::size_t{0}; }},
    {"tensor_twice", kCorrupt, {"{3}: tensor 't1' is in part 1 as well"}, [](int part, GgufWriter& writer, Keys&) { if (part == 3) writer.tensor("t1", {1}, GgmlType::kF32, "abcd"); }},
    {"architecture", kCorrupt, {"{2}: metadata key 'general.architecture' is 'gpt2', but 'llama' in {1}"}, [](int part, GgufWriter& writer, Keys&) { if (part == 2) writer.string("general.architecture", "gpt2"); }},
    {"alignment", kCorrupt, {"{3}: metadata key 'general.alignment' is 64, but 32 in {1}"}, [](int part, GgufWriter& writer, Keys&) { if (part == 3) writer.u32("general.alignment", 64), writer.alignment_bytes = 64; }},
    {"a_text_as_count", kCorrupt, {"{2}: metadata key 'split.count' is three (string)"}, [](int part, GgufWriter& writer, Keys& keys) { if (part == 2) keys.erase("split.count"), writer.string("split.count", "three"); }},
};

TEST_P(SplitFaultTest, IsNamedInOneLine) {
  const Fault& fault = GetParam();
  const testing::TemporaryFolder folder;
  const auto path = [&](int part) { return folder.path(part_name(static_cast<std::size_t>(part), 3)); };
  for (int part = 1; part <= 3; ++part) {
    GgufWriter writer;
    if (part == 1) add_metadata(writer);
    Keys keys = {{"split.no", static_cast<std::size_t>(part - 1)}, {"split.count", 3}, {"split.tensors.count", 3}};
    if (fault.change) fault.change(part, writer, keys);
    for (const auto& [key, value] : keys) {
      if (key == "split.tensors.count") writer.number(key, Type::kI32, static_cast<std::int32_t>(value));
      else writer.number(key, Type::kU16, static_cast<std::uint16_t>(value));
    }
    writer.tensor(fmt::format("t{}", part), {3}, GgmlType::kF32, std::string(12, 'y'));
    if (part != 2 || fault.change) folder.write(part_name(static_cast<std::size_t>(part), 3), writer.build());
    else if (fault.second != "-") folder.write(part_name(2, 3), fault.second);
  }
  // By the first part, and by another that is there.
  for (const int named : {1, 3}) {
    const Status status = open_model(path(named)).status();
    EXPECT_EQ(status.code(), fault.code) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
    for (std::string expected : fault.parts) {
      for (int part = 1; part <= 3; ++part) {
        const std::string mark = fmt::format("{{{}}}", part);
        for (std::size_t at = expected.find(mark); at != std::string::npos; at = expected.find(mark)) expected.replace(at, mark.size(), path(part));
      }
      EXPECT_NE(status.message().find(expected), std::string::npos) << "'" << expected << "' is not in: " << status.message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SplitFaultTest, ::testing::ValuesIn(kFaults), [](const auto& each) { return std::string(each.param.name); });

/// A name that says more parts than there are files opens none of them beyond the first that is missing.
TEST_F(SplitGgufTest, ManyPartsThatAreNotThere) {
  GgufWriter writer;
  add_metadata(writer);
  add_split_keys(writer, 0, 65535, 1);
  const std::string path = folder_.write("model-00001-of-65535.gguf", writer.tensor("b", {1}, GgmlType::kF32, "abcd").build());
  const Status status = open_model(path).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("part 2 of 65535"), std::string::npos) << status.message();
  EXPECT_EQ(open_model(folder_.path("model-00001-of-00009.gguf")).status().code(), StatusCode::kNotFound);
}

/// Padding to an alignment of gigabytes is not allocated.
TEST_F(SplitGgufTest, AHugeAlignmentAllocatesNothing) {
  GgufWriter writer;
  add_metadata(writer);
  writer.u32("general.alignment", 1u << 31);
  add_split_keys(writer, 0, 2, 1);
  const std::string first = folder_.write(part_name(1, 2), writer.build());
  GgufWriter second;
  add_split_keys(second, 1, 2, 1);
  folder_.write(part_name(2, 2), second.tensor("b", {1}, GgmlType::kF32, "abcd").build());
  const Result<ByteSource> source = open_model(first);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const Result<GgufFile> file = GgufFile::parse(*source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors()[0].offset_bytes, std::uint64_t{1} << 31);
  EXPECT_EQ(bytes_at(*source, file->tensors()[0].offset_bytes, 4), bytes_at(source_of("abcd"), 0, 4));
  EXPECT_EQ(bytes_at(*source, (std::uint64_t{1} << 31) - 4, 4), std::vector<std::byte>(4));
}

}  // namespace
}  // namespace rondo::models::split_gguf_test
