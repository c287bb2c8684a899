// Loops in the machine code that Mesa's compilers print: RADV (AMD), ANV (Intel), turnip (Adreno) and NVK (NVIDIA).
//
// A loop is a branch backwards and all between; its counts are those of its own instructions, not of loops inside it. What
// happens in loops is what a kernel costs: compilers' own totals assume how often each is run through. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo::isa {

/// What an instruction occupies. Up to kSpecial: the vector units.
enum class Kind : std::uint8_t {
  kMultiplyAdd,
  kMultiply,
  kDot,      ///< of four bytes, added
  kMatrix,
  kFloat,    ///< other arithmetic of floats
  kInteger,  ///< and logic
  kConvert,
  kSelect,   ///< and comparisons
  kMove,
  kSpecial,  ///< exponentials, reciprocals and the like
  kScalar,   ///< once for all invocations of a subgroup
  kMemory,
  kShared,
  kScratch,
  kBarrier,
  kWait,     ///< for results of others
  kBranch,
};
constexpr std::size_t kKinds = 17;

/// "multiply_add", "memory" and so on.
const char* kind_name(Kind kind);

/// A loop's own instructions, for one iteration by one invocation.
struct CompiledLoop {
  std::size_t first_line = 0, last_line = 0;  ///< of the text, from 1
  bool innermost = true;
  std::array<double, kKinds> counts{};  ///< Intel's instructions for a part of a subgroup count as that part
  double multiply_adds = 0;             ///< multiplications with or without addition, those of packs and dot products each

  void add(Kind kind, double n, double of_multiply_adds) {
    counts[static_cast<std::size_t>(kind)] += n;
    multiply_adds += of_multiply_adds;
  }
  double count(Kind kind) const { return counts[static_cast<std::size_t>(kind)]; }
  double vector_instructions() const;
};

/// Whether loops can be found in representations of this name, as in "Assembly" or "NAK assembly".
bool is_disassembly(std::string_view representation);

/// The loops of a representation for which that holds, in the order of their first lines. `subgroup_size` is the executable's.
std::vector<CompiledLoop> find_loops(std::string_view representation, std::string_view text, std::uint32_t subgroup_size);

}  // namespace rondo::isa
