// A Program as command buffers: made once, submitted any number of times, also while earlier submissions still run.
//
// Owns command pool, command buffers (one per segment) and descriptor sets; borrows pipelines (the Device's) and buffers
// (the caller's: they outlive the recording). Not thread-safe; dropping it while the GPU uses it is safe.
#pragma once

#include <span>
#include <vector>

#include <rondo/status.h>

#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/kernel.h"
#include "runtime/program.h"
#include "runtime/timestamps.h"

namespace rondo::runtime {

class Recording {
 public:
  /// Records `program`, cut into `segments`. `buffers[i]` is what index i of its ranges means. Creates missing pipelines.
  /// The first segment begins with a barrier against all earlier shader and transfer work; the last ends with one that
  /// makes writes visible to the host. With `timestamps`, the profiling recording: every dispatch waits for the one before
  /// it, and the pool, which outlives the recording, gets their times.
  static Result<Recording> create(Device& device, const Program& program, std::span<const Segment> segments, std::span<const Buffer* const> buffers,
                                  const TimestampPool* timestamps = nullptr);
  Recording() = default;
  Recording(Recording&& other) noexcept { swap(other); }
  Recording& operator=(Recording&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Recording();

  /// One per segment, in order.
  std::span<const VkCommandBuffer> command_buffers() const { return command_buffers_; }
  std::span<const Segment> segments() const { return segments_; }
  std::uint32_t n_dispatches() const { return n_dispatches_; }
  double cost_ns() const { return cost_ns_; }

 private:
  void swap(Recording& other) noexcept;
  Status allocate_sets(const Program& program, std::span<const Pipeline* const> pipelines, std::span<const Buffer* const> buffers);
  Status record(const Program& program, std::span<const Pipeline* const> pipelines, const TimestampPool* timestamps);

  Device* device_ = nullptr;
  VkCommandPool command_pool_ = VK_NULL_HANDLE;
  VkDescriptorPool descriptor_pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
  std::vector<VkCommandBuffer> command_buffers_;
  std::vector<Segment> segments_;
  std::uint32_t n_dispatches_ = 0;
  double cost_ns_ = 0;
};

}  // namespace rondo::runtime
