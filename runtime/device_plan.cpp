#include "runtime/device_plan.h"

#include <algorithm>
#include <array>

#include "runtime/fmt.h"
#include "runtime/quirks.h"

namespace rondo::runtime {

namespace {

constexpr std::uint32_t kVulkan12 = (1u << 22) | (2u << 12);

/// Why the device is below the baseline profile, or "".
std::string find_refusal(const DeviceSnapshot& snapshot) {
  if (snapshot.api_version < kVulkan12) {
    return fmt::format("Vulkan {}.{} but 1.2 is needed", snapshot.api_version >> 22, (snapshot.api_version >> 12) & 0x3ff);
  }
  if (!snapshot.timeline_semaphore) return "feature timelineSemaphore is missing";
  return find_low_limit(snapshot.reported);
}

int find_compute_queue(const std::vector<QueueFamily>& queues) {
  int found = -1;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    if (!(queues[i].flags & kQueueCompute) || queues[i].count == 0) continue;
    // A family without graphics leaves the host's rendering alone.
    if (found < 0 || !(queues[i].flags & kQueueGraphics)) found = static_cast<int>(i);
    if (!(queues[i].flags & kQueueGraphics)) break;
  }
  return found;
}

}  // namespace

std::string find_low_limit(const DeviceCaps& caps) {
  struct Limit {
    const char* name;
    std::uint64_t found, needed;
  };
  const Limit limits[] = {
      {"maxPerStageDescriptorStorageBuffers", caps.max_storage_buffers, 8},
      {"maxComputeWorkGroupInvocations", caps.max_invocations, 128},
      {"maxComputeSharedMemorySize", caps.max_shared_bytes, 16384},
      {"maxPushConstantsSize", caps.max_push_bytes, 128},
      {"maxComputeWorkGroupCount[0]", caps.max_grid[0], 65535},
      {"maxComputeWorkGroupCount[1]", caps.max_grid[1], 65535},
      {"maxComputeWorkGroupCount[2]", caps.max_grid[2], 65535},
      {"maxStorageBufferRange", caps.max_storage_range_bytes, 1u << 16},
  };
  for (const Limit& limit : limits) {
    if (limit.found < limit.needed) return fmt::format("{} is {} but {} is needed", limit.name, limit.found, limit.needed);
  }
  if (caps.storage_offset_alignment > 256) {
    return fmt::format("minStorageBufferOffsetAlignment is {} but at most 256 is needed", caps.storage_offset_alignment);
  }
  return "";
}

void set_required_subgroup_sizes(DeviceCaps& caps, bool size_control) {
  const bool any = size_control || caps.min_subgroup_size == caps.max_subgroup_size;
  caps.min_required_subgroup_size = any ? caps.min_subgroup_size : 0;
  caps.max_required_subgroup_size = any ? caps.max_subgroup_size : 0;
}

void set_predictions(DeviceCaps& caps) {
  switch (caps.type) {
    case DeviceType::kDiscrete: caps.bytes_per_s = 300e9, caps.flops_per_s = 3e12, caps.dispatch_ns = 3000; break;
    case DeviceType::kCpu: caps.bytes_per_s = 4e9, caps.flops_per_s = 1e9, caps.dispatch_ns = 10000; break;
    default: caps.bytes_per_s = 30e9, caps.flops_per_s = 0.3e12, caps.dispatch_ns = 6000; break;
  }
}

void scale_predictions(DeviceCaps& caps, double measured_bytes_per_s) {
  // What a CPU copies says little of how fast its driver computes: there the measurement only slows predictions down.
  const double most = caps.type == DeviceType::kCpu ? 1.0 : 4.0;
  const double ratio = std::clamp(measured_bytes_per_s / caps.bytes_per_s, 0.25, most);
  caps.bytes_per_s *= ratio;
  caps.flops_per_s *= ratio;
}

