// What a simulation tells: what is wrong with a kernel, and what its accesses would cost.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/simulator/module.h"

namespace rondo::simulator {

enum class FindingKind : std::uint8_t {
  kRace,             ///< two invocations touch the same bytes, one writes, and nothing orders them
  kBarrier,          ///< not all invocations of a workgroup come to it
  kUndefined,        ///< what was never written, or an instruction leaves undefined, is stored, branched on or used as an address
  kOutOfBounds,
  kSubgroup,         ///< relies on which lanes of a subgroup are active, or on a lane that is not
  kAlignment,        ///< of a cooperative matrix in memory
  kEndless,          ///< more operations than allowed
};
const char* name_of(FindingKind kind);

struct Finding {
  FindingKind kind{};
  std::string text;         ///< one line, with the places of the source
  std::uint64_t count = 1;  ///< how often the same was seen
};

/// All executions of one access of the source.
struct AccessCount {
  std::uint32_t variable = 0;      ///< index into Module::variables
  std::uint32_t place = 0;         ///< index into Module::places
  enum class Kind : std::uint8_t { kLoad, kStore, kAtomic } kind{};
  std::uint64_t executions = 0;    ///< by a subgroup
  std::uint64_t lanes = 0;         ///< active in all of these
  std::uint64_t lane_bytes = 0;    ///< that lanes ask for
  std::uint64_t bytes = 0;         ///< the same, each byte once for an execution
  std::uint64_t lines64 = 0, lines128 = 0, sectors32 = 0;              ///< of buffers: touched
  std::uint64_t ideal_lines64 = 0, ideal_lines128 = 0, ideal_sectors32 = 0;  ///< if the bytes lay side by side
  std::uint64_t bank_rounds = 0, ideal_bank_rounds = 0;                ///< of shared memory, 32 banks of 4 bytes
};

/// Addresses of the first executions of an access by one subgroup, for a picture.
struct AddressSample {
  std::uint32_t access = 0;                ///< index into Report::accesses
  std::uint32_t lane_bytes = 0;
  std::vector<std::int64_t> addresses;     ///< by lane, in the variable; -1: the lane is off
};

struct Report {
  std::vector<Finding> findings;
  std::vector<AccessCount> accesses;
  std::vector<AddressSample> samples;
  std::uint32_t subgroup_size = 0;
  std::uint64_t operations = 0;         ///< by a subgroup
  std::uint64_t lane_operations = 0;    ///< operations x active lanes
  std::uint64_t divergent_operations = 0;  ///< with a lane off that the subgroup has
  std::uint64_t barriers = 0;           ///< of one workgroup, the most
  std::uint32_t dependent_loads = 0;    ///< longest chain of loads from buffers of which each address, or whether it is made, hangs on the one before
  std::uint32_t loads_in_flight = 0;    ///< loads of buffers in the block that loads most, of which none needs another

  /// Share of lanes that were off, of all operations.
  double idle_lanes() const { return operations == 0 ? 0 : 1 - static_cast<double>(lane_operations) / (static_cast<double>(operations) * subgroup_size); }
};

}  // namespace rondo::simulator
