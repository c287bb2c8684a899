#include "models/formats/safetensors.h"

#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <ostream>
#include <random>
#include <string>

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/cpu_timer.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/test_data.h"

namespace rondo::models::safetensors_test {
namespace {

using rondo::testing::ByteWriter;
using rondo::testing::source_of;

std::string file_of(const std::string& header, const std::string& data) {
  return ByteWriter().number(std::uint64_t{header.size()}).raw(header).raw(data).bytes();
}

Result<SafetensorsFile> parse_bytes(const std::string& bytes) {
  return SafetensorsFile::parse(source_of(bytes, "x.safetensors"));
}

/// A folder that is empty and removed with what is left in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = ::testing::TempDir() + "rondo_safetensors_XXXXXX";
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryFolder() {
    for (const std::string& name : names()) std::remove((path_ + "/" + name).c_str());
    ::rmdir(path_.c_str());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    DIR* folder = ::opendir(path_.c_str());
    if (folder == nullptr) return found;
    while (const dirent* entry = ::readdir(folder)) {
      if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
    }
    ::closedir(folder);
    return found;
  }

 private:
  std::string path_;
};

const std::string kGoodHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"I32","shape":[],"data_offsets":[8,12]},"e":{"dtype":"U8","shape":[3,0],"data_offsets":[12,12]}}  )";
const std::string kGoodData = ByteWriter().number(1.5F).number(-2.0F).number(std::int32_t{-7}).bytes();

TEST(SafetensorsTest, ReadsNamesShapesAndValues) {
  const std::string bytes = file_of(kGoodHeader, kGoodData);
  Result<SafetensorsFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->entries().size(), 3U);
  const SafetensorsEntry* a = file->find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(a->size_bytes, 8U);
  EXPECT_EQ(a->offset_bytes, bytes.size() - 12);
  EXPECT_EQ(file->find("c"), nullptr);
  const ByteSource source = source_of(bytes);
  EXPECT_EQ(file->read_f32(source, "a").value(), (std::vector<float>{1.5F, -2.0F}));
  EXPECT_NE(file->read_f32(source, "a").value(), (std::vector<float>{1.5F, -2.5F}));
  EXPECT_EQ(file->read_i64(source, "b").value(), (std::vector<std::int64_t>{-7}));
  EXPECT_EQ(file->find("e")->n_elements(), 0U);
  EXPECT_EQ(file->read_f32(source, "b").status().message(),
            "x.safetensors: tensor 'b': dtype is I32, expected F32, F16 or BF16");
  EXPECT_EQ(file->read_i64(source, "a").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(file->read_i64(source, "z").status().code(), StatusCode::kNotFound);
}

TEST(SafetensorsTest, ListsTensorsThatNobodyCanRead) {
  const std::string bytes = file_of(R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}})", std::string(7, '\0'));
  const Result<SafetensorsFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find("a")->dtype, SafetensorsDtype::kOther);
  EXPECT_EQ(file->find("a")->spelling(), "F8_E4M3");
  EXPECT_EQ(file->read_f32(source_of(bytes), "a").status().message(), "x.safetensors: tensor 'a': dtype is F8_E4M3, expected F32, F16 or BF16");
  EXPECT_EQ(file->read_f32(source_of(bytes), "b").value(), (std::vector<float>{0}));
}

TEST(SafetensorsTest, ConvertsHalves) {
  std::string f16;
  std::string bf16;
  const std::vector<std::pair<std::uint16_t, float>> halves = {{0x3c00, 1.0F},
                                                               {0xc000, -2.0F},
                                                               {0x7bff, 65504.0F},
                                                               {0x0001, 0x1p-24F},
                                                               {0x83ff, -1023 * 0x1p-24F},
                                                               {0x0400, 0x1p-14F},
                                                               {0x8000, -0.0F},
                                                               {0x7c00, std::numeric_limits<float>::infinity()}};
  for (const auto& half : halves) f16 += ByteWriter().number(half.first).bytes();
  for (const std::uint16_t value : std::vector<std::uint16_t>{0x3f80, 0xc000, 0x7f80}) {
    bf16 += ByteWriter().number(value).bytes();
  }
  const std::string bytes = file_of(
      R"({"h":{"dtype":"F16","shape":[8],"data_offsets":[0,16]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})",
      f16 + bf16);
  Result<SafetensorsFile> file = parse_bytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::vector<float> values = file->read_f32(source_of(bytes), "h").value();
  for (std::size_t i = 0; i < halves.size(); ++i) {
    EXPECT_EQ(values[i], halves[i].second) << i;
    EXPECT_EQ(std::signbit(values[i]), std::signbit(halves[i].second)) << i;
  }
  EXPECT_EQ(file->read_f32(source_of(bytes), "b").value(),
            (std::vector<float>{1.0F, -2.0F, std::numeric_limits<float>::infinity()}));
}

