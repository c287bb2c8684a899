#include "runtime/vulkan_api.h"

#include <mutex>

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
  table.create_messenger = vkCreateDebugUtilsMessengerEXT;
  table.destroy_messenger = vkDestroyDebugUtilsMessengerEXT;
  if (!table.get_properties || !table.get_features || !vkGetDeviceProcAddr) {
    return Status(StatusCode::kUnsupported, "Vulkan: the instance is older than 1.1");
  }
  return table;
}

Result<VolkDeviceTable> load_device_table(VkInstance instance, VkDevice device, PFN_vkGetInstanceProcAddr get_instance_proc_addr) {
  const std::lock_guard lock(volk_mutex());
  RONDO_TRY(fill_globals(instance, get_instance_proc_addr));
  VolkDeviceTable table{};
  volkLoadDeviceTable(&table, device);
  return table;
}

}  // namespace rondo::runtime
