#include "runtime/vulkan_api.h"

#include <mutex>

#include "runtime/fmt.h"

namespace rondo::runtime {

namespace {

/// volk keeps its entry points in globals; they are written and read only while this is held.
std::mutex& volk_mutex() {
  static std::mutex mutex;
  return mutex;
}

Status no_loader() {
  return Status(StatusCode::kNotFound,
                "Vulkan: no loader (libvulkan.so.1) can be opened; install one (Debian: libvulkan1) and a driver (mesa-vulkan-drivers)");
}

/// Fills volk's globals for `instance`. The caller holds the lock.
Status fill_globals(VkInstance instance, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
  if (get_instance_proc_addr) {
    volkInitializeCustom(get_instance_proc_addr);
  } else if (volkInitialize() != VK_SUCCESS) {
    return no_loader();
  }
  volkLoadInstanceOnly(instance);
  return {};
}

}  // namespace

Result<LoaderTable> load_vulkan() {
  const std::lock_guard lock(volk_mutex());
  if (volkInitialize() != VK_SUCCESS || !vkCreateInstance) return no_loader();
  return LoaderTable{vkCreateInstance, vkEnumerateInstanceVersion, vkEnumerateInstanceExtensionProperties, vkEnumerateInstanceLayerProperties};
}

Result<InstanceTable> load_instance_table(VkInstance instance, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
  const std::lock_guard lock(volk_mutex());
  RONDO_TRY(fill_globals(instance, get_instance_proc_addr));
  InstanceTable table;
  table.destroy_instance = vkDestroyInstance;
  table.enumerate_physical_devices = vkEnumeratePhysicalDevices;
  table.get_properties = vkGetPhysicalDeviceProperties2;
  table.get_features = vkGetPhysicalDeviceFeatures2;
  table.get_memory_properties = vkGetPhysicalDeviceMemoryProperties;
  table.get_queue_families = vkGetPhysicalDeviceQueueFamilyProperties;
  table.enumerate_extensions = vkEnumerateDeviceExtensionProperties;
  table.create_device = vkCreateDevice;
  table.get_device_proc_addr = vkGetDeviceProcAddr;
  table.destroy_device = reinterpret_cast<PFN_vkDestroyDevice>(vkGetInstanceProcAddr(instance, "vkDestroyDevice"));
  table.create_messenger = vkCreateDebugUtilsMessengerEXT;
  table.destroy_messenger = vkDestroyDebugUtilsMessengerEXT;
  table.get_matrix_properties = vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  if (!table.get_device_proc_addr || !table.enumerate_physical_devices || !table.create_device || !table.destroy_device) {
    return Status(StatusCode::kInvalidArgument, "Vulkan: get_instance_proc_addr finds no entry points of this instance; it must be that of the loader which made it");
  }
  if (!table.get_properties || !table.get_features) {
    return Status(StatusCode::kUnsupported, "Vulkan: the instance is older than 1.1");
  }
  return table;
}

Result<VolkDeviceTable> load_device_table(const InstanceTable& instance, VkDevice device) {
  VolkDeviceTable table{};
  {
    const std::lock_guard lock(volk_mutex());
    vkGetDeviceProcAddr = instance.get_device_proc_addr;  // what volk asks
    volkLoadDeviceTable(&table, device);
  }
  // Of each kind of work one, and those that Vulkan 1.2 has added; a driver that has these has the others.
  const struct {
    const char* name;
    bool found;
  } needed[] = {{"vkGetDeviceQueue", table.vkGetDeviceQueue != nullptr},
                {"vkQueueSubmit", table.vkQueueSubmit != nullptr},
                {"vkAllocateMemory", table.vkAllocateMemory != nullptr},
                {"vkCreateComputePipelines", table.vkCreateComputePipelines != nullptr},
                {"vkCmdDispatch", table.vkCmdDispatch != nullptr},
                {"vkDestroyDevice", table.vkDestroyDevice != nullptr},
                {"vkWaitSemaphores", table.vkWaitSemaphores != nullptr},
                {"vkGetSemaphoreCounterValue", table.vkGetSemaphoreCounterValue != nullptr}};
  for (const auto& entry : needed) {
    if (!entry.found) return Status(StatusCode::kUnsupported, fmt::format("Vulkan: the device has no {}", entry.name));
  }
  return table;
}

}  // namespace rondo::runtime
