// SPIR-V as the library carries it: what is packed is what is unpacked.
#include <gtest/gtest.h>

#include <random>
#include <set>
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

/// How many instructions a module has, and how many of them say that a buffer is read only.
std::pair<std::size_t, std::size_t> instructions_of(const std::vector<std::uint32_t>& words) {
  std::size_t n = 0, read_only = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    ++n;
    if ((words[at] & 0xffffu) == 72 && words[at + 3] == 24) ++read_only;  // OpMemberDecorate NonWritable
  }
  return {n, read_only};
}

/// Where loads would be moved, kernels that load ahead say so of no buffer, and are else the same; others stay as they are.
TEST(PackedModulesTest, LoadAheadWhereCompilersSinkLoads) {
  DeviceCaps sinks;
  sinks.sinks_loads = true;
  for (const Shader shader : {Shader::linear_matrix, Shader::linear_matrix_f16, Shader::linear_dot_tiled, Shader::matmul_tiled, Shader::attention_matrix, Shader::linear_subgroup, Shader::rms_norm}) {
    const auto [n, read_only] = instructions_of(shader_code(shader));
    EXPECT_GT(read_only, 0u) << shader_name(shader);
    EXPECT_EQ(shader_code(shader, {}), shader_code(shader)) << shader_name(shader);
    const bool stays = shader == Shader::linear_subgroup || shader == Shader::rms_norm;
    EXPECT_EQ(instructions_of(shader_code(shader, sinks)), (stays ? std::pair{n, read_only} : std::pair{n - read_only, std::size_t{0}})) << shader_name(shader);
  }
}

std::size_t count(const std::vector<std::uint32_t>& words, std::uint32_t op) {
  std::size_t n = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) n += (words[at] & 0xffffu) == op;
  return n;
}

std::size_t count_insertions_into_matrices(const std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t kInsert = 82, kTypeMatrix = 4456;
  std::set<std::uint32_t> types;
  std::size_t n = 0;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16) {
    if ((words[at] & 0xffffu) == kTypeMatrix) types.insert(words[at + 1]);
    n += (words[at] & 0xffffu) == kInsert && types.contains(words[at + 1]);
  }
  return n;
}

/// Only devices whose lanes have columns get insertions into matrices; those into vectors stay.
TEST(PackedModulesTest, InsertIntoMatricesWhereLanesHaveColumns) {
  constexpr std::uint32_t kInsert = 82, kCopy = 83;
  DeviceCaps caps;
  caps.matrices = {{8, 8, 16}};
  for (const Shader shader : {Shader::linear_matrix, Shader::linear_matrix_f16, Shader::matmul_matrix, Shader::attention_matrix}) {
    caps.columns_in_lanes = true;
    const std::vector<std::uint32_t> with = shader_code(shader, caps);
    EXPECT_EQ(with, shader_code(shader)) << shader_name(shader);
    caps.columns_in_lanes = false;
    const std::vector<std::uint32_t> without = shader_code(shader, caps);
    EXPECT_EQ(instructions_of(without).first, instructions_of(with).first) << shader_name(shader);
    EXPECT_EQ(count_insertions_into_matrices(without), 0u) << shader_name(shader);
    EXPECT_GE(count_insertions_into_matrices(with), 16u) << shader_name(shader);
    EXPECT_EQ(count(with, kInsert) - count(without, kInsert), count_insertions_into_matrices(with)) << shader_name(shader);
    EXPECT_EQ(count(without, kCopy) - count(with, kCopy), count(with, kInsert) - count(without, kInsert)) << shader_name(shader);
  }
  EXPECT_EQ(shader_code(Shader::linear_tiled, caps), shader_code(Shader::linear_tiled));
}

}  // namespace
}  // namespace rondo::runtime::packed_spirv_test
