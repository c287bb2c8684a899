// Cases of check, and any lowered Program, in the simulator.
//
// The cases' storages lie in one buffer as on a device, but exactly as large as they are; what a run does not begin with (outputs,
// activations) is known not to be written. No Vulkan.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/device_caps.h"
#include "tools/check/device_run.h"
#include "tools/simulator/simulate.h"

namespace rondo::simulator {

/// Kernels of the library by what makes them pipelines, each decoded once. Not thread-safe.
class ModuleCache {
 public:
  using Source = std::function<std::vector<std::uint32_t>(runtime::Shader)>;
  /// `spirv_tools`: as of ReadOptions.
  explicit ModuleCache(Loops loops, std::string spirv_tools = {});
  /// Of modules from elsewhere, as a test's; loops are kept.
  explicit ModuleCache(Source source) : source_(std::move(source)) {}

  /// Errors: those of read_module.
  Result<const Module*> find_or_read(const runtime::Kernel& kernel, std::uint32_t subgroup_size);

 private:
  Source source_;
  Loops loops_ = Loops::kKept;
  std::string spirv_tools_;
  std::map<std::tuple<runtime::Shader, std::vector<std::uint32_t>, std::uint32_t>, std::unique_ptr<Module>> modules_;
};

/// A dispatch that has run.
struct SimulatedDispatch {
  const runtime::Dispatch& dispatch;
  const Module& module;
  const Report& report;
  std::vector<graph::StorageKind> kinds;  ///< of what is bound, by binding; empty where there is no graph
};
using OnDispatch = std::function<void(const SimulatedDispatch&)>;

/// Runs a Program's dispatches on `buffers`, whose indices are the Program's. Errors: those of read_module and simulate, with the
/// dispatch's label.
Status simulate_program(ModuleCache& modules, const runtime::Program& program, std::span<Buffer> buffers, std::uint32_t subgroup_size, bool expects_nan, const OnDispatch& on_dispatch);

/// Lowers a case for a device of `caps` and runs it. Errors: those of lowering and simulate_program.
Result<check::DeviceRun> simulate_case(ModuleCache& modules, const check::OpCase& op, const check::RunOptions& options, const runtime::DeviceCaps& caps, std::uint32_t subgroup_size, const OnDispatch& on_dispatch);

/// Caps of a GPU that has all that kernels may use, with subgroups of this size; `cpu`: of a driver that runs on the processor,
/// for the kernels that only such drivers get.
runtime::DeviceCaps simulated_caps(std::uint32_t subgroup_size, bool cpu = false, bool matrices = false);

}  // namespace rondo::simulator
