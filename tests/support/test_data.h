// Where tests find their files: RONDO_TEST_DATA (other people's, optional), tests/data and the bundled demo model.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

namespace rondo::testing {

/// The folder RONDO_TEST_DATA names, or "" if it isn't set.
inline std::string test_data_folder() {
  const char* folder = std::getenv("RONDO_TEST_DATA");
  return folder == nullptr ? "" : folder;
}

/// The path of `relative` within RONDO_TEST_DATA; call it after RONDO_REQUIRE_TEST_DATA.
inline std::string test_data_path(const std::string& relative) { return test_data_folder() + "/" + relative; }

/// The path of `relative` within tests/data.
inline std::string tests_data_path(const std::string& relative) {
  return std::string(RONDO_TESTS_DATA_DIR) + "/" + relative;
}

/// RADV's ICD manifest, whose null device compiles for AMD GPUs without one; "" if it is not installed.
inline std::string radv_manifest() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/vulkan/icd.d", error)) {
    if (entry.path().filename().string().starts_with("radeon_icd")) return entry.path();
  }
  return "";
}

/// All bytes of the file, which must exist.
inline std::string read_whole_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.is_open()) << path;
  return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

/// `text` cut at each `separator`.
inline std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t end = text.find(separator); end != std::string_view::npos; end = text.find(separator)) {
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

}  // namespace rondo::testing

/// Skips the test, with the reason, where the test data folder isn't known.
#define RONDO_REQUIRE_TEST_DATA() \
  if (::rondo::testing::test_data_folder().empty()) GTEST_SKIP() << "RONDO_TEST_DATA is not set"
