// Compute pipelines: one per Kernel (module and specialization constants), made once per device and shared.
//
// Thread-safe. Handles live as long as the Device. SPIR-V is embedded at build time; nothing is compiled from source.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <rondo/status.h>

#include "runtime/program.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

class Device;

/// The module's name, as in shaders/<name>.comp.
const char* shader_name(Shader shader);

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
  std::size_t n_pipelines() const;

 private:
  struct Layout {
    std::uint32_t n_bindings = 0, push_bytes = 0;
    VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
  };
  Result<Layout> find_or_create_layout(const Kernel& kernel);
  Result<VkShaderModule> find_or_create_module(Shader shader);

  Device& device_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  std::vector<Layout> layouts_;
  std::vector<VkShaderModule> modules_;
};

}  // namespace rondo::runtime
