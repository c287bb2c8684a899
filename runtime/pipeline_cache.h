// The driver's pipeline cache, and the blob that outlives the process.
//
// A blob is a header (format, the driver's own identity of device and version, a hash of all embedded SPIR-V, length and
// checksum of what follows) and the driver's data. A driver sees only data that it wrote itself, unharmed: drivers have
// crashed on anything else. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "runtime/vulkan_api.h"

namespace rondo::runtime {

class Device;

class PipelineCache {
 public:
  explicit PipelineCache(Device& device) : device_(device) {}
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  /// The cache to create pipelines with, made at the first call; VK_NULL_HANDLE if the driver makes none. Vulkan
  /// synchronises its use for creation itself.
  VkPipelineCache handle();

  /// Takes over the pipelines of `blob`. Returns "" or, in words, why it can't be used.
  std::string add(std::span<const std::byte> blob);

  /// What is in the cache; empty where the driver keeps nothing in it. Errors: kOutOfMemory, kDeviceLost.
  Result<std::vector<std::byte>> blob();

  /// 16 hexadecimal digits for device and driver version.
  std::string key();

 private:
  VkPipelineCache handle_locked();
  Result<std::vector<std::byte>> data_locked();

  Device& device_;
  std::mutex mutex_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  bool tried_ = false;
};

}  // namespace rondo::runtime
