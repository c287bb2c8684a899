// Compute pipelines: one per Kernel (module, specialization constants and size of subgroups), made once per device and shared.
//
// Thread-safe: several threads may create pipelines at once. Handles live as long as the Device. SPIR-V is embedded at build time; nothing is compiled from source.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <rondo/executor.h>
#include <rondo/status.h>

#include "runtime/program.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

class Device;

/// The module's name, as in shaders/<name>.comp; of one for activations in f16 <name>_f16.
const char* shader_name(Shader shader);

/// The module's SPIR-V, unpacked.
std::vector<std::uint32_t> shader_code(Shader shader);

/// `n_words` words as cmake/pack_spirv.cpp packs them (runtime/packed_spirv.h). `base`: the module whose variant they are, or none.
std::vector<std::uint32_t> unpack_words(std::span<const std::uint8_t> packed, std::size_t n_words, std::span<const std::uint32_t> base);

/// Module number `i` of what the build packed: `modules` know where in `bytes` they lie, and the one that they are a variant of.
template <typename Modules>
std::vector<std::uint32_t> unpack_module(std::span<const std::uint8_t> bytes, const Modules& modules, std::size_t i) {
  const auto& packed = modules[i];
  const std::vector<std::uint32_t> base = packed.base < 0 ? std::vector<std::uint32_t>{} : unpack_module(bytes, modules, static_cast<std::size_t>(packed.base));
  return unpack_words(bytes.subspan(packed.offset, packed.size_bytes), packed.n_words, base);
}

/// Of all modules together: what compiled pipelines depend on besides device and driver.
std::uint64_t embedded_spirv_hash();

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
