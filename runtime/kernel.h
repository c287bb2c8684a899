// Compute pipelines: one per Kernel (module, specialization constants and size of subgroups), made once per device and shared.
//
// Thread-safe: several threads may create pipelines at once. Handles live as long as the Device. SPIR-V is embedded at build time; nothing is compiled from source.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rondo/executor.h>
#include <rondo/status.h>

#include "runtime/device_caps.h"
#include "runtime/program.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

class Device;

/// The module's name, as in shaders/<name>.comp; of one for activations in f16 <name>_f16.
const char* shader_name(Shader shader);

/// The module's SPIR-V, unpacked; and as such a device gets it (DeviceCaps::sinks_loads).
std::vector<std::uint32_t> shader_code(Shader shader);
std::vector<std::uint32_t> shader_code(Shader shader, const DeviceCaps& caps);

/// Of all modules together: what compiled pipelines depend on besides device and driver.
std::uint64_t embedded_spirv_hash();
/// The same as 16 hexadecimal digits, for files that people read.
std::string embedded_spirv_key();

/// A pipeline with what is needed to bind and push to it.
struct Pipeline {
  Kernel kernel;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline handle = VK_NULL_HANDLE;
};

class KernelCache {
 public:
  explicit KernelCache(Device& device) : device_(device) {}
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  /// The pipeline of `kernel`, created if it isn't there. Errors: the driver's, naming the shader.
  Result<const Pipeline*> find_or_create(const Kernel& kernel);
  /// The same for all of `kernels`, through `executor` where there is one. The first error in their order.
  Status create_all(std::span<const Kernel> kernels, const Executor& executor);
  std::size_t n_pipelines() const;

 private:
  struct Layout {
    std::uint32_t n_bindings = 0, push_bytes = 0;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
  };
  const Pipeline* find_locked(const Kernel& kernel) const;
  Result<Layout> find_or_create_layout(const Kernel& kernel);
  Result<VkShaderModule> find_or_create_module(Shader shader);

  Device& device_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  std::vector<Layout> layouts_;
  std::vector<VkShaderModule> modules_;
};

}  // namespace rondo::runtime