DeviceCaps clamp_caps(const DeviceCaps& caps, const DeviceCaps& profile) {
  // Zero stands for no number.
  const auto smaller = [](auto a, auto b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); };
  DeviceCaps both = caps;
  both.name = fmt::format("{} as {}", caps.name, profile.name);
  both.type = profile.type;
  both.max_storage_range_bytes = std::min(caps.max_storage_range_bytes, profile.max_storage_range_bytes);
  both.max_allocation_bytes = std::min(caps.max_allocation_bytes, profile.max_allocation_bytes);
  both.memory_budget_bytes = smaller(caps.memory_budget_bytes, profile.memory_budget_bytes);
  both.storage_offset_alignment = std::max(caps.storage_offset_alignment, profile.storage_offset_alignment);
  both.non_coherent_atom_bytes = std::max(caps.non_coherent_atom_bytes, profile.non_coherent_atom_bytes);
  both.max_storage_buffers = std::min(caps.max_storage_buffers, profile.max_storage_buffers);
  both.max_invocations = std::min(caps.max_invocations, profile.max_invocations);
  both.max_shared_bytes = std::min(caps.max_shared_bytes, profile.max_shared_bytes);
  both.max_push_bytes = std::min(caps.max_push_bytes, profile.max_push_bytes);
  for (std::size_t i = 0; i < 3; ++i) both.max_grid[i] = std::min(caps.max_grid[i], profile.max_grid[i]);
  both.min_subgroup_size = std::min(caps.min_subgroup_size, profile.min_subgroup_size);
  both.max_subgroup_size = std::max(caps.max_subgroup_size, profile.max_subgroup_size);
  both.min_required_subgroup_size = std::max(caps.min_required_subgroup_size, profile.min_required_subgroup_size);
  both.max_required_subgroup_size = std::min(caps.max_required_subgroup_size, profile.max_required_subgroup_size);
  if (profile.max_required_subgroup_size != 0 && both.min_required_subgroup_size > both.max_required_subgroup_size) {
    both.min_required_subgroup_size = caps.min_required_subgroup_size;
    both.max_required_subgroup_size = caps.max_required_subgroup_size;
  }
  if (both.max_required_subgroup_size == 0) both.min_required_subgroup_size = 0;
  both.subgroup_arithmetic = caps.subgroup_arithmetic && profile.subgroup_arithmetic;
  both.subgroup_shuffle = caps.subgroup_shuffle && profile.subgroup_shuffle;
  both.integer_dot = caps.integer_dot && profile.integer_dot;
  both.fast_integer_dot = both.integer_dot && profile.fast_integer_dot;
  both.float16 = caps.float16 && profile.float16;
  both.half_dot = both.float16 && caps.half_dot && profile.half_dot;
  std::erase_if(both.matrices, [&](const MatrixShape& shape) { return std::find(profile.matrices.begin(), profile.matrices.end(), shape) == profile.matrices.end(); });
  if (both.matrices.empty() && !profile.matrices.empty()) both.matrices = caps.matrices;
  if (!both.float16) both.matrices.clear();
  both.storage16 = caps.storage16 && profile.storage16;
  both.device_scope = caps.device_scope && profile.device_scope;
  if (profile.cores != 0) both.cores = profile.cores;
  both.timestamp_bits = std::min(caps.timestamp_bits, profile.timestamp_bits);
  both.max_loop_iterations = smaller(caps.max_loop_iterations, profile.max_loop_iterations);
  return both;
}

namespace {

constexpr std::array<const char*, 5> kTypeNames = {"discrete", "integrated", "virtual", "cpu", "other"};

}  // namespace

