// Vulkan calls counted, failed and held up, by the device's own table: what drivers do on bad days, on purpose.
//
// Hooks replace entries of one device's table while a Hooks object lives. One device at a time, one thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/device.h"
#include "runtime/vulkan_api.h"

namespace rondo::tests {

template <auto kEntry, typename Pointer>
struct HookOf;

/// Counters of one entry point: calls since it was hooked, and which of them fail.
template <auto kEntry, typename R, typename... Arguments>
struct HookOf<kEntry, R(VKAPI_PTR*)(Arguments...)> {
  static inline std::uint64_t n_calls = 0, n_failed = 0;
  static inline std::uint64_t fail_first = 0, fail_end = 0;
  static inline VkResult failure = VK_SUCCESS;
  static inline R(VKAPI_PTR* real)(Arguments...) = nullptr;

  /// Lets call `n` from now on (0: the next one) and the `count` - 1 after it fail.
  static void fail(VkResult with, std::uint64_t n = 0, std::uint64_t count = 1) {
    failure = with;
    fail_first = n_calls + n;
    fail_end = count == kForever ? kForever : fail_first + count;
  }
  static void succeed() { fail_first = fail_end = 0; }
  static std::uint64_t n_succeeded() { return n_calls - n_failed; }
  static constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

  static R VKAPI_PTR call(Arguments... arguments) {
    const std::uint64_t n = n_calls++;
    if constexpr (std::is_same_v<R, VkResult>) {
      if (n >= fail_first && n < fail_end) {
        ++n_failed;
        return failure;
      }
    }
    return real(arguments...);
  }
  static void install(VolkDeviceTable& table) {
    n_calls = n_failed = fail_first = fail_end = 0;
    real = table.*kEntry;
    table.*kEntry = call;
  }
  static void remove(VolkDeviceTable& table) { table.*kEntry = real; }
};

template <auto kEntry>
using Hook = HookOf<kEntry, std::remove_reference_t<decltype(std::declval<VolkDeviceTable&>().*kEntry)>>;

using AllocateMemory = Hook<&VolkDeviceTable::vkAllocateMemory>;
using FreeMemory = Hook<&VolkDeviceTable::vkFreeMemory>;
using CreateBuffer = Hook<&VolkDeviceTable::vkCreateBuffer>;
using DestroyBuffer = Hook<&VolkDeviceTable::vkDestroyBuffer>;
using BindBufferMemory = Hook<&VolkDeviceTable::vkBindBufferMemory>;
using MapMemory = Hook<&VolkDeviceTable::vkMapMemory>;
using CreateCommandPool = Hook<&VolkDeviceTable::vkCreateCommandPool>;
using DestroyCommandPool = Hook<&VolkDeviceTable::vkDestroyCommandPool>;
using AllocateCommandBuffers = Hook<&VolkDeviceTable::vkAllocateCommandBuffers>;
using BeginCommandBuffer = Hook<&VolkDeviceTable::vkBeginCommandBuffer>;
using EndCommandBuffer = Hook<&VolkDeviceTable::vkEndCommandBuffer>;
using CreateDescriptorPool = Hook<&VolkDeviceTable::vkCreateDescriptorPool>;
using DestroyDescriptorPool = Hook<&VolkDeviceTable::vkDestroyDescriptorPool>;
using AllocateDescriptorSets = Hook<&VolkDeviceTable::vkAllocateDescriptorSets>;
using CreateDescriptorSetLayout = Hook<&VolkDeviceTable::vkCreateDescriptorSetLayout>;
using DestroyDescriptorSetLayout = Hook<&VolkDeviceTable::vkDestroyDescriptorSetLayout>;
using CreatePipelineLayout = Hook<&VolkDeviceTable::vkCreatePipelineLayout>;
using DestroyPipelineLayout = Hook<&VolkDeviceTable::vkDestroyPipelineLayout>;
using CreateShaderModule = Hook<&VolkDeviceTable::vkCreateShaderModule>;
using CreateComputePipelines = Hook<&VolkDeviceTable::vkCreateComputePipelines>;
using QueueSubmit = Hook<&VolkDeviceTable::vkQueueSubmit>;
using WaitSemaphores = Hook<&VolkDeviceTable::vkWaitSemaphores>;
using GetSemaphoreCounterValue = Hook<&VolkDeviceTable::vkGetSemaphoreCounterValue>;

/// Hooks entries for as long as it lives. Hooks that overlap end in the reverse order of their beginning.
template <typename... Entries>
class Hooks {
 public:
  explicit Hooks(runtime::Device& device) : table_(device.table_for_tests()) { (Entries::install(table_), ...); }
  ~Hooks() { (Entries::remove(table_), ...); }
  Hooks(const Hooks&) = delete;
  Hooks& operator=(const Hooks&) = delete;

