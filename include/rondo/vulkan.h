// For hosts that have a VkDevice already: run Rondo on it. The only public header that includes Vulkan's.
//
// Rondo uses the queue given, and nothing else of the host's. All of the host's objects outlive the Device, and every Model
// and Session on it. Callbacks must not throw: the library is built without exceptions, and what a call had begun stays
// half done. Rondo holds no lock of its own while one of them runs, except that the log may be called under one.
#pragma once

#include <functional>
#include <span>

#include <vulkan/vulkan_core.h>

#include <rondo/device.h>
#include <rondo/export.h>

namespace rondo {

/// A device of the caller's. Everything is borrowed.
struct ImportedDevice {
  /// How to find entry points; null: Rondo opens the system's Vulkan loader.
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  /// VkApplicationInfo::apiVersion that the instance was made with; at least VK_API_VERSION_1_2.
  std::uint32_t api_version = VK_API_VERSION_1_2;
  /// The pNext chain of the VkDeviceCreateInfo, for the features that are *enabled*. timelineSemaphore must be; without
  /// storageBuffer16BitAccess graphs with activations in f16 are refused. subgroupSizeControl with computeFullSubgroups
  /// makes GPUs whose subgroups have several sizes faster, shaderIntegerDotProduct matrices of blocks, cooperativeMatrix with
  /// vulkanMemoryModel, vulkanMemoryModelDeviceScope and shaderFloat16 long inputs, shaderMixedFloatDotProductFloat16AccFloat32 with shaderFloat16 those of
  /// models in f16.
  const void* enabled_features = nullptr;
  /// Names of the device extensions that are enabled.
  std::span<const char* const> enabled_extensions;
  /// Called around every use of the queue, from the thread that calls Rondo; both or neither. Must not throw, nor call Rondo.
  std::function<void()> lock_queue;
  std::function<void()> unlock_queue;
  LogCallback log;
};

/// Makes a Device of the caller's. Submits nothing and waits for nothing, whatever the queue has to do. How fast the device is,
/// which decides where long steps are cut, is measured with the first work submitted, in front of it: some copies between
/// timestamps, a few milliseconds on slow devices. That is the loading of the first Model, so its Sessions know. Until then,
/// and where the queue has no timestamps, predictions are those for a device of its type, which Sessions correct by what
/// they observe.
/// Errors: kInvalidArgument (a handle is null, get_instance_proc_addr finds nothing), kUnsupported (naming the limit or the
/// feature that is not enabled), kOutOfMemory.
RONDO_API Result<Device> import_device(const ImportedDevice& imported);

}  // namespace rondo
