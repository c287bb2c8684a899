#include "tools/simulator/simulate.h"

#include <algorithm>
#include <bit>

#include "runtime/fmt.h"
#include "tools/simulator/machine.h"

namespace rondo::simulator {

namespace {

constexpr std::uint32_t kMostInvocations = 1024;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of what the invocations of a workgroup hold

Status refuse(const std::string& what) { return Status(StatusCode::kInvalidArgument, what); }

}  // namespace

Result<Report> simulate(const Module& module, std::span<Buffer> buffers, const Launch& launch) {
  if (!std::has_single_bit(launch.subgroup_size) || launch.subgroup_size < 4 || launch.subgroup_size > kMostLanes) return refuse(fmt::format("a subgroup has {} lanes; it must be a power of two from 4 to {}", launch.subgroup_size, kMostLanes));
  if (module.subgroup_size != 0 && module.subgroup_size != launch.subgroup_size) return refuse(fmt::format("the module was read for subgroups of {} lanes", module.subgroup_size));
  std::uint64_t invocations = 1;
  for (const std::uint32_t size : module.local_size) invocations = std::min<std::uint64_t>(invocations * size, std::uint64_t{1} << 32);
  if (invocations == 0 || invocations > kMostInvocations) return refuse(fmt::format("a workgroup is {} x {} x {}, but may have {} invocations at most", module.local_size[0], module.local_size[1], module.local_size[2], kMostInvocations));
  const std::uint64_t bytes = (std::uint64_t{module.n_slots} * 4 + module.private_bytes) * std::max<std::uint64_t>(invocations, launch.subgroup_size);
  if (bytes > kMostBytes) return refuse(fmt::format("the values of a workgroup's {} invocations take {} MB; the simulator gives them {}", invocations, bytes >> 20, kMostBytes >> 20));
  for (const std::uint32_t workgroups : launch.grid) invocations = std::min<std::uint64_t>(invocations * workgroups, std::uint64_t{1} << 32);
  if (launch.grid[0] == 0 || launch.grid[1] == 0 || launch.grid[2] == 0) return refuse(fmt::format("a grid of {} x {} x {} workgroups has none", launch.grid[0], launch.grid[1], launch.grid[2]));
  if (invocations == std::uint64_t{1} << 32) return refuse(fmt::format("a grid of {} x {} x {} workgroups has more invocations than 32 bits count", launch.grid[0], launch.grid[1], launch.grid[2]));
  if (launch.push.size() < module.push_bytes) return refuse(fmt::format("there are {} bytes of push constants, but the module reads {}", launch.push.size(), module.push_bytes));
  for (const Variable& variable : module.variables) {
    if (variable.space != Space::kBuffer) continue;
    if (variable.binding >= launch.bindings.size() || launch.bindings[variable.binding].buffer == kNone) return refuse(fmt::format("binding {} ({}) has no buffer", variable.binding, variable.name));
    const BoundRange& range = launch.bindings[variable.binding];
    if (range.buffer >= buffers.size() || range.offset_bytes + range.size_bytes > buffers[range.buffer].bytes.size()) return refuse(fmt::format("binding {} ({}) is {} bytes from {} on, which are not in its buffer", variable.binding, variable.name, range.size_bytes, range.offset_bytes));
  }
  return Machine(module, buffers, launch).run();
}

}  // namespace rondo::simulator
