// How long the device takes for command buffers: on its own clock where its queue has timestamps, else on the host's.
//
// Owns two short command buffers and a pool of timestamps. Not thread-safe; one measurement at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <rondo/status.h>

#include "runtime/timestamps.h"

namespace rondo::tools {

/// A command buffer that may be submitted any number of times at once.
class ReusableCommands {
 public:
  /// Records what `record` writes. Errors: kOutOfMemory, kDeviceLost.
  static Result<ReusableCommands> create(runtime::Device& device, const std::function<void(VkCommandBuffer)>& record);
  ReusableCommands() = default;
  ReusableCommands(ReusableCommands&& other) noexcept { swap(other); }
  ReusableCommands& operator=(ReusableCommands&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ReusableCommands();

  VkCommandBuffer handle() const { return commands_; }

 private:
  void swap(ReusableCommands& other) noexcept;

  runtime::Device* device_ = nullptr;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

class Stopwatch {
 public:
  /// Errors: kOutOfMemory, kDeviceLost.
  static Result<Stopwatch> create(runtime::Device& device);

  /// Submits `commands` `n` times, one after the other in one batch, and waits: seconds that all of them took.
  /// They begin with barriers of their own, so that the device does not overlap them.
  Result<double> time_s(std::span<const VkCommandBuffer> commands, std::uint32_t n);

  runtime::Device& device() { return *device_; }

 private:
  explicit Stopwatch(runtime::Device& device) : device_(&device) {}

  runtime::Device* device_;
  runtime::TimestampPool timestamps_;
  ReusableCommands begin_, end_;
};

/// Command buffers that hold `runs` runs of what is measured.
struct TimedRuns {
  std::span<const VkCommandBuffer> commands;
  std::uint32_t runs = 1;
};

/// Seconds of one run: the median of `n_measurements`, each over so many runs that it takes 20 ms; of fewer, at least one,
/// where they would take more than half a second in all. The first submission of `commands` should be behind them.
/// `prepare`, where there is one, is called before each submission. Errors: its own, the device's.
Result<double> measure_run_s(Stopwatch& stopwatch, const TimedRuns& timed, std::uint32_t n_measurements, const std::function<Status()>& prepare = {});

}  // namespace rondo::tools
