#include "runtime/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rondo::runtime {

CommandList::CommandList(CommandList&& other) noexcept
    : device_(other.device_), pool_(std::exchange(other.pool_, VK_NULL_HANDLE)), commands_(std::exchange(other.commands_, VK_NULL_HANDLE)) {}

CommandList& CommandList::operator=(CommandList&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pool_, other.pool_);
  std::swap(commands_, other.commands_);
  return *this;
}

CommandList::~CommandList() {
  if (!pool_) return;
  Garbage garbage;
  garbage.command_pools.push_back(pool_);
  device_->retire(std::move(garbage));
}

Status CommandList::begin() {
  const VolkDeviceTable& vk = device_->vk();
  VkResult result = VK_SUCCESS;
  if (!pool_) {
    const VkCommandPoolCreateInfo info{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT, device_->queue_family()};
    result = vk.vkCreateCommandPool(device_->handle(), &info, nullptr, &pool_);
  } else {
    result = vk.vkResetCommandPool(device_->handle(), pool_, 0);
  }
  if (result == VK_SUCCESS && !commands_) {
    const VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    result = vk.vkAllocateCommandBuffers(device_->handle(), &allocation, &commands_);
  }
  if (result == VK_SUCCESS) {
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, nullptr};
    result = vk.vkBeginCommandBuffer(commands_, &begin);
  }
  if (result != VK_SUCCESS) return device_->fail(result, "transfer: the command buffer can't be recorded");
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                               VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  vk.vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0,
                          nullptr, 0, nullptr);
  return {};
}

void CommandList::copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to, std::uint64_t to_offset, std::uint64_t size_bytes) {
  const VkBufferCopy region{from_offset, to_offset, size_bytes};
  device_->vk().vkCmdCopyBuffer(commands_, from.handle(), to.handle(), 1, &region);
}

void CommandList::update(const Buffer& to, std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = 65536;  // vkCmdUpdateBuffer's limit
  for (std::size_t at = 0; at < bytes.size(); at += kMost) {
    const std::size_t n = std::min(kMost, bytes.size() - at);
    device_->vk().vkCmdUpdateBuffer(commands_, to.handle(), offset_bytes + at, n, bytes.data() + at);
  }
}

void CommandList::wait_for_copies() {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
  device_->vk().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void CommandList::reset(const TimestampPool& timestamps) { device_->vk().vkCmdResetQueryPool(commands_, timestamps.handle(), 0, timestamps.n_queries()); }

void CommandList::note_time(const TimestampPool& timestamps, std::uint32_t i) {
  device_->vk().vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps.handle(), i);
}

void CommandList::fill(const Buffer& to, std::uint32_t word) { fill(to, word, 0, VK_WHOLE_SIZE); }

void CommandList::fill(const Buffer& to, std::uint32_t word, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  device_->vk().vkCmdFillBuffer(commands_, to.handle(), offset_bytes, size_bytes, word);
}

Result<VkCommandBuffer> CommandList::end() {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
  device_->vk().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
  const VkResult result = device_->vk().vkEndCommandBuffer(commands_);
  if (result != VK_SUCCESS) return device_->fail(result, "transfer: the command buffer can't be recorded");
  return commands_;
}

Uploader::Uploader(Device& device, std::uint64_t slot_bytes)
    : device_(device), slot_bytes_(slot_bytes), slots_{Slot{{}, CommandList(device)}, Slot{{}, CommandList(device)}} {}

Status Uploader::reserve(const Buffer& to, std::uint64_t total_bytes) {
  if (to.mapped()) return {};
  assert(total_bytes <= slot_bytes_);
  if (slots_[current_].open && slots_[current_].used_bytes + total_bytes > slot_bytes_) RONDO_TRY(submit());
  Slot& slot = slots_[current_];
  if (slot.open) return {};
  if (slot.done_value) RONDO_TRY(device_.wait(slot.done_value, ~0ull));
  if (!slot.staging.handle()) {
    RONDO_ASSIGN(slot.staging, Buffer::create(device_, slot_bytes_, MemoryIntent::kUpload, "staging"));
  }
  RONDO_TRY(slot.commands.begin());
  slot.open = true;
  slot.used_bytes = 0;
  return {};
}

std::byte* Uploader::target(const Buffer& to, std::uint64_t offset_bytes, std::uint64_t size_bytes) {
  if (to.mapped()) return to.mapped() + offset_bytes;
  Slot& slot = slots_[current_];
  std::byte* at = slot.staging.mapped() + slot.used_bytes;
  slot.commands.copy(slot.staging, slot.used_bytes, to, offset_bytes, size_bytes);
  slot.used_bytes += size_bytes;
  return at;
}

Status Uploader::submit() {
  Slot& slot = slots_[current_];
  if (!slot.open) return {};
  RONDO_TRY(slot.staging.flush(0, slot.used_bytes));
  RONDO_ASSIGN(const VkCommandBuffer commands, slot.commands.end());
  const Batch batch{{&commands, 1}};
  RONDO_ASSIGN(slot.done_value, device_.submit({&batch, 1}));
  slot.open = false;
  current_ = (current_ + 1) % slots_.size();
  return {};
}

void Uploader::release() {
  for (Slot& slot : slots_) slot = Slot{{}, CommandList(device_)};
}

Status upload(Device& device, const Buffer& to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  Uploader uploader(device);
  for (std::uint64_t at = 0; at < bytes.size(); at += uploader.max_write_bytes()) {
    const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), bytes.size() - at);
    RONDO_TRY(uploader.reserve(to, n));
    std::memcpy(uploader.target(to, at, n), bytes.data() + at, n);
  }
  RONDO_TRY(to.flush(0, bytes.size()));
  RONDO_TRY(uploader.submit());
  return device.wait(device.last_submitted(), ~0ull);
}

Status read_back(Device& device, const Buffer& from, std::uint64_t offset_bytes, std::span<std::byte> out) {
  constexpr std::uint64_t kSlot = 1u << 20;
  RONDO_ASSIGN(Buffer staging, Buffer::create(device, std::min<std::uint64_t>(kSlot, out.size()), MemoryIntent::kReadback, "readback"));
  CommandList commands(device);
  for (std::uint64_t at = 0; at < out.size(); at += kSlot) {
    const std::uint64_t n = std::min<std::uint64_t>(kSlot, out.size() - at);
    RONDO_TRY(commands.begin());
    commands.copy(from, offset_bytes + at, staging, 0, n);
    RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
    const Batch batch{{&recorded, 1}};
    RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
    RONDO_TRY(device.wait_for_results(value, ~0ull));
    RONDO_TRY(staging.invalidate(0, n));
    std::memcpy(out.data() + at, staging.mapped(), n);
  }
  return {};
}

}  // namespace rondo::runtime
