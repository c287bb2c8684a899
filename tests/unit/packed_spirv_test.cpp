// SPIR-V as the library carries it: what is packed is what is unpacked.
#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
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

constexpr std::size_t kLoads = 100;

/// The words of a module's types, constants and variables, and of a function that names them in kLoads instructions of four words: the same of two modules whose first seed is the same,
/// with other ids, and others between them, by the second.
std::vector<std::uint32_t> words_of_globals(unsigned shared_seed, unsigned own_seed) {
  constexpr std::uint32_t kTypeInt = 21, kTypeArray = 28, kTypePointer = 32, kConstant = 43, kConstantComposite = 44, kVariable = 59, kLoad = 61, kFunction = 54;
  constexpr std::uint32_t kOps[] = {kTypeInt, kTypeArray, kTypePointer, kConstant, kConstantComposite, kVariable};
  const auto below = [](std::mt19937& bits, std::uint32_t end) { return static_cast<std::uint32_t>(bits() % end); };
  std::mt19937 shared(shared_seed), own(own_seed);
  std::vector<std::uint32_t> words = {0x07230203, 0x10300, 0, 200, 0};
  std::uint32_t next_id = 1 + below(own, 5);
  std::vector<std::uint32_t> ids;
  const auto add = [&](std::uint32_t op, std::initializer_list<std::uint32_t> operands) {
    words.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | op);
    words.insert(words.end(), operands);
  };
  for (int i = 0; i < 60; ++i) {
    const auto any_id = [&] { return i == 0 ? 0 : ids[below(shared, static_cast<std::uint32_t>(i))]; };
    const std::uint32_t op = kOps[below(shared, std::size(kOps))], first = any_id(), second = any_id(), literal = below(shared, 4);
    if (below(own, 8) == 0) add(kTypeInt, {next_id++, 8, below(own, 2)});
    const std::uint32_t id = next_id++;
    ids.push_back(id);
    if (op == kTypeInt) add(op, {id, 16, literal});
    else if (op == kTypePointer) add(op, {id, literal, first});
    else if (op == kTypeArray) add(op, {id, first, second});
    else add(op, {first, id, op == kConstantComposite ? second : literal});
  }
  add(kFunction, {2, next_id, 0, 3});
  for (std::size_t i = 0; i < kLoads; ++i) {
    const std::uint32_t type = ids[below(shared, 60)], pointer = ids[below(shared, 60)];
    add(kLoad, {type, ++next_id, pointer});
  }
  return words;
}

/// Types and constants are told by what they mean, as far as the base has such.
TEST(SpirvCoderTest, GivesBackWhatIsDefinedLikeInItsBase) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<std::uint32_t> base = words_of_globals(seed, 1), words = words_of_globals(seed, 2);
    SpirvCoder base_coder, alone;
    std::vector<std::uint64_t> of_base, with_base, by_itself;
    for (const std::uint32_t word : base) of_base.push_back(base_coder.encode(word));
    SpirvCoder encoder(&base_coder), decoder(&base_coder);
    for (std::size_t i = 0; i < words.size(); ++i) {
      with_base.push_back(encoder.encode(words[i]));
      by_itself.push_back(alone.encode(words[i]));
      ASSERT_EQ(decoder.decode(with_base[i]), words[i]) << "seed " << seed << ", word " << i;
    }
    const auto n_like_base = [&](const std::vector<std::uint64_t>& numbers) {
      std::size_t n = 0;
      for (std::size_t i = 1; i <= 4 * kLoads; ++i) n += numbers[numbers.size() - i] == of_base[of_base.size() - i];
      return n;
    };
    EXPECT_GT(n_like_base(with_base), 38 * kLoads / 10) << "seed " << seed;
    EXPECT_LT(n_like_base(by_itself), n_like_base(with_base)) << "seed " << seed;
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
  for (const Shader shader : {Shader::linear_matrix, Shader::linear_matrix_f16, Shader::linear_dot_tiled, Shader::matmul_tiled, Shader::matmul_half_tiled, Shader::attention_matrix, Shader::linear_subgroup, Shader::rms_norm}) {
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
