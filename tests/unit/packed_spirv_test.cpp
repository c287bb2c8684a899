// SPIR-V as the library carries it: what is packed is what is unpacked.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/packed_spirv.h"

namespace rondo::runtime::packed_spirv_test {
namespace {

TEST(SpirvCoderTest, GivesBackWhateverWords) {
  std::mt19937 bits(1);
  for (const std::uint32_t most : {3u, 0xffffu, 0xffffffffu}) {
    for (int round = 0; round < 50; ++round) {
      SpirvCoder encoder, decoder;
      for (int i = 0; i < 500; ++i) {
        const auto word = static_cast<std::uint32_t>(bits()) & most;
        ASSERT_EQ(decoder.decode(encoder.encode(word)), word) << "word " << i;
      }
    }
  }
}

/// Every module is one: the magic number, and instructions that end where it does.
TEST(PackedModulesTest, AreWhole) {
  for (std::uint16_t i = 0; i <= static_cast<std::uint16_t>(Shader::widen); ++i) {
    const auto shader = static_cast<Shader>(i);
    const std::vector<std::uint32_t> words = shader_code(shader);
    ASSERT_GT(words.size(), 5u) << shader_name(shader);
    EXPECT_EQ(words[0], 0x07230203u) << shader_name(shader);
    std::size_t at = 5;
    while (at < words.size() && words[at] >> 16 != 0) at += words[at] >> 16;
    EXPECT_EQ(at, words.size()) << shader_name(shader);
  }
}

}  // namespace
}  // namespace rondo::runtime::packed_spirv_test
