// A proof that Programs have the barriers they need. Shares no code with the pass that places them.
//
// Happens-before over byte intervals: every buffer is split at the ends of all ranges; each elementary interval remembers
// the barrier epochs of its last write and last read. Pure, no Vulkan.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace rondo::graph {

/// Two accesses to the same bytes, at least one a write, with no barrier between them.
struct Hazard {
  std::string earlier;  ///< "program: dispatch index label"
  std::string later;
  std::uint32_t buffer = 0;
  std::uint64_t offset_bytes = 0;
};

/// One of the Programs of a sequence, and whether its recording begins with the entry barrier (it does, but a test
/// proves that it must).
struct SequencedProgram {
  const runtime::Program* program = nullptr;
  bool entry_barrier = true;
};

/// The hazards of running `sequence` in order, at most `limit`. Empty: proven free of them. Within one dispatch nothing
/// is checked: what a kernel does to its own bindings is its own affair.
std::vector<Hazard> find_hazards(std::span<const SequencedProgram> sequence, std::size_t limit = 16);

/// `programs`: each alone, each after itself, and each ordered pair.
std::vector<Hazard> find_hazards_in_all_orders(std::span<const runtime::Program* const> programs);

}  // namespace rondo::graph
