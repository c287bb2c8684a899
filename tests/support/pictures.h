// Pictures of random bytes, and what tests/support/image_references.py has made of them.
#pragma once

#include <cstdint>
#include <string>
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

}  // namespace rondo::tests
