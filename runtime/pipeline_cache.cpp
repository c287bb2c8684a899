#include "runtime/pipeline_cache.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/device.h"
#include "runtime/fmt.h"
#include "runtime/hash.h"
#include "runtime/kernel.h"

namespace rondo::runtime {

namespace {

constexpr std::array<char, 8> kMagic = {'R', 'O', 'N', 'D', 'O', 'P', 'C', '1'};

/// At the beginning of a blob; all numbers in the machine's own order, which a foreign file fails by.
struct BlobHeader {
  std::array<char, 8> magic = kMagic;
  std::uint64_t device_hash = 0;  ///< of the driver's own header: vendor, device, cache UUID
  std::uint64_t spirv_hash = 0;
  std::uint64_t size_bytes = 0;   ///< of the driver's data behind this header
  std::uint64_t checksum = 0;     ///< of that data
};

/// The part of the driver's data that says for which device and driver it is.
std::span<const std::byte> identity_of(std::span<const std::byte> data) {
  return data.first(std::min(data.size(), sizeof(VkPipelineCacheHeaderVersionOne)));
}

}  // namespace

PipelineCache::~PipelineCache() {
  if (cache_) device_.vk().vkDestroyPipelineCache(device_.handle(), cache_, nullptr);
}

VkPipelineCache PipelineCache::handle_locked() {
  if (tried_) return cache_;
  tried_ = true;
  const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, nullptr, 0, 0, nullptr};
  if (device_.vk().vkCreatePipelineCache(device_.handle(), &info, nullptr, &cache_) != VK_SUCCESS) cache_ = VK_NULL_HANDLE;
  return cache_;
}

VkPipelineCache PipelineCache::handle() {
  const std::lock_guard lock(mutex_);
  return handle_locked();
}

Result<std::vector<std::byte>> PipelineCache::data_locked() {
  std::vector<std::byte> data;
  const VkPipelineCache cache = handle_locked();
  if (!cache) return data;
  const VolkDeviceTable& vk = device_.vk();
  std::size_t size = 0;
  VkResult result = vk.vkGetPipelineCacheData(device_.handle(), cache, &size, nullptr);
  if (result == VK_SUCCESS) {
    data.resize(size);
    result = vk.vkGetPipelineCacheData(device_.handle(), cache, &size, data.data());
    data.resize(std::min(size, data.size()));
  }
  // Incomplete: another thread has added a pipeline since; what there is, is whole.
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return device_.fail(result, "pipeline cache: its data can't be read");
  return data;
}

std::string PipelineCache::add(std::span<const std::byte> blob) {
  BlobHeader header;
  if (blob.size() < sizeof header) return "it is too short";
  std::memcpy(&header, blob.data(), sizeof header);
  const std::span<const std::byte> data = blob.subspan(sizeof header);
  if (header.magic != kMagic) return "it is no pipeline cache of this format";
  if (header.size_bytes != data.size()) return fmt::format("it holds {} bytes of pipelines but says {}", data.size(), header.size_bytes);
  if (header.checksum != fnv1a(data)) return "it is damaged";
  if (header.spirv_hash != embedded_spirv_hash()) return "it was made for other kernels";
  const std::lock_guard lock(mutex_);
  const Result<std::vector<std::byte>> own = data_locked();
  if (!own.ok()) return own.status().message();
  if (!cache_) return "the driver makes no pipeline cache";
  if (header.device_hash != fnv1a(identity_of(*own))) return "it was made for another device or driver";
  const VolkDeviceTable& vk = device_.vk();
  const VkPipelineCacheCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, nullptr, 0, data.size(), data.data()};
  VkPipelineCache other = VK_NULL_HANDLE;
  if (vk.vkCreatePipelineCache(device_.handle(), &info, nullptr, &other) != VK_SUCCESS) return "the driver does not take it";
  const VkResult merged = vk.vkMergePipelineCaches(device_.handle(), cache_, 1, &other);
  vk.vkDestroyPipelineCache(device_.handle(), other, nullptr);
  return merged == VK_SUCCESS ? "" : "the driver does not take it";
}

Result<std::vector<std::byte>> PipelineCache::blob() {
  const std::lock_guard lock(mutex_);
  RONDO_ASSIGN(const std::vector<std::byte> data, data_locked());
  if (data.size() <= sizeof(VkPipelineCacheHeaderVersionOne)) return std::vector<std::byte>();
  BlobHeader header;
  header.device_hash = fnv1a(identity_of(data));
  header.spirv_hash = embedded_spirv_hash();
  header.size_bytes = data.size();
  header.checksum = fnv1a(data);
  std::vector<std::byte> blob(sizeof header + data.size());
  std::memcpy(blob.data(), &header, sizeof header);
  std::memcpy(blob.data() + sizeof header, data.data(), data.size());
  return blob;
}

std::string PipelineCache::key() {
  const std::lock_guard lock(mutex_);
  const Result<std::vector<std::byte>> data = data_locked();
  return fmt::format("{:016x}", fnv1a(data.ok() ? identity_of(*data) : std::span<const std::byte>()));
}

}  // namespace rondo::runtime
