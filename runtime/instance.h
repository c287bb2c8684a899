// A VkInstance with its devices listed and judged. Behind the public Instance; see include/rondo/device.h for threads.
#pragma once

#include <atomic>
#include <vector>

#include <rondo/device.h>

#include "runtime/device_plan.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

/// Reads what a physical device reports.
DeviceSnapshot take_snapshot(const InstanceTable& vk, VkPhysicalDevice physical_device);

/// What is told about a device.
DeviceInfo describe(std::uint32_t index, const DeviceSnapshot& snapshot, const DevicePlan& plan);

/// "VK_ERROR_..." as text is in Status; this is the version as "1.2.3".
std::string version_text(std::uint32_t version);

class Instance {
 public:
  static Result<std::unique_ptr<Instance>> create(const InstanceOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  const InstanceTable& vk() const { return vk_; }
  /// For tests that inject faults: the table every call goes through.
  InstanceTable& table_for_tests() { return vk_; }
  VkInstance handle() const { return handle_; }
  std::span<const DeviceInfo> infos() const { return infos_; }
  const std::vector<DevicePlan>& plans() const { return plans_; }
  const DeviceSnapshot& snapshot(std::uint32_t index) const { return snapshots_[index]; }
  VkPhysicalDevice physical_device(std::uint32_t index) const { return physical_devices_[index]; }
  struct LogicalDevice {
    VkDevice handle = VK_NULL_HANDLE;
    VolkDeviceTable vk{};
  };
  /// A device with one queue, of the plan's family, with these extensions and features (a chain of Vulkan structs). Errors: the
  /// driver's, kUnsupported (an entry point is missing).
  Result<LogicalDevice> create_logical_device(std::uint32_t index, const void* features, const std::vector<const char*>& extensions) const;
  const LogCallback& log() const { return log_; }
  std::uint64_t n_validation_messages() const { return n_validation_messages_; }

 private:
  Instance() = default;
  Status list_devices();
  static VkBool32 VKAPI_PTR on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                                       const VkDebugUtilsMessengerCallbackDataEXT* data, void* user);

  InstanceTable vk_;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  LogCallback log_;
  std::atomic<std::uint64_t> n_validation_messages_{0};
  std::vector<VkPhysicalDevice> physical_devices_;
  std::vector<DeviceSnapshot> snapshots_;
  std::vector<DevicePlan> plans_;
  std::vector<DeviceInfo> infos_;
};

}  // namespace rondo::runtime
