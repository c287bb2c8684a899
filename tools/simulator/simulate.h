// Executes a dispatch of a module, lane by lane in lockstep, and watches every access.
//
// Workgroups run one after the other, the subgroups of one in turns from barrier to barrier, the lanes of one together: the
// lowest block that has lanes runs first. An invocation's number in its workgroup decides its subgroup and lane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "tools/simulator/memory.h"
#include "tools/simulator/module.h"
#include "tools/simulator/report.h"

namespace rondo::simulator {

struct Launch {
  std::uint32_t subgroup_size = 32;          ///< a power of two, 4 to 128
  std::array<std::uint32_t, 3> grid{1, 1, 1};  ///< workgroups
  std::span<const std::byte> push;
  std::vector<BoundRange> bindings;          ///< by binding
  bool expects_nan = false;                  ///< numbers that are none are part of the input: that a minimum or maximum sees one is no finding
  std::uint64_t most_operations = 20'000'000'000;  ///< x active lanes, in all
  std::uint32_t most_findings = 20;
};

/// Runs it on `buffers`, which are changed. Errors: kInvalidArgument (a binding that the module has and the launch has not, push
/// constants shorter than it reads, a subgroup size that is none, a workgroup of more than 1024).
Result<Report> simulate(const Module& module, std::span<Buffer> buffers, const Launch& launch);

}  // namespace rondo::simulator
