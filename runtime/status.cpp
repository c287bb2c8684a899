#include <rondo/status.h>

#include <array>

#include "runtime/fmt.h"

namespace rondo {

namespace {

struct VkResultName {
  std::int32_t value;
  const char* name;
};

// By number, because this file is built without Vulkan's headers.
constexpr std::array kVkResultNames = {
    VkResultName{0, "VK_SUCCESS"},
    VkResultName{1, "VK_NOT_READY"},
    VkResultName{2, "VK_TIMEOUT"},
    VkResultName{3, "VK_EVENT_SET"},
    VkResultName{4, "VK_EVENT_RESET"},
    VkResultName{5, "VK_INCOMPLETE"},
    VkResultName{-1, "VK_ERROR_OUT_OF_HOST_MEMORY"},
    VkResultName{-2, "VK_ERROR_OUT_OF_DEVICE_MEMORY"},
    VkResultName{-3, "VK_ERROR_INITIALIZATION_FAILED"},
    VkResultName{-4, "VK_ERROR_DEVICE_LOST"},
    VkResultName{-5, "VK_ERROR_MEMORY_MAP_FAILED"},
    VkResultName{-6, "VK_ERROR_LAYER_NOT_PRESENT"},
    VkResultName{-7, "VK_ERROR_EXTENSION_NOT_PRESENT"},
    VkResultName{-8, "VK_ERROR_FEATURE_NOT_PRESENT"},
    VkResultName{-9, "VK_ERROR_INCOMPATIBLE_DRIVER"},
    VkResultName{-10, "VK_ERROR_TOO_MANY_OBJECTS"},
    VkResultName{-11, "VK_ERROR_FORMAT_NOT_SUPPORTED"},
    VkResultName{-12, "VK_ERROR_FRAGMENTED_POOL"},
    VkResultName{-13, "VK_ERROR_UNKNOWN"},
    VkResultName{-1000069000, "VK_ERROR_OUT_OF_POOL_MEMORY"},
    VkResultName{-1000072003, "VK_ERROR_INVALID_EXTERNAL_HANDLE"},
    VkResultName{-1000161000, "VK_ERROR_FRAGMENTATION"},
    VkResultName{-1000257000, "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS"},
    VkResultName{1000297000, "VK_PIPELINE_COMPILE_REQUIRED"},
};

StatusCode code_of(std::int32_t vk_result) {
  switch (vk_result) {
    case -1:
    case -2:
      return StatusCode::kOutOfMemory;
    case -4:
      return StatusCode::kDeviceLost;
    case -7:  // extensions and features that are not there
    case -8:
      return StatusCode::kUnsupported;
    case 2:
      return StatusCode::kTimeout;
    default:
      return StatusCode::kInternal;
  }
}

}  // namespace

const char* status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kCorruptData:
      return "corrupt data";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kDeviceLost:
      return "device lost";
    case StatusCode::kTimeout:
      return "timeout";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kIo:
      return "input/output";
    case StatusCode::kFailedPrecondition:
      return "failed precondition";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

Status Status::from_vulkan(std::int32_t vk_result, std::string message, const char* file, int line) {
  const char* name = nullptr;
  for (const VkResultName& entry : kVkResultNames) {
    if (entry.value == vk_result) name = entry.name;
  }
  message += name != nullptr ? fmt::format(" ({})", name) : fmt::format(" (VkResult {})", vk_result);
  Status status(code_of(vk_result), std::move(message), file, line);
  status.vk_result_ = vk_result;
  return status;
}

Status Status::with_prefix(const std::string& prefix) const {
  Status status = *this;
  if (!ok()) status.message_ = prefix + ": " + message_;
  return status;
}

}  // namespace rondo
