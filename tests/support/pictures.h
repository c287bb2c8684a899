// Pictures of random bytes, and what tests/support/image_references.py has made of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "models/image.h"
#include "tests/support/test_data.h"

namespace rondo::tests {

/// As picture() there.
inline models::Image random_picture(std::uint32_t width, std::uint32_t height) {
  models::Image image{width, height, std::vector<std::byte>(std::size_t{3} * width * height)};
  std::uint32_t state = 1000 * width + height;
  for (std::byte& byte : image.rgb) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<std::byte>(state >> 24);
  }
  return image;
}

/// The picture of "WIDTHxHEIGHT".
inline models::Image random_picture(const std::string& size) {
  const std::vector<std::string> sides = testing::split(size, "x");
  return random_picture(static_cast<std::uint32_t>(std::stoul(sides[0])), static_cast<std::uint32_t>(std::stoul(sides[1])));
}

inline std::string references_path() { return testing::tests_data_path("images.safetensors"); }

/// `status` is one line with `code` and all `words`.
inline void expect_refused(const Status& status, StatusCode code, std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), code) << status.message();
  for (const std::string_view word : words) EXPECT_NE(status.message().find(word), std::string::npos) << "'" << word << "' is not in: " << status.message();
  EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
}

}  // namespace rondo::tests
