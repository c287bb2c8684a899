#include "runtime/timestamps.h"

#include <utility>

#include "runtime/fmt.h"

namespace rondo::runtime {

Result<TimestampPool> TimestampPool::create(Device& device, std::uint32_t n_dispatches) {
  const DeviceCaps& caps = device.caps();
  if (caps.timestamp_bits == 0) {
    return Status(StatusCode::kUnsupported, fmt::format("device {}: its queue has no timestamps, so there is nothing to profile with", caps.name));
  }
  TimestampPool timestamps;
  timestamps.device_ = &device;
  timestamps.n_queries_ = n_dispatches + 1;
  const VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, timestamps.n_queries_, 0};
  const VkResult result = device.vk().vkCreateQueryPool(device.handle(), &info, nullptr, &timestamps.pool_);
  if (result != VK_SUCCESS) return device.fail(result, fmt::format("device {}: timestamps of {} dispatches can't be kept", caps.name, n_dispatches));
  return timestamps;
}

TimestampPool::~TimestampPool() {
  if (!pool_) return;
  Garbage garbage;
  garbage.query_pools.push_back(pool_);
  device_->retire(std::move(garbage));
}

Result<std::vector<double>> TimestampPool::read() const {
  std::vector<std::uint64_t> ticks(n_queries_);
  const VkResult result = device_->vk().vkGetQueryPoolResults(device_->handle(), pool_, 0, n_queries_, ticks.size() * sizeof ticks[0], ticks.data(), sizeof ticks[0],
                                                              VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (result != VK_SUCCESS) return device_->fail(result, fmt::format("device {}: timestamps can't be read", device_->caps().name));
  const DeviceCaps& caps = device_->caps();
  std::vector<double> times;
  // Counted from the first, so that a counter of few bits may run over in between.
  const double base = caps.ticks_ns(0, ticks[0]);
  for (const std::uint64_t tick : ticks) times.push_back(base + caps.ticks_ns(ticks[0], tick));
  return times;
}

void TimestampPool::swap(TimestampPool& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(pool_, other.pool_);
  std::swap(n_queries_, other.n_queries_);
}

}  // namespace rondo::runtime
