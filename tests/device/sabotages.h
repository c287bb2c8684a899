// Kernels that are wrong on purpose (tests/sabotage), and how a device gets them.
#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device.h"
#include "runtime/kernel.h"
#include "shader_list.h"

namespace rondo::tests {

struct Sabotage {
  const char* name;
  runtime::Shader shader;
  const char* path;  ///< SPIR-V that takes the shader's place
  const char* op;
  std::vector<const char*> kernels;  ///< that must fail
};

inline void PrintTo(const Sabotage& sabotage, std::ostream* stream) { *stream << sabotage.name; }

inline const std::vector<Sabotage>& sabotages() {
  static const std::vector<Sabotage> kSabotages = {
#include "sabotage/sabotages.inc"
  };
  return kSabotages;
}

/// While it lives, a device gets other code for one shader; without a path, its driver's compiler refuses that shader.
class ReplacedShader {
 public:
  ReplacedShader(runtime::Device& device, runtime::Shader shader, const char* path = nullptr) : table_(device.table_for_tests()) {
    replacement_.clear();
    if (path != nullptr) {
      std::ifstream file(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      EXPECT_FALSE(bytes.empty()) << path;
      replacement_.resize(bytes.size() / 4);
      std::memcpy(replacement_.data(), bytes.data(), replacement_.size() * 4);
    }
    original_ = runtime::shader_code(shader);
    real_ = table_.vkCreateShaderModule;
    table_.vkCreateShaderModule = create;
  }
  ~ReplacedShader() { table_.vkCreateShaderModule = real_; }
  ReplacedShader(const ReplacedShader&) = delete;
  ReplacedShader& operator=(const ReplacedShader&) = delete;

 private:
  static VkResult VKAPI_PTR create(VkDevice device, const VkShaderModuleCreateInfo* info, const VkAllocationCallbacks* allocator, VkShaderModule* made) {
    VkShaderModuleCreateInfo other = *info;
    if (info->codeSize == original_.size() * 4 && std::memcmp(info->pCode, original_.data(), info->codeSize) == 0) {
      if (replacement_.empty()) return VK_ERROR_INITIALIZATION_FAILED;
      other.codeSize = replacement_.size() * 4;
      other.pCode = replacement_.data();
    }
    return real_(device, &other, allocator, made);
  }

  VolkDeviceTable& table_;
  static inline PFN_vkCreateShaderModule real_ = nullptr;
  static inline std::vector<std::uint32_t> original_, replacement_;
};

}  // namespace rondo::tests