struct HostileCase {
  const char* name;
  std::string header;
  std::size_t data_bytes;
  StatusCode code;
  std::string message;
};

void PrintTo(const HostileCase& hostile, std::ostream* out) { *out << hostile.name; }

class SafetensorsHostileTest : public ::testing::TestWithParam<HostileCase> {};

TEST_P(SafetensorsHostileTest, IsRefusedInOneLineAndQuickly) {
  const std::string bytes = file_of(GetParam().header, std::string(GetParam().data_bytes, '\0'));
  const rondo::testing::CpuTimer timer;
  const Result<SafetensorsFile> file = parse_bytes(bytes);
  const double seconds = timer.seconds();
  ASSERT_FALSE(file.ok());
  const std::string& message = file.status().message();
  EXPECT_EQ(file.status().code(), GetParam().code) << message;
  EXPECT_EQ(message.find("x.safetensors: "), 0U) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(seconds, 1.0);
}

std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets,
                   const std::string& name = "t") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::vector<HostileCase> hostile_cases() {
  constexpr StatusCode kCorrupt = StatusCode::kCorruptData;
  const std::string t4 = tensor("F32", "[1]", "[0,4]");
  return {
      {"no_object", "[]", 0, kCorrupt, "does not begin with '{'"},
      {"empty_header", "", 0, kCorrupt, "does not begin with '{'"},
      {"not_json", "{\"a\":", 0, kCorrupt, "not valid JSON"},
      {"deep", "{" + std::string(100000, '['), 0, kCorrupt, "not valid JSON"},
      {"nested", "{\"t\":" + std::string(100000, '['), 0, kCorrupt, "where the format has something else"},
      {"dtype_number", R"({"t":{"dtype":1}})", 1, kCorrupt, "tensor 't': has a number"},
      {"no_shape", R"({"t":{"dtype":"F32","data_offsets":[0,4]}})", 4, kCorrupt, "tensor 't': lacks"},
      {"field_unknown", R"({"t":{"dtype":"F32","stride":[1]}})", 4, kCorrupt, "field 'stride' is unknown"},
      {"field_twice", R"({"t":{"dtype":"F32","dtype":"F32"}})", 4, kCorrupt, "'dtype' twice"},
      {"shape_negative", "{" + tensor("F32", "[-1]", "[0,4]") + "}", 4, kCorrupt, "has a negative number"},
      {"shape_fraction", "{" + tensor("F32", "[1.0]", "[0,4]") + "}", 4, kCorrupt, "has a fraction"},
      {"shape_nested", "{" + tensor("F32", "[[1]]", "[0,4]") + "}", 4, kCorrupt, "has an array"},
      {"shape_long", "{" + tensor("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4, kCorrupt, "more than 8 dimensions"},
      {"product_wraps", "{" + tensor("F32", "[4294967296,4294967296]", "[0,0]") + "}", 0, kCorrupt, "beyond 64 bits"},
      {"size_wraps", "{" + tensor("F32", "[4611686018427387904]", "[0,0]") + "}", 0, kCorrupt, "beyond 64 bits"},
      {"size_differs", "{" + tensor("F32", "[2]", "[0,4]") + "}", 4, kCorrupt, "hold 4 bytes, expected 8"},
      {"offsets_one", "{" + tensor("F32", "[1]", "[0]") + "}", 4, kCorrupt, "not [begin, end]"},
      {"offsets_three", "{" + tensor("F32", "[1]", "[0,4,8]") + "}", 4, kCorrupt, "more than 2 numbers"},
      {"offsets_reversed", "{" + tensor("F32", "[1]", "[4,0]") + "}", 4, kCorrupt, "not [begin, end]"},
      {"offsets_beyond", "{" + tensor("F32", "[1]", "[0,4]") + "}", 3, kCorrupt, "truncated"},
      {"offsets_huge", "{" + tensor("U8", "[18446744073709551615]", "[0,18446744073709551615]") + "}", 3, kCorrupt,
       "truncated"},
      {"hole_at_begin", "{" + tensor("F32", "[1]", "[4,8]") + "}", 8, kCorrupt, "data begins at 4, expected 0"},
      {"hole", "{" + t4 + "," + tensor("F32", "[1]", "[8,12]", "u") + "}", 12, kCorrupt,
       "tensor 'u': data begins at 8"},
      {"overlap", "{" + t4 + "," + tensor("F32", "[1]", "[0,4]", "u") + "}", 8, kCorrupt, "overlap or leave a hole"},
      {"data_left", "{" + t4 + "}", 5, kCorrupt, "tensors end at 4, but the file has 5"},
      {"name_twice", "{" + t4 + "," + tensor("F32", "[1]", "[4,8]") + "}", 8, kCorrupt, "tensor 't': is there twice"},
      {"metadata_number", R"({"__metadata__":{"a":1}})", 0, kCorrupt, "header: has a number"},
      {"metadata_twice", R"({"__metadata__":{},"__metadata__":{}})", 0, kCorrupt, "twice"},
      {"metadata_key_twice", R"({"__metadata__":{"a":"","a":""}})", 0, kCorrupt, "twice"},
      {"name_long", "{\"" + std::string(8 << 20, 'n') + "\":1}", 0, kCorrupt, "longer than"},
  };
}

INSTANTIATE_TEST_SUITE_P(Cases, SafetensorsHostileTest, ::testing::ValuesIn(hostile_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(SafetensorsTest, ChecksTheLengthOfItsHeader) {
  EXPECT_NE(parse_bytes("").status().message().find("truncated"), std::string::npos);
  EXPECT_NE(parse_bytes("1234567").status().message().find("truncated"), std::string::npos);
  EXPECT_NE(parse_bytes(ByteWriter().number(std::uint64_t{3}).raw("{}").bytes()).status().message().find("truncated"),
            std::string::npos);
  for (const std::uint64_t size : {std::uint64_t{100000001}, ~std::uint64_t{0}}) {
    EXPECT_NE(parse_bytes(ByteWriter().number(size).raw("{}").bytes()).status().message().find("at most 100000000"),
              std::string::npos);
  }
}

TEST(SafetensorsTest, RefusesATruncatedFileWhereverItIsCut) {
  const std::string whole = file_of(kGoodHeader, kGoodData);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Result<SafetensorsFile> file = parse_bytes(whole.substr(0, size));
    ASSERT_FALSE(file.ok()) << size;
    EXPECT_NE(file.status().message().find("truncated"), std::string::npos) << file.status().message();
  }
}

TEST(SafetensorsTest, SurvivesRandomDamage) {
  const std::string whole = file_of(kGoodHeader, kGoodData);
  std::mt19937 random(20260102);
  std::size_t n_refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = whole;
    bytes[random() % bytes.size()] = static_cast<char>(random());
    if (!parse_bytes(bytes).ok()) ++n_refused;
  }
  EXPECT_GT(n_refused, 5000U);
}

TEST(SafetensorsTest, WritesWhatItReads) {
  const TemporaryFolder folder;
  const std::vector<float> floats = {1.0F, 2.0F, 3.0F};
  const std::vector<std::int64_t> ids = {5, -6};
  const std::vector<SafetensorsTensor> tensors = {
      {"logits \"x\"\\\n\xc3\xa9", SafetensorsDtype::kF32, {1, 3}, std::as_bytes(std::span(floats))},
      {"ids", SafetensorsDtype::kI64, {2}, std::as_bytes(std::span(ids))},
      {"none", SafetensorsDtype::kF32, {0}, {}}};
  const std::string path = folder.path("out.safetensors");
  for (int i = 0; i < 2; ++i) {  // the second time over the first
    const Status status = write_safetensors(path, tensors);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(folder.names(), std::vector<std::string>{"out.safetensors"});
  }
  Result<ByteSource> source = open_file(path);
  ASSERT_TRUE(source.ok());
  Result<SafetensorsFile> file = SafetensorsFile::parse(*source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->entries().size(), 3U);
  EXPECT_EQ(file->read_f32(*source, tensors[0].name).value(), floats);
  EXPECT_EQ(file->find(tensors[0].name)->shape, tensors[0].shape);
  EXPECT_EQ(file->read_i64(*source, "ids").value(), ids);
  EXPECT_TRUE(file->read_f32(*source, "none").value().empty());
  EXPECT_EQ(file->find("ids")->offset_bytes % 4, 0U);
}

TEST(SafetensorsTest, WritesAnEmptyFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_safetensors(folder.path("empty"), {}).ok());
  Result<ByteSource> source = open_file(folder.path("empty"));
  ASSERT_TRUE(source.ok());
  EXPECT_TRUE(SafetensorsFile::parse(*source).ok());
}

TEST(SafetensorsTest, RefusesToWriteWhatItWouldNotRead) {
  const TemporaryFolder folder;
  const std::vector<float> floats = {1.0F, 2.0F};
  const auto data = std::as_bytes(std::span(floats));
  const std::vector<std::vector<SafetensorsTensor>> cases = {
      {{"a", SafetensorsDtype::kF32, {3}, data}},
      {{"a", SafetensorsDtype::kF32, {2}, data}, {"a", SafetensorsDtype::kF32, {2}, data}},
      {{"\xff", SafetensorsDtype::kF32, {2}, data}},
      {{"__metadata__", SafetensorsDtype::kF32, {2}, data}}};
  for (const std::vector<SafetensorsTensor>& tensors : cases) {
    const Status status = write_safetensors(folder.path("x"), tensors);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    EXPECT_EQ(status.message().find(folder.path("x")), 0U) << status.message();
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(SafetensorsTest, LeavesNothingBehindWhenWritingFails) {
  const TemporaryFolder folder;
  const std::vector<float> floats(100000);
  const std::vector<SafetensorsTensor> tensors = {
      {"a", SafetensorsDtype::kF32, {100000}, std::as_bytes(std::span(floats))}};
  const std::string path = folder.path("out.safetensors");
  ASSERT_TRUE(write_safetensors(path, {}).ok());
  const std::string before = rondo::testing::read_whole_file(path);

  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {10000, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_safetensors(path, tensors);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_EQ(status.message().find(path), 0U) << status.message();
  EXPECT_EQ(folder.names(), std::vector<std::string>{"out.safetensors"});
  EXPECT_EQ(rondo::testing::read_whole_file(path), before);
}

TEST(SafetensorsTest, RefusesPlacesThatCannotBeWritten) {
  const TemporaryFolder folder;
  const Status absent = write_safetensors(folder.path("no/such/folder"), {});
  EXPECT_EQ(absent.code(), StatusCode::kIo);
  EXPECT_EQ(absent.message().find(folder.path("no/such/folder")), 0U);
  EXPECT_EQ(write_safetensors("/dev/null", {}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(write_safetensors(::testing::TempDir(), {}).code(), StatusCode::kInvalidArgument);
  struct stat info = {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST(SafetensorsTest, ReadsAnExpectedFile) {
  Result<ByteSource> source = open_file(rondo::testing::tests_data_path("tiny-Q4_0.expected.safetensors"));
  ASSERT_TRUE(source.ok()) << source.status().message();
  Result<SafetensorsFile> file = SafetensorsFile::parse(*source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->find("logits")->shape, (std::vector<std::uint64_t>{1, 24, 512}));
  EXPECT_EQ(file->read_i64(*source, "input_ids").value().size(), 24U);
  EXPECT_EQ(file->read_f32(*source, "logits").value().size(), 24U * 512);
}

}  // namespace
}  // namespace rondo::models::safetensors_test
