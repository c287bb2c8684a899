// Moving bytes between host and device: short command lists, and a bounded staging ring.
//
// CommandList: one-time commands (copies, inline updates). Uploader: writes into buffers, through their mapping where there
// is one, else through a ring of staging memory that never grows. Neither is thread-safe. Dropping them is always safe.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <rondo/status.h>

#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/timestamps.h"

namespace rondo::runtime {

/// A command buffer for transfers, recorded anew after each use; begins with a barrier against all earlier work.
class CommandList {
 public:
  explicit CommandList(Device& device) : device_(&device) {}
  CommandList(CommandList&& other) noexcept;
  CommandList& operator=(CommandList&& other) noexcept;
  ~CommandList();

  /// Starts recording. The command buffer's last submission must be done.
  Status begin();
  void copy(const Buffer& from, std::uint64_t from_offset, const Buffer& to, std::uint64_t to_offset, std::uint64_t size_bytes);
  /// Puts `bytes` (a multiple of 4) into the command buffer itself; the source may go at once.
  void update(const Buffer& to, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  /// What follows in the list waits for what came before.
  void wait_for_copies();
  /// Forgets the times in the pool; before the first of them is written anew.
  void reset(const TimestampPool& timestamps);
  /// Notes the time at which all that came before is done, as the pool's query `i`.
  void note_time(const TimestampPool& timestamps, std::uint32_t i);
  /// Every word of the buffer.
  void fill(const Buffer& to, std::uint32_t word);
  /// Every word of a part of it, whose offset and size are multiples of 4.
  void fill(const Buffer& to, std::uint32_t word, std::uint64_t offset_bytes, std::uint64_t size_bytes);
  Result<VkCommandBuffer> end();

 private:
  Device* device_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

class Uploader {
 public:
  /// `slot_bytes` bounds one write; the ring has two slots, allocated when first needed.
  explicit Uploader(Device& device, std::uint64_t slot_bytes = kStagingSlotBytes);

  std::uint64_t max_write_bytes() const { return slot_bytes_; }
  /// Makes room for targets of `total_bytes` in all, waiting for the ring's oldest copy if there is no mapping to use.
  Status reserve(const Buffer& to, std::uint64_t total_bytes);
  /// Where to put `size_bytes` that belong at `offset_bytes` of `to`: its mapping, or staging copied by the next submit.
  /// Valid until the next reserve.
  std::byte* target(const Buffer& to, std::uint64_t offset_bytes, std::uint64_t size_bytes);
  /// Submits what is staged. The writes are done when the device's timeline passes its last value.
  Status submit();
  /// Gives the ring's memory back; it is allocated again when needed.
  void release();

 private:
  struct Slot {
    Buffer staging;
    CommandList commands;
    std::uint64_t used_bytes = 0;
    std::uint64_t done_value = 0;
    bool open = false;
  };
  Device& device_;
  std::uint64_t slot_bytes_;
  std::array<Slot, kStagingSlots> slots_;
  std::size_t current_ = 0;
};

/// Puts `bytes` at the beginning of `to`, waiting until they are there.
Status upload(Device& device, const Buffer& to, std::span<const std::byte> bytes);

/// Fills `out` from `offset_bytes` of `from` on, waiting until the device has done so.
Status read_back(Device& device, const Buffer& from, std::uint64_t offset_bytes, std::span<std::byte> out);

}  // namespace rondo::runtime
