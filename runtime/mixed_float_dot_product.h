// VK_VALVE_shader_mixed_float_dot_product as far as Rondo asks for it, for Vulkan headers that are older. Facts of the extension's registry.
#pragma once

#include "runtime/vulkan_api.h"

namespace rondo::runtime {

constexpr auto kMixedFloatDotProductFeaturesType = static_cast<VkStructureType>(1000673000);

struct MixedFloatDotProductFeatures {
  VkStructureType sType = kMixedFloatDotProductFeaturesType;
  void* pNext = nullptr;
  VkBool32 shaderMixedFloatDotProductFloat16AccFloat32 = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductFloat16AccFloat16 = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductBFloat16Acc = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductFloat8AccFloat32 = VK_FALSE;
};

}  // namespace rondo::runtime
