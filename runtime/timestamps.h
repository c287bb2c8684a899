// Timestamps of one recording: when the device began it, and when each of its dispatches was done.
//
// A pool belongs to one recording made for profiling; its results are those of the recording's last submission, so that one
// must be done before the next begins. Not thread-safe; dropping it while the GPU uses it is safe.
#pragma once

#include <cstdint>
#include <vector>

#include <rondo/status.h>

#include "runtime/device.h"

namespace rondo::runtime {

class TimestampPool {
 public:
  /// Room for `n_dispatches` dispatches. Errors: kUnsupported (the queue has no timestamps), kOutOfMemory.
  static Result<TimestampPool> create(Device& device, std::uint32_t n_dispatches);
  TimestampPool() = default;
  TimestampPool(TimestampPool&& other) noexcept { swap(other); }
  TimestampPool& operator=(TimestampPool&& other) noexcept {
    swap(other);
    return *this;
  }
  ~TimestampPool();

  VkQueryPool handle() const { return pool_; }
  std::uint32_t n_queries() const { return n_queries_; }

  /// Nanoseconds on the device's clock: the beginning, then the end of each dispatch, in order. The recording is done.
  Result<std::vector<double>> read() const;

 private:
  void swap(TimestampPool& other) noexcept;

  Device* device_ = nullptr;
  VkQueryPool pool_ = VK_NULL_HANDLE;
  std::uint32_t n_queries_ = 0;
};

}  // namespace rondo::runtime
