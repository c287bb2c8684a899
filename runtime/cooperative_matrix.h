// VK_KHR_cooperative_matrix as far as Rondo asks for it, for Vulkan headers that are older. Facts of the extension's registry.
#pragma once

#include <cstdint>

#include "runtime/device_plan.h"
#include "runtime/vulkan_api.h"

namespace rondo::runtime {

constexpr auto kCooperativeMatrixFeaturesType = static_cast<VkStructureType>(1000506000);
constexpr auto kCooperativeMatrixPropertiesType = static_cast<VkStructureType>(1000506001);
constexpr auto kCooperativeMatrixDevicePropertiesType = static_cast<VkStructureType>(1000506002);

struct CooperativeMatrixFeatures {
  VkStructureType sType = kCooperativeMatrixFeaturesType;
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

struct CooperativeMatrixDeviceProperties {
  VkStructureType sType = kCooperativeMatrixDevicePropertiesType;
  void* pNext = nullptr;
  VkShaderStageFlags cooperativeMatrixSupportedStages = 0;
};

/// Of types VkComponentTypeKHR and of scope VkScopeKHR.
struct CooperativeMatrixProperties {
  VkStructureType sType = kCooperativeMatrixPropertiesType;
  void* pNext = nullptr;
  std::uint32_t MSize = 0, NSize = 0, KSize = 0;
  std::uint32_t AType = 0, BType = 0, CType = 0, ResultType = 0;
  VkBool32 saturatingAccumulation = VK_FALSE;
  std::uint32_t scope = 0;
};

using GetCooperativeMatrixProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, CooperativeMatrixProperties*);

}  // namespace rondo::runtime