const char* device_type_name(DeviceType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::optional<DeviceType> find_device_type(std::string_view name) {
  for (std::size_t i = 0; i < kTypeNames.size(); ++i) {
    if (name == kTypeNames[i]) return static_cast<DeviceType>(i);
  }
  return {};
}

DevicePlan plan_device(const DeviceSnapshot& snapshot) {
  DevicePlan plan;
  plan.caps = snapshot.reported;
  plan.caps.storage16 = snapshot.storage16;
  plan.caps.integer_dot = snapshot.integer_dot;
  plan.caps.fast_integer_dot = snapshot.integer_dot && snapshot.reported.fast_integer_dot;
  plan.caps.float16 = snapshot.float16;
  plan.caps.half_dot = snapshot.half_dot && snapshot.float16;
  if (!snapshot.cooperative_matrix || !snapshot.float16) plan.caps.matrices.clear();
  if (!snapshot.cooperative_matrix) plan.caps.matrix_products.clear();
  if (snapshot.subgroup_sizes_known) set_required_subgroup_sizes(plan.caps, snapshot.subgroup_size_control);
  plan.caps.storage_offset_alignment = std::max(plan.caps.storage_offset_alignment, 16u);  // kernels read 16 bytes at a time
  for (const MemoryHeap& heap : snapshot.heaps) {
    if (heap.device_local) plan.caps.memory_budget_bytes = std::max(plan.caps.memory_budget_bytes, heap.size_bytes);
  }
  set_predictions(plan.caps);
  apply_quirks(plan.caps);
  plan.reason = find_refusal(snapshot);
  const int queue = find_compute_queue(snapshot.queues);
  if (plan.reason.empty() && queue < 0) plan.reason = "it has no compute queue";
  if (plan.reason.empty() && snapshot.memory_types.empty()) plan.reason = "it has no memory (a driver without hardware)";
  plan.usable = plan.reason.empty();
  if (queue >= 0) {
    plan.queue_family = static_cast<std::uint32_t>(queue);
    plan.caps.timestamp_bits = snapshot.queues[plan.queue_family].timestamp_bits;
  }
  const char* portability = "VK_KHR_portability_subset";
  if (std::find(snapshot.extensions.begin(), snapshot.extensions.end(), portability) != snapshot.extensions.end()) {
    plan.extensions.push_back(portability);  // must be enabled where it exists
  }
  plan.subgroup_size_control = snapshot.subgroup_size_control;
  if (plan.subgroup_size_control) plan.optional_extensions.push_back(kSubgroupSizeControl);
  if (plan.caps.integer_dot) plan.optional_extensions.push_back(kIntegerDotProduct);
  if (plan.caps.half_dot) plan.optional_extensions.push_back(kMixedFloatDotProduct);
  if (!plan.caps.matrices.empty()) plan.optional_extensions.push_back(kCooperativeMatrix);
  return plan;
}

int choose_memory_type(const std::vector<MemoryType>& types, std::uint32_t allowed_bits, MemoryIntent intent, DeviceType device) {
  const bool shared_memory = device == DeviceType::kCpu || device == DeviceType::kIntegrated;
  int best = -1, best_score = -1;
  for (std::size_t i = 0; i < types.size() && i < 32; ++i) {
    if (!(allowed_bits & (1u << i))) continue;
    const auto has = [&](std::uint32_t flag) { return (types[i].flags & flag) != 0; };
    int score = 0;
    switch (intent) {
      case MemoryIntent::kDevice:
        score = (has(kMemoryDeviceLocal) ? 8 : 0) + (has(kMemoryHostVisible) == shared_memory ? 4 : 0) +
                (shared_memory && has(kMemoryHostCoherent) ? 2 : 0);
        break;
      case MemoryIntent::kUpload:
        if (!has(kMemoryHostVisible)) continue;
        score = (has(kMemoryHostCoherent) ? 4 : 0) + (has(kMemoryDeviceLocal) ? 0 : 2);
        break;
      case MemoryIntent::kReadback:
        if (!has(kMemoryHostVisible)) continue;
        score = (has(kMemoryHostCached) ? 8 : 0) + (has(kMemoryHostCoherent) ? 4 : 0) + (has(kMemoryDeviceLocal) ? 0 : 2);
        break;
    }
    if (score > best_score) {
      best = static_cast<int>(i);
      best_score = score;
    }
  }
  return best;
}

int choose_device(const std::vector<DevicePlan>& plans) {
  int best = -1;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!plans[i].usable) continue;
    if (best < 0 || plans[i].caps.type < plans[static_cast<std::size_t>(best)].caps.type) best = static_cast<int>(i);
  }
  return best;
}

}  // namespace rondo::runtime