 private:
  VolkDeviceTable& table_;
};

/// A second runtime::Device on the VkDevice of `shared`, with a table, a timeline and kernels of its own; `change` may
/// alter what it believes of the hardware. `shared` outlives it, and only one of them submits at a time.
template <typename Change>
std::unique_ptr<runtime::Device> make_second_device(const runtime::Device& shared, const Change& change) {
  runtime::Device::Parts parts;
  parts.vk = shared.vk();
  parts.handle = shared.handle();
  parts.plan.usable = true;
  parts.plan.caps = shared.caps();
  parts.plan.queue_family = shared.queue_family();
  parts.info = shared.info();
  parts.memory_types = shared.memory_types();
  shared.vk().vkGetDeviceQueue(shared.handle(), shared.queue_family(), 0, &parts.queue);
  change(parts);
  Result<std::unique_ptr<runtime::Device>> made = runtime::Device::adopt(std::move(parts));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

/// Waits for all that was submitted, and lets the device destroy what was dropped.
inline void drain(runtime::Device& device) {
  (void)device.vk().vkDeviceWaitIdle(device.handle());
  device.retire({});
}

using LeakHooks = Hooks<AllocateMemory, FreeMemory, CreateBuffer, DestroyBuffer, CreateCommandPool, DestroyCommandPool,
                        CreateDescriptorPool, DestroyDescriptorPool>;

/// Counts what is made and released from now on, on a device where nothing of earlier tests waits to be destroyed.
class Leaks {
 public:
  explicit Leaks(runtime::Device& device) : hooks_((drain(device), device)) {}

 private:
  LeakHooks hooks_;
};

/// Everything made since a Leaks began to count is released.
inline void expect_no_leaks(runtime::Device& device) {
  drain(device);
  EXPECT_EQ(AllocateMemory::n_succeeded(), FreeMemory::n_calls);
  EXPECT_EQ(CreateBuffer::n_succeeded(), DestroyBuffer::n_calls);
  EXPECT_EQ(CreateCommandPool::n_succeeded(), DestroyCommandPool::n_calls);
  EXPECT_EQ(CreateDescriptorPool::n_succeeded(), DestroyDescriptorPool::n_calls);
}

/// Holds up everything submitted after it until it is opened, so that work is in flight for certain.
class Gate {
 public:
  explicit Gate(const runtime::Device& device) : vk_(device.vk()), device_(device.handle()) {
    VkQueue queue = VK_NULL_HANDLE;
    vk_.vkGetDeviceQueue(device_, device.queue_family(), 0, &queue);
    const VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    EXPECT_EQ(vk_.vkCreateSemaphore(device_, &info, nullptr, &semaphore_), VK_SUCCESS);
    const std::uint64_t open_value = 1;
    const VkTimelineSemaphoreSubmitInfo values{VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, 1, &open_value, 0, nullptr};
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkSubmitInfo submit{VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, 1, &semaphore_, &stages, 0, nullptr, 0, nullptr};
    EXPECT_EQ(vk_.vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  }
  ~Gate() {
    open();
    (void)vk_.vkDeviceWaitIdle(device_);
    vk_.vkDestroySemaphore(device_, semaphore_, nullptr);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (is_open_) return;
    is_open_ = true;
    const VkSemaphoreSignalInfo signal{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, semaphore_, 1};
    EXPECT_EQ(vk_.vkSignalSemaphore(device_, &signal), VK_SUCCESS);
  }

 private:
  const VolkDeviceTable& vk_;
  VkDevice device_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  bool is_open_ = false;
};

}  // namespace rondo::tests
