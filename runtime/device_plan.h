// Whether and how to use a physical device: a pure function from a snapshot of what it reports to a plan.
//
// No Vulkan header: flags have Vulkan's values. Tested with made-up devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device_caps.h"

namespace rondo::runtime {

/// Bits as in VkMemoryPropertyFlagBits and VkQueueFlagBits.
constexpr std::uint32_t kMemoryDeviceLocal = 1, kMemoryHostVisible = 2, kMemoryHostCoherent = 4, kMemoryHostCached = 8;
constexpr std::uint32_t kQueueGraphics = 1, kQueueCompute = 2;

struct MemoryType {
  std::uint32_t flags = 0;
  std::uint32_t heap = 0;
};

struct MemoryHeap {
  std::uint64_t size_bytes = 0;
  bool device_local = false;
};

struct QueueFamily {
  std::uint32_t flags = 0;
  std::uint32_t count = 0;
  std::uint32_t timestamp_bits = 0;
};

/// The extension with which a kernel requires the size of its subgroups.
constexpr const char* kSubgroupSizeControl = "VK_EXT_subgroup_size_control";
constexpr const char* kIntegerDotProduct = "VK_KHR_shader_integer_dot_product";
constexpr const char* kCooperativeMatrix = "VK_KHR_cooperative_matrix";
constexpr const char* kMixedFloatDotProduct = "VK_VALVE_shader_mixed_float_dot_product";

/// What a physical device reports.
struct DeviceSnapshot {
  DeviceCaps reported;  ///< names, type and limits as reported; predictions unset
  std::uint32_t api_version = 0;  ///< VK_MAKE_API_VERSION
  std::string driver_version;
  bool timeline_semaphore = false;
  bool float16 = false, int8 = false, storage16 = false, storage8 = false;
  bool integer_dot = false;  ///< feature and extension
  bool half_dot = false;  ///< the same, of f16 with sums in f32
  bool cooperative_matrix = false;  ///< feature, extension, compute shaders, and the memory model that it needs
  bool subgroup_sizes_known = false;  ///< the range, and not one of several
  bool subgroup_size_control = false;  ///< feature and extension, and that compute shaders can require a size
  std::vector<QueueFamily> queues;
  std::vector<MemoryType> memory_types;
  std::vector<MemoryHeap> heaps;
  std::vector<std::string> extensions;
};

/// How to use it, or why not.
struct DevicePlan {
  bool usable = false;
  std::string reason;
  DeviceCaps caps;
  std::uint32_t queue_family = 0;
  std::vector<std::string> extensions;  ///< that must be enabled
  std::vector<std::string> optional_extensions;  ///< whose features are used where they are enabled
  bool subgroup_size_control = false;  ///< pipelines can require the size of their subgroups
};
DevicePlan plan_device(const DeviceSnapshot& snapshot);

/// The limit that is below the baseline device (docs: the least that kernels are written for) and by how much, or "".
std::string find_low_limit(const DeviceCaps& caps);

/// The sizes that can be required: those that there are, where a size can be chosen or there is one only.
void set_required_subgroup_sizes(DeviceCaps& caps, bool size_control);

/// Sets the predictions to orders of magnitude by device type, until a measurement scales them.
void set_predictions(DeviceCaps& caps);

/// Scales the predictions by the rate of copies, of bytes read and written, that was measured on the device itself.
void scale_predictions(DeviceCaps& caps, double measured_bytes_per_s);

/// What is left of a device that pretends to be `profile`: the smaller limits, the larger alignments, the range that holds
/// both subgroup sizes, of sizes that can be required and of matrices those of both or else the device's, the features of both, and the profile's type. Driver, vendor and predictions stay the device's,
/// which does the work. Zeros that mean "no limit" or "unknown" give way to numbers. The name is "<device> as <profile>".
DeviceCaps clamp_caps(const DeviceCaps& caps, const DeviceCaps& profile);

/// What memory is for.
enum class MemoryIntent : std::uint8_t {
  kDevice,    ///< read and written by kernels; host-visible only where that costs nothing
  kUpload,    ///< written by the host, read by copies
  kReadback,  ///< written by kernels or copies, read by the host
};

constexpr std::size_t kMemoryIntents = 3;

/// Bytes of the buffer that is made where `size_bytes` are asked for: whole pieces of 256, at least one.
constexpr std::uint64_t allocated_bytes(std::uint64_t size_bytes) {
  const std::uint64_t whole = (size_bytes + 255) / 256 * 256;
  return whole ? whole : 256;
}

/// The staging ring of uploads: slots of this size, which also bounds one write.
constexpr std::size_t kStagingSlots = 2;
constexpr std::uint64_t kStagingSlotBytes = 1u << 20;

/// The memory type for a buffer that allows the types in `allowed_bits`, or -1.
int choose_memory_type(const std::vector<MemoryType>& types, std::uint32_t allowed_bits, MemoryIntent intent, DeviceType device);

/// "discrete", "integrated", "virtual", "cpu" or "other".
const char* device_type_name(DeviceType type);
/// The type of this name.
std::optional<DeviceType> find_device_type(std::string_view name);

/// Index into `plans` of the device to use when none is named, or -1 if none is usable.
int choose_device(const std::vector<DevicePlan>& plans);

}  // namespace rondo::runtime
