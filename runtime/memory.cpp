#include "runtime/memory.h"

#include <algorithm>
#include <utility>

#include "runtime/fmt.h"

namespace rondo::runtime {

Result<Buffer> Buffer::create(Device& device, std::uint64_t size_bytes, MemoryIntent intent, const char* what) {
  const VolkDeviceTable& vk = device.vk();
  const DeviceCaps& caps = device.caps();
  RONDO_TRY(device.check_lost());
  device.tidy();  // what was dropped makes room
  const std::uint64_t asked_bytes = size_bytes;
  size_bytes = allocated_bytes(size_bytes);
  if (size_bytes < asked_bytes || size_bytes > caps.max_allocation_bytes) {
    return Status(StatusCode::kUnsupported, fmt::format("device {}: {} needs {} bytes in one allocation but {} is the most", caps.name, what, asked_bytes, caps.max_allocation_bytes));
  }
  Buffer buffer;
  buffer.device_ = &device;
  buffer.size_bytes_ = size_bytes;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = size_bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  const auto failed = [&](VkResult result) {
    return device.fail(result, fmt::format("device {}: {} bytes for {} can't be had", caps.name, size_bytes, what));
  };
  VkResult result = vk.vkCreateBuffer(device.handle(), &info, nullptr, &buffer.handle_);
  if (result != VK_SUCCESS) return failed(result);

  VkMemoryRequirements needs{};
  vk.vkGetBufferMemoryRequirements(device.handle(), buffer.handle_, &needs);
  const int type = choose_memory_type(device.memory_types(), needs.memoryTypeBits, intent, caps.type);
  if (type < 0) return Status(StatusCode::kUnsupported, fmt::format("device {}: there is no memory type for {}", caps.name, what));
  const VkMemoryAllocateInfo allocation{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, needs.size, static_cast<std::uint32_t>(type)};
  result = vk.vkAllocateMemory(device.handle(), &allocation, nullptr, &buffer.memory_);
  if (result == VK_SUCCESS) result = vk.vkBindBufferMemory(device.handle(), buffer.handle_, buffer.memory_, 0);
  const std::uint32_t flags = device.memory_types()[static_cast<std::size_t>(type)].flags;
  buffer.coherent_ = (flags & kMemoryHostCoherent) != 0;
  if (result == VK_SUCCESS && (flags & kMemoryHostVisible)) {
    void* mapped = nullptr;
    result = vk.vkMapMemory(device.handle(), buffer.memory_, 0, VK_WHOLE_SIZE, 0, &mapped);
    buffer.mapped_ = static_cast<std::byte*>(mapped);
  }
  if (result != VK_SUCCESS) return failed(result);
  device.count_buffer(intent, size_bytes);
  buffer.counted_as_ = intent;
  return buffer;
}

Buffer::~Buffer() {
  if (!device_ || (!handle_ && !memory_)) return;
  if (counted_as_) device_->discount_buffer(*counted_as_, size_bytes_);
  Garbage garbage;
  if (handle_) garbage.buffers.push_back(handle_);
  if (memory_) garbage.memories.push_back(memory_);
  device_->retire(std::move(garbage));
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(memory_, other.memory_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_, other.mapped_);
  std::swap(coherent_, other.coherent_);
  std::swap(counted_as_, other.counted_as_);
}

VkMappedMemoryRange Buffer::atoms(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  const std::uint64_t atom = std::max(device_->caps().non_coherent_atom_bytes, 1u);
  const std::uint64_t begin = offset_bytes / atom * atom;
  const std::uint64_t end = (offset_bytes + size_bytes + atom - 1) / atom * atom;
  return {VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, nullptr, memory_, begin, end >= size_bytes_ ? VK_WHOLE_SIZE : end - begin};
}

Status Buffer::flush(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  if (coherent_ || !mapped_) return {};
  const VkMappedMemoryRange range = atoms(offset_bytes, size_bytes);
  const VkResult result = device_->vk().vkFlushMappedMemoryRanges(device_->handle(), 1, &range);
  return result == VK_SUCCESS ? Status() : device_->fail(result, "memory: flushing failed");
}

Status Buffer::invalidate(std::uint64_t offset_bytes, std::uint64_t size_bytes) const {
  if (coherent_ || !mapped_) return {};
  const VkMappedMemoryRange range = atoms(offset_bytes, size_bytes);
  const VkResult result = device_->vk().vkInvalidateMappedMemoryRanges(device_->handle(), 1, &range);
  return result == VK_SUCCESS ? Status() : device_->fail(result, "memory: invalidating failed");
}

}  // namespace rondo::runtime
