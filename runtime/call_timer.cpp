#include "runtime/call_timer.h"

#include <utility>

#include "runtime/fmt.h"

namespace rondo::runtime {

Result<CallTimer> CallTimer::create(Device& device, std::size_t n_slots) {
  if (device.caps().timestamp_bits == 0) return Status(StatusCode::kUnsupported, fmt::format("device {}: its queue has no timestamps", device.caps().name));
  CallTimer timer;
  timer.device_ = &device;
  const VkResult result = timer.record(n_slots);
  if (result != VK_SUCCESS) return device.fail(result, fmt::format("device {}: calls can't be timed", device.caps().name));
  return timer;
}

VkResult CallTimer::record(std::size_t n_slots) {
  const VolkDeviceTable& vk = device_->vk();
  const auto n_queries = static_cast<std::uint32_t>(2 * n_slots);
  const VkQueryPoolCreateInfo queries{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, nullptr, 0, VK_QUERY_TYPE_TIMESTAMP, n_queries, 0};
  VkResult result = vk.vkCreateQueryPool(device_->handle(), &queries, nullptr, &queries_);
  if (result != VK_SUCCESS) return result;
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, device_->queue_family()};
  result = vk.vkCreateCommandPool(device_->handle(), &pool, nullptr, &pool_);
  if (result != VK_SUCCESS) return result;
  std::vector<VkCommandBuffer> commands(n_queries);
  const VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY, n_queries};
  result = vk.vkAllocateCommandBuffers(device_->handle(), &allocation, commands.data());
  for (std::uint32_t query = 0; query < n_queries && result == VK_SUCCESS; ++query) {
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, 0, nullptr};
    result = vk.vkBeginCommandBuffer(commands[query], &begin);
    if (result != VK_SUCCESS) break;
    // At the bottom of the pipe, so that the time begins when all that was submitted before is done.
    if (query % 2 == 0) vk.vkCmdResetQueryPool(commands[query], queries_, query, 2);
    vk.vkCmdWriteTimestamp(commands[query], VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, query);
    result = vk.vkEndCommandBuffer(commands[query]);
  }
  if (result == VK_SUCCESS) commands_ = std::move(commands);
  return result;
}

CallTimer::~CallTimer() {
  if (!device_ || (!queries_ && !pool_)) return;
  Garbage garbage;
  if (queries_) garbage.query_pools.push_back(queries_);
  if (pool_) garbage.command_pools.push_back(pool_);
  device_->retire(std::move(garbage));
}

std::optional<double> CallTimer::read_ns(std::size_t slot) const {
  std::uint64_t ticks[2] = {};
  const VkResult result = device_->vk().vkGetQueryPoolResults(device_->handle(), queries_, static_cast<std::uint32_t>(2 * slot), 2, sizeof ticks, ticks,
                                                              sizeof ticks[0], VK_QUERY_RESULT_64_BIT);
  if (result != VK_SUCCESS) return std::nullopt;
  return device_->caps().ticks_ns(ticks[0], ticks[1]);
}

void CallTimer::swap(CallTimer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(queries_, other.queries_);
  std::swap(pool_, other.pool_);
  std::swap(commands_, other.commands_);
}

}  // namespace rondo::runtime
