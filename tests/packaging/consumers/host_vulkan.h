// A host's own Vulkan: an instance, a device and work on its queue, through whatever vk* names are in scope, which are the
// functions of libvulkan or the pointers of volk. Include <vulkan/vulkan.h> or <volk.h> first.
#pragma once

#include <vector>

/// Owns an instance and a device with one queue for compute. `works()` can be asked again and again.
class HostVulkan {
 public:
  HostVulkan() {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    info.pApplicationInfo = &application;
    if (vkCreateInstance(&info, nullptr, &instance) != VK_SUCCESS) instance = VK_NULL_HANDLE;
  }
  ~HostVulkan() {
    if (device) vkDestroyDevice(device, nullptr);
    if (instance) vkDestroyInstance(instance, nullptr);
  }
  HostVulkan(const HostVulkan&) = delete;
  HostVulkan& operator=(const HostVulkan&) = delete;

  /// Makes a device that has what Rondo needs: Vulkan 1.2, timeline semaphores and a queue for compute.
  bool create_device() {
    std::uint32_t n = 0;
    vkEnumeratePhysicalDevices(instance, &n, nullptr);
    std::vector<VkPhysicalDevice> found(n);
    vkEnumeratePhysicalDevices(instance, &n, found.data());
    for (VkPhysicalDevice candidate : found) {
      VkPhysicalDeviceProperties properties{};
      vkGetPhysicalDeviceProperties(candidate, &properties);
      if (properties.apiVersion >= VK_API_VERSION_1_2 && find_queue_family(candidate)) physical_device = candidate;
    }
    if (!physical_device) return false;
    const float priority = 1;
    VkDeviceQueueCreateInfo queue_info{};
    queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_info.queueFamilyIndex = queue_family;
    queue_info.queueCount = 1;
    queue_info.pQueuePriorities = &priority;
    features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    features.timelineSemaphore = VK_TRUE;
    VkDeviceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    info.pNext = &features;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    if (vkCreateDevice(physical_device, &info, nullptr, &device) != VK_SUCCESS) return false;
    vkGetDeviceQueue(device, queue_family, 0, &queue);
    return true;
  }

  /// Whether an empty submission comes back.
  bool works() const {
    VkFenceCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    VkFence fence = VK_NULL_HANDLE;
    if (!queue || vkCreateFence(device, &info, nullptr, &fence) != VK_SUCCESS) return false;
    const bool done = vkQueueSubmit(queue, 0, nullptr, fence) == VK_SUCCESS &&
                      vkWaitForFences(device, 1, &fence, VK_TRUE, 10'000'000'000) == VK_SUCCESS;
    vkDestroyFence(device, fence, nullptr);
    return done;
  }

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkPhysicalDeviceVulkan12Features features{};

 private:
  bool find_queue_family(VkPhysicalDevice candidate) {
    std::uint32_t n = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &n, nullptr);
    std::vector<VkQueueFamilyProperties> families(n);
    vkGetPhysicalDeviceQueueFamilyProperties(candidate, &n, families.data());
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) continue;
      queue_family = i;
      return true;
    }
    return false;
  }
};
