#include <rondo/byte_source.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace rondo::byte_source_test {
namespace {

std::string temporary_path(const std::string& name) {
  return ::testing::TempDir() + "rondo_byte_source_" + std::to_string(::getpid()) + "_" + name;
}

std::string write_file(const std::string& name, const std::string& content) {
  std::string path = temporary_path(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string read_text(const ByteSource& source, std::uint64_t offset, std::size_t size) {
  std::string text(size, '?');
  const Status status = source.read(offset, std::as_writable_bytes(std::span(text)));
  EXPECT_TRUE(status.ok()) << status.message();
  return text;
}

std::size_t count_open_files() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  std::size_t n = 0;
  while (::readdir(folder) != nullptr) ++n;
  ::closedir(folder);
  return n;
}

TEST(ByteSourceTest, ReadsAFileAnywhere) {
  const std::string path = write_file("anywhere", "abcdefghij");
  Result<ByteSource> source = open_file(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->name, path);
  EXPECT_EQ(source->size_bytes, 10U);
  EXPECT_EQ(read_text(*source, 0, 10), "abcdefghij");
  EXPECT_EQ(read_text(*source, 7, 3), "hij");
  EXPECT_EQ(read_text(*source, 2, 1), "c");
  EXPECT_EQ(read_text(*source, 10, 0), "");
  std::remove(path.c_str());
}

TEST(ByteSourceTest, SaysWhenTheFileBecameShorter) {
  const std::string path = write_file("shorter", "abcdefghij");
  Result<ByteSource> source = open_file(path);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(read_text(*source, 5, 5), "fghij");
  ASSERT_EQ(::truncate(path.c_str(), 7), 0);
  std::array<std::byte, 5> bytes = {};
  const Status status = source->read(5, bytes);
  EXPECT_EQ(status.code(), StatusCode::kCorruptData);
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("file has become shorter"), std::string::npos) << status.message();
  EXPECT_EQ(read_text(*source, 5, 2), "fg");
  std::remove(path.c_str());
}

TEST(ByteSourceTest, IsClosedWithItsLastCopy) {
  const std::string path = write_file("closed", "abc");
  const std::size_t before = count_open_files();
  {
    ByteSource copy;
    {
      Result<ByteSource> source = open_file(path);
      ASSERT_TRUE(source.ok());
      copy = *source;
    }
    EXPECT_EQ(read_text(copy, 1, 2), "bc");
    if (before != 0) {
      EXPECT_EQ(count_open_files(), before + 1);
    }
  }
  EXPECT_EQ(count_open_files(), before);
  std::remove(path.c_str());
}

TEST(ByteSourceTest, RefusesWhatIsNoRegularFile) {
  const std::string fifo = temporary_path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {::testing::TempDir(), std::string("/dev/null"), fifo}) {
    const Result<ByteSource> source = open_file(path);
    ASSERT_FALSE(source.ok()) << path;
    EXPECT_EQ(source.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(source.status().message().find("expected a regular file"), std::string::npos);
  }
  std::remove(fifo.c_str());
}

TEST(ByteSourceTest, AnEmptyPathIsCalledSo) {
  const Result<ByteSource> source = open_file("");
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(source.status().message(), "open_file: the path is empty");
}

TEST(ByteSourceTest, SaysThatAFileIsAbsent) {
  const std::string path = temporary_path("absent");
  const Result<ByteSource> source = open_file(path);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(source.status().message().find(path), 0U);
}

TEST(ByteSourceTest, RefusesOffsetsBeyondAnyFile) {
  const std::string path = write_file("offset", "abc");
  Result<ByteSource> source = open_file(path);
  ASSERT_TRUE(source.ok());
  std::array<std::byte, 2> bytes = {};
  EXPECT_EQ(source->read(~std::uint64_t{0}, bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(source->read(std::uint64_t{1} << 62, bytes).code(), StatusCode::kCorruptData);
  std::remove(path.c_str());
}

TEST(ByteSourceTest, ReadsMemoryWithinItsBounds) {
  const std::string text = "abcdef";
  const ByteSource source = memory_source(std::as_bytes(std::span(text)), "memory");
  EXPECT_EQ(source.size_bytes, 6U);
  EXPECT_EQ(read_text(source, 2, 4), "cdef");
  EXPECT_EQ(read_text(source, 6, 0), "");
  std::array<std::byte, 2> bytes = {};
  EXPECT_EQ(source.read(5, bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(source.read(~std::uint64_t{0}, bytes).code(), StatusCode::kInvalidArgument);
}

TEST(StatusTest, NamesTheVulkanResult) {
  EXPECT_EQ(Status::from_vulkan(-1, "x").code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Status::from_vulkan(-2, "x").code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(Status::from_vulkan(2, "x").code(), StatusCode::kTimeout);
  EXPECT_EQ(Status::from_vulkan(-3, "x").code(), StatusCode::kInternal);
  const Status lost = Status::from_vulkan(-4, "queue: submission failed");
  EXPECT_EQ(lost.code(), StatusCode::kDeviceLost);
  EXPECT_EQ(lost.vk_result(), -4);
  EXPECT_EQ(lost.message(), "queue: submission failed (VK_ERROR_DEVICE_LOST)");
  EXPECT_EQ(Status::from_vulkan(-123, "x").message(), "x (VkResult -123)");
}

TEST(StatusTest, KeepsItsPlaceUnderAPrefix) {
  const Status status(StatusCode::kIo, "reading failed");
  const Status longer = status.with_prefix("model.gguf");
  EXPECT_EQ(longer.message(), "model.gguf: reading failed");
  EXPECT_EQ(longer.code(), StatusCode::kIo);
  EXPECT_EQ(longer.line(), status.line());
  EXPECT_TRUE(Status().with_prefix("x").ok());
  EXPECT_EQ(Status().with_prefix("x").message(), "");
}

TEST(StatusTest, EveryCodeHasAName) {
  EXPECT_STREQ(status_code_name(StatusCode::kOk), "ok");
  EXPECT_STREQ(status_code_name(StatusCode::kOutOfMemory), "out of memory");
  EXPECT_STREQ(status_code_name(StatusCode::kInternal), "internal");
  EXPECT_STREQ(status_code_name(static_cast<StatusCode>(200)), "unknown");
}

}  // namespace
}  // namespace rondo::byte_source_test
