#include "tools/rondo/stopwatch.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/fmt.h"
#include "tools/rondo/command.h"

namespace rondo::tools {

Result<ReusableCommands> ReusableCommands::create(runtime::Device& device, const std::function<void(VkCommandBuffer)>& record) {
  const VolkDeviceTable& vk = device.vk();
  ReusableCommands made;
  made.device_ = &device;
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, device.queue_family()};
  VkResult result = vk.vkCreateCommandPool(device.handle(), &pool, nullptr, &made.pool_);
  if (result == VK_SUCCESS) {
    const VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, made.pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    result = vk.vkAllocateCommandBuffers(device.handle(), &allocation, &made.commands_);
  }
  if (result == VK_SUCCESS) {
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
    result = vk.vkBeginCommandBuffer(made.commands_, &begin);
  }
  if (result == VK_SUCCESS) {
    record(made.commands_);
    result = vk.vkEndCommandBuffer(made.commands_);
  }
  if (result != VK_SUCCESS) return device.fail(result, fmt::format("device {}: the commands of a measurement can't be recorded", device.caps().name));
  return made;
}

ReusableCommands::~ReusableCommands() {
  if (!pool_) return;
  runtime::Garbage garbage;
  garbage.command_pools.push_back(pool_);
  device_->retire(std::move(garbage));
}

void ReusableCommands::swap(ReusableCommands& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pool_, other.pool_);
  std::swap(commands_, other.commands_);
}

Result<Stopwatch> Stopwatch::create(runtime::Device& device) {
  Stopwatch stopwatch(device);
  if (device.caps().timestamp_bits == 0) return stopwatch;
  RONDO_ASSIGN(stopwatch.timestamps_, runtime::TimestampPool::create(device, 1));
  const VolkDeviceTable& vk = device.vk();
  const VkQueryPool pool = stopwatch.timestamps_.handle();
  RONDO_ASSIGN(stopwatch.begin_, ReusableCommands::create(device, [&](VkCommandBuffer commands) {
                 vk.vkCmdResetQueryPool(commands, pool, 0, 2);
                 vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 0);
               }));
  RONDO_ASSIGN(stopwatch.end_, ReusableCommands::create(device, [&](VkCommandBuffer commands) {
                 vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, pool, 1);
               }));
  return stopwatch;
}

Result<double> Stopwatch::time_s(std::span<const VkCommandBuffer> commands, std::uint32_t n) {
  const bool on_device = timestamps_.handle() != VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> all;
  if (on_device) all.push_back(begin_.handle());
  for (std::uint32_t i = 0; i < n; ++i) all.insert(all.end(), commands.begin(), commands.end());
  if (on_device) all.push_back(end_.handle());
  const runtime::Batch batch{all};
  const double start = now_s();
  RONDO_ASSIGN(const std::uint64_t value, device_->submit({&batch, 1}));
  RONDO_TRY(device_->wait_for_results(value, ~0ull));
  const double host_s = now_s() - start;
  if (!on_device) return host_s;
  RONDO_ASSIGN(const std::vector<double> times_ns, timestamps_.read());
  return 1e-9 * (times_ns[1] - times_ns[0]);
}

Result<double> measure_run_s(Stopwatch& stopwatch, const TimedRuns& timed, std::uint32_t n_measurements, const std::function<Status()>& prepare) {
  constexpr double kLongEnoughS = 0.02, kLongInAllS = 0.5;
  constexpr std::uint32_t kMostSubmitted = 4096;
  const auto time = [&](std::uint32_t n) -> Result<double> {
    if (prepare) RONDO_TRY(prepare());
    return stopwatch.time_s(timed.commands, n);
  };
  // A short submission is mostly what submitting costs: `n` is found step by step.
  std::uint32_t n = 1;
  RONDO_ASSIGN(double taken_s, time(n));
  while (taken_s < kLongEnoughS && n < kMostSubmitted) {
    const double factor = std::clamp(1.2 * kLongEnoughS / std::max(taken_s, 1e-9), 2.0, 50.0);
    n = static_cast<std::uint32_t>(std::min<double>(kMostSubmitted, std::ceil(n * factor)));
    RONDO_ASSIGN(taken_s, time(n));
  }
  std::vector<double> times_s = {taken_s};
  for (double in_all_s = taken_s; times_s.size() < n_measurements && in_all_s + taken_s < kLongInAllS;) {
    RONDO_ASSIGN(const double again_s, time(n));
    times_s.push_back(again_s);
    in_all_s += again_s;
  }
  std::sort(times_s.begin(), times_s.end());
  const std::size_t middle = times_s.size() / 2;
  const double median_s = times_s.size() % 2 == 1 ? times_s[middle] : 0.5 * (times_s[middle - 1] + times_s[middle]);
  if (median_s > 0) return median_s / n / timed.runs;
  return Status(StatusCode::kInternal, fmt::format("device {}: its clock stood still during a measurement", stopwatch.device().caps().name));
}

}  // namespace rondo::tools
