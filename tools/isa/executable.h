// What a driver says of a compiled kernel, in the same words for all of them.
//
// Drivers have statistics of their own names and meanings; those that are comparable have a place here, the others stay as they
// are. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/program.h"
#include "tools/isa/disassembly.h"

namespace rondo::isa {

struct Statistic {
  std::string name;
  double value = 0;
};

/// A pipeline's machine code. What the driver does not tell is absent.
struct Executable {
  std::vector<Statistic> statistics;  ///< as the driver names them
  std::vector<CompiledLoop> loops;
  std::uint32_t subgroup_size = 0;

  std::optional<double> registers;      ///< vectors (AMD, Intel, NVIDIA) or quadruples (Adreno), for one invocation
  std::optional<double> spills;         ///< registers kept in memory
  std::optional<double> scratch_bytes;  ///< private memory of one invocation
  std::optional<double> occupancy;      ///< most subgroups at a time: per SIMD (AMD), SM (NVIDIA) or core (Adreno)
  std::optional<double> instructions;
  std::optional<double> cost;           ///< the compiler's estimate, in units of its own
};

/// Fills the fields that `statistics` tell.
void fill_from_statistics(Executable& executable);

/// A loop of the kernel as it was registered, and what became of it.
struct LoopCost {
  double multiply_adds = 0;  ///< of an iteration, as it was compiled
  double vector = 0, memory = 0, shared = 0, scratch = 0;  ///< instructions for one multiply-add
};

/// The compiled loop with the most instructions for one multiply-add, of those that are `registered`; absent where there is
/// none. A loop is a registered one if it has as many multiplications at least.
std::vector<LoopCost> cost_of_loops(const Executable& executable, std::span<const runtime::InnerLoop> registered);

/// The same for a kernel that registered nothing: of all its loops the one with the most multiplications, and those with nearly
/// as many, by their own count. Where the multiply-adds that serve the result, `products`, are known (not 0), of the one loop.
std::vector<LoopCost> cost_of_largest_loops(const Executable& executable, std::uint32_t products = 0);

/// Vector instructions for one multiply-add, on average over the loops; absent where there are none.
std::optional<double> vector_per_multiply_add(const std::vector<LoopCost>& loops);

}  // namespace rondo::isa
