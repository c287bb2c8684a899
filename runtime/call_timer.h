// How long the device takes for calls of vkQueueSubmit, by its own clock: a timestamp before and one after.
//
// Owns a query pool and two tiny command buffers per slot, which the caller submits around its own. A slot belongs to one call
// in flight at a time. Not thread-safe; dropping it while the device uses it is safe.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <rondo/status.h>

#include "runtime/device.h"

namespace rondo::runtime {

class CallTimer {
 public:
  /// Errors: kUnsupported (the queue has no timestamps), kOutOfMemory, kDeviceLost.
  static Result<CallTimer> create(Device& device, std::size_t n_slots);
  CallTimer() = default;
  CallTimer(CallTimer&& other) noexcept { swap(other); }
  CallTimer& operator=(CallTimer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CallTimer();

  bool empty() const { return commands_.empty(); }
  /// To be submitted before and after the work of a call.
  VkCommandBuffer begin_commands(std::size_t slot) const { return commands_[2 * slot]; }
  VkCommandBuffer end_commands(std::size_t slot) const { return commands_[2 * slot + 1]; }
  /// Nanoseconds from the end of all earlier work on the queue to the end of the slot's call, which is done. Nothing where the
  /// driver does not have them. No allocation.
  std::optional<double> read_ns(std::size_t slot) const;

 private:
  void swap(CallTimer& other) noexcept;
  VkResult record(std::size_t n_slots);

  Device* device_ = nullptr;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> commands_;
};

}  // namespace rondo::runtime
