// Vulkan's entry points, loaded privately: volk with renamed symbols, one table per instance and one per device.
//
// After loading, nothing calls through volk's globals; they are only written and copied under a lock. Faults are injected
// in a device's table.
#pragma once

#include "private_volk_names.h"

#include <volk.h>

#include <rondo/status.h>

namespace rondo::runtime {

/// Instance-level entry points that Rondo uses.
struct InstanceTable {
  PFN_vkDestroyInstance destroy_instance = nullptr;
  PFN_vkEnumeratePhysicalDevices enumerate_physical_devices = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 get_properties = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 get_features = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties get_memory_properties = nullptr;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties get_queue_families = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties enumerate_extensions = nullptr;
  PFN_vkCreateDevice create_device = nullptr;
  PFN_vkDestroyDevice destroy_device = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc_addr = nullptr;
  PFN_vkCreateDebugUtilsMessengerEXT create_messenger = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger = nullptr;
  PFN_vkVoidFunction get_matrix_properties = nullptr;  ///< vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR (runtime/cooperative_matrix.h)
};

/// Loader-level entry points.
struct LoaderTable {
  PFN_vkCreateInstance create_instance = nullptr;
  PFN_vkEnumerateInstanceVersion enumerate_version = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties enumerate_extensions = nullptr;
  PFN_vkEnumerateInstanceLayerProperties enumerate_layers = nullptr;
};

/// Opens the system's Vulkan loader (once per process) and finds its entry points. kNotFound if there is none.
Result<LoaderTable> load_vulkan();

/// Entry points of an instance. `get_instance_proc_addr` null: the system loader's, which load_vulkan opened.
/// Errors: kNotFound (no loader), kInvalidArgument (the function finds nothing), kUnsupported (an instance of Vulkan 1.0).
Result<InstanceTable> load_instance_table(VkInstance instance, PFN_vkGetInstanceProcAddr get_instance_proc_addr);

/// Entry points of a device of that instance. Errors: kUnsupported, naming one that Rondo needs and the driver does not have.
Result<VolkDeviceTable> load_device_table(const InstanceTable& instance, VkDevice device);

}  // namespace rondo::runtime
