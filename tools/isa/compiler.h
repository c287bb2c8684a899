// A VkDevice that compiles kernels to look at what became of them, and runs nothing: drivers without hardware are enough.
//
// Owns the device; keeps no pipeline. Every feature that modules may use is enabled, so that other people's compile too.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "runtime/instance.h"
#include "tools/isa/executable.h"

namespace rondo::isa {

/// A SPIR-V module with all that its pipeline needs; its entry point is "main", its buffers are those of set 0.
struct Module {
  std::vector<std::uint32_t> code;
  std::vector<std::uint32_t> constants;  ///< specialization constants 0, 1, 2, ...
  std::uint32_t n_bindings = 0;
  std::uint32_t push_bytes = 0;
  std::uint32_t subgroup_size = 0;  ///< that the pipeline asks for; 0: the driver chooses
  bool full_subgroups = false;
};

class Compiler {
 public:
  /// Errors: kUnsupported (a device without VK_KHR_pipeline_executable_properties or its feature), those of creating a device.
  static Result<std::unique_ptr<Compiler>> create(const runtime::Instance& instance, std::uint32_t index);
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Whether modules can ask for the size of their subgroups, and full ones.
  bool has_subgroup_size_control() const { return has_subgroup_sizes_ && has_full_subgroups_; }

  /// Of several executables of one pipeline, that of the widest subgroups. Errors: the driver's, kInternal (it tells nothing).
  Result<Executable> compile(const Module& module);

 private:
  Compiler() = default;
  struct Pipeline;
  Status create_pipeline(const Module& module, Pipeline& pipeline);
  Result<Executable> read(VkPipeline pipeline) const;
  Status read_executable(VkPipeline pipeline, std::uint32_t index, Executable& executable) const;

  VkDevice handle_ = VK_NULL_HANDLE;
  VolkDeviceTable vk_{};
  bool has_subgroup_sizes_ = false, has_full_subgroups_ = false;
};

/// Whether pipelines of the device can be looked at.
bool has_statistics(const runtime::DeviceSnapshot& snapshot);

}  // namespace rondo::isa
