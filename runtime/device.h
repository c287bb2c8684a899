// A VkDevice with one queue, its timeline, its pipelines, and what waits to be destroyed.
//
// Owned by the public Device (include/rondo/device.h) and by every model on it, created or imported; keeps its Instance.
// Thread-safe: submissions, kernels and retirement take one lock each, and none while the host's code runs. Objects made from it
// hand their Vulkan handles to `retire` when they go. They are destroyed once the timeline has passed every submission that
// could use them, by whichever call reaches the driver next.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <rondo/device.h>
#include <rondo/status.h>

#include "runtime/device_plan.h"
#include "runtime/program.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

class Instance;
class KernelCache;
class PipelineCache;

/// Vulkan handles that go together.
struct Garbage {
  std::vector<VkBuffer> buffers;
  std::vector<VkDeviceMemory> memories;
  std::vector<VkCommandPool> command_pools;
  std::vector<VkDescriptorPool> descriptor_pools;
  std::vector<VkQueryPool> query_pools;
};

/// One vkQueueSubmit's worth of command buffers that signal a timeline value together.
struct Batch {
  std::span<const VkCommandBuffer> command_buffers;
};

class Device {
 public:
  /// With a `profile`, caps are clamped to it once the device is measured.
  static Result<std::unique_ptr<Device>> create(std::shared_ptr<Instance> instance, std::uint32_t index, const DeviceCaps* profile = nullptr);

  /// Everything a Device is made of, created by Rondo or the caller.
  struct Parts {
    std::shared_ptr<Instance> instance;  ///< that the device was made with; null where it is the caller's
    VolkDeviceTable vk{};
    VkDevice handle = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    bool owned = false;
    bool measure_later = false;  ///< in front of the first work, as timestamps show it: the queue may be busy now
    DevicePlan plan;
    DeviceInfo info;
    std::vector<MemoryType> memory_types;
    LogCallback log;
    std::function<void()> lock_queue, unlock_queue;
  };
  static Result<std::unique_ptr<Device>> adopt(Parts parts);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const VolkDeviceTable& vk() const { return parts_.vk; }
  /// For tests that inject faults: the table every call goes through.
  VolkDeviceTable& table_for_tests() { return parts_.vk; }
  VkDevice handle() const { return parts_.handle; }
  /// The predictions among them change once, where the device is measured later; references stay valid, with the old ones.
  const DeviceCaps& caps() const { return *caps_.load(std::memory_order_acquire); }
  /// Whether pipelines can require the size of their subgroups; what has one size has it without being asked.
  bool has_subgroup_size_control() const { return parts_.plan.subgroup_size_control; }
  std::uint32_t queue_family() const { return parts_.plan.queue_family; }
  const DeviceInfo& info() const { return parts_.info; }
  const std::vector<MemoryType>& memory_types() const { return parts_.memory_types; }
  KernelCache& kernels() { return *kernels_; }
  PipelineCache& pipeline_cache() { return *pipeline_cache_; }
  void log(LogLevel level, std::string_view message) const;

  /// Submits `batches` in order by one vkQueueSubmit; batch i signals timeline value `first value + i`. At most
  /// kMaxBatches. Returns the last value. No allocation. Errors: kDeviceLost, kOutOfMemory.
  static constexpr std::size_t kMaxBatches = 64;
  Result<std::uint64_t> submit(std::span<const Batch> batches);

  /// The timeline's value: everything up to it is done. Errors: kDeviceLost.
  Result<std::uint64_t> completed_value();
  /// Sleeps until the timeline reaches `value`; kTimeout after `timeout_ns` (0 polls). Does not spin. Errors: kDeviceLost,
  /// kInternal once the timeline has not moved for kMostStillNs, however long the timeout: the driver hangs, or does no work.
  Status wait(std::uint64_t value, std::uint64_t timeout_ns);
  /// Longer than drivers take that compile all kernels of a submission when they run it.
  static constexpr std::uint64_t kMostStillNs = 120'000'000'000;
  /// The same for results: kInternal too where the wait ends and the timeline has not reached `value` all the same, as with
  /// drivers that run nothing. `wait` naps and lets that pass, so that what needs no results goes on.
  Status wait_for_results(std::uint64_t value, std::uint64_t timeout_ns);
  /// The largest value that a wait has ended for: not less than the timeline's but where a driver runs nothing.
  std::uint64_t waited_value() const { return waited_; }
  /// The value of the last submission.
  std::uint64_t last_submitted() const { return last_submitted_; }

  /// Destroys `garbage` once everything submitted so far is done. Never blocks.
  void retire(Garbage garbage);
  /// Destroys what was retired and is done with; whether nothing is left. Submissions, looks at the timeline, waits and new
  /// buffers do the same by the way, unless another thread is at it. With nothing retired that is one load.
  bool collect();
  /// That by the way.
  void tidy();

  /// Bytes of the buffers that live, by what they are for. A buffer that was dropped counts no longer, even if the GPU
  /// still uses it.
  std::uint64_t buffer_bytes(MemoryIntent intent) const { return buffer_bytes_[static_cast<std::size_t>(intent)]; }
  void count_buffer(MemoryIntent intent, std::uint64_t size_bytes) { buffer_bytes_[static_cast<std::size_t>(intent)] += size_bytes; }
  void discount_buffer(MemoryIntent intent, std::uint64_t size_bytes) { buffer_bytes_[static_cast<std::size_t>(intent)] -= size_bytes; }

  /// A Status for a failed call; remembers a lost device.
  Status fail(VkResult result, std::string message);
  /// kDeviceLost once the device was lost.
  Status check_lost() const;

 private:
  explicit Device(Parts parts);
  Status start();
  Status measure();
  Status prepare_measurement();
  Status wait_once(std::uint64_t value, std::uint64_t timeout_ns);
  Status doubt_wait(std::uint64_t value, std::uint64_t timeout_ns);
  VkResult submit_locked(std::span<const Batch> batches, std::uint64_t& last);
  std::uint64_t find_completed();
  void tidy_up_to(std::uint64_t done);
  void learn_speed(std::uint64_t done);
  void pretend(const DeviceCaps& profile);
  void destroy(Garbage& garbage);
  void destroy_up_to(std::uint64_t done);

  struct Measurement;
  Parts parts_;
  std::unique_ptr<const DeviceCaps> measured_caps_;
  std::atomic<const DeviceCaps*> caps_;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  std::mutex queue_mutex_;
  std::unique_ptr<Measurement> measurement_;       ///< until its times are known
  std::atomic<std::uint64_t> measurement_done_{0};  ///< the value that ends it; 0: not submitted, or known
  std::atomic<std::uint64_t> last_submitted_{0};
  std::atomic<std::uint64_t> waited_{0};
  /// A timeline that waits do not agree with: where it is, what was submitted then, and since when.
  struct Still {
    std::uint64_t done = 0, submitted = 0, since_ns = 0;
  };
  std::mutex still_mutex_;
  Still still_;
  std::atomic<bool> lost_{false};
  std::array<std::atomic<std::uint64_t>, kMemoryIntents> buffer_bytes_{};
  std::unique_ptr<PipelineCache> pipeline_cache_;
  std::unique_ptr<KernelCache> kernels_;
  std::mutex garbage_mutex_;
  std::atomic<std::size_t> n_garbage_{0};
  std::vector<std::pair<std::uint64_t, Garbage>> garbage_;
};

}  // namespace rondo::runtime
