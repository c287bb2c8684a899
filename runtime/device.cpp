#include "runtime/device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include <rondo/vulkan.h>

#include "runtime/fmt.h"
#include "runtime/instance.h"
#include "runtime/kernel.h"
#include "runtime/memory.h"
#include "runtime/pipeline_cache.h"
#include "runtime/transfer.h"

namespace rondo::runtime {

Device::Device(Parts parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Device>> Device::create(Instance& instance, std::uint32_t index, const DeviceCaps* profile) {
  Parts parts;
  parts.plan = instance.plans()[index];
  parts.info = instance.infos()[index];
  parts.memory_types = instance.snapshot(index).memory_types;
  parts.log = instance.log();
  parts.owned = true;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, parts.plan.queue_family, 1, &priority};
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.storageBuffer16BitAccess = parts.plan.caps.storage16;
  features12.pNext = &features11;
  std::vector<const char*> extensions;
  for (const std::string& name : parts.plan.extensions) extensions.push_back(name.c_str());
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features12;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = instance.vk().create_device(instance.physical_device(index), &info, nullptr, &parts.handle);
  if (result != VK_SUCCESS) return Status::from_vulkan(result, fmt::format("device {}: it can't be created", parts.info.name));
  RONDO_ASSIGN(parts.vk, load_device_table(instance.handle(), parts.handle, nullptr));
  parts.vk.vkGetDeviceQueue(parts.handle, parts.plan.queue_family, 0, &parts.queue);
  RONDO_ASSIGN(std::unique_ptr<Device> device, adopt(std::move(parts)));
  if (profile) device->pretend(*profile);
  return device;
}

Result<std::unique_ptr<Device>> Device::adopt(Parts parts) {
  std::unique_ptr<Device> device(new Device(std::move(parts)));
  RONDO_TRY(device->start());
  return device;
}

Status Device::start() {
  pipeline_cache_ = std::make_unique<PipelineCache>(*this);
  kernels_ = std::make_unique<KernelCache>(*this);
  if (parts_.memory_types.empty()) return {};  // a driver without hardware: it compiles, and that is all
  VkSemaphoreTypeCreateInfo type{VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, nullptr, VK_SEMAPHORE_TYPE_TIMELINE, 0};
  VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
  const VkResult result = vk().vkCreateSemaphore(handle(), &info, nullptr, &timeline_);
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: the timeline semaphore can't be created", caps().name));
  return measure();
}

/// Scales the predictions by the copy rate of this very device. Copies need no pipeline, so nothing is compiled.
Status Device::measure() {
  constexpr std::uint64_t kBytes = 2u << 20;
  RONDO_ASSIGN(Buffer buffer, Buffer::create(*this, 3 * kBytes, MemoryIntent::kDevice, "measurement"));
  CommandList commands(*this);
  double best_s = 1;
  for (int i = 0; i < 3; ++i) {
    RONDO_TRY(commands.begin());
    // To two places, because copies to one would need a barrier between them.
    for (std::uint64_t to : {kBytes, 2 * kBytes}) commands.copy(buffer, 0, buffer, to, kBytes);
    RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
    const Batch batch{{&recorded, 1}};
    const auto start = std::chrono::steady_clock::now();
    RONDO_ASSIGN(const std::uint64_t value, submit({&batch, 1}));
    RONDO_TRY(wait(value, 10'000'000'000ull));
    best_s = std::min(best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  // A copy reads and writes; the submission itself costs some tens of microseconds, which only small devices notice.
  const double measured = 4.0 * kBytes / std::max(best_s, 1e-6);
  DeviceCaps& predictions = parts_.plan.caps;
  // What a CPU copies says little of how fast its driver computes: there the measurement only slows predictions down.
  const double most = predictions.type == DeviceType::kCpu ? 1.0 : 4.0;
  const double ratio = std::clamp(measured / predictions.bytes_per_s, 0.25, most);
  predictions.bytes_per_s *= ratio;
  predictions.flops_per_s *= ratio;
  return {};
}

void Device::pretend(const DeviceCaps& profile) {
  parts_.plan.caps = clamp_caps(caps(), profile);
  parts_.info.name = caps().name;
}

Device::~Device() {
  if (timeline_ && !lost_) (void)wait(last_submitted_, ~0ull);
  for (auto& [value, garbage] : garbage_) destroy(garbage);
  kernels_.reset();
  pipeline_cache_.reset();
  if (timeline_) vk().vkDestroySemaphore(handle(), timeline_, nullptr);
  if (parts_.owned && handle()) vk().vkDestroyDevice(handle(), nullptr);
}

void Device::log(LogLevel level, std::string_view message) const {
  if (parts_.log) parts_.log(level, message);
}

Status Device::fail(VkResult result, std::string message) {
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  return Status::from_vulkan(result, std::move(message));
}

Status Device::check_lost() const {
  if (!lost_) return {};
  return Status::from_vulkan(VK_ERROR_DEVICE_LOST, fmt::format("device {}: it was lost", caps().name));
}

Result<std::uint64_t> Device::submit(std::span<const Batch> batches) {
  RONDO_TRY(check_lost());
  std::array<VkSubmitInfo, kMaxBatches> infos;
  std::array<VkTimelineSemaphoreSubmitInfo, kMaxBatches> timelines;
  std::array<std::uint64_t, kMaxBatches> values;
  const std::size_t n = batches.size();
  assert(n > 0 && n <= kMaxBatches);

  const std::lock_guard lock(queue_mutex_);
  for (std::size_t i = 0; i < n; ++i) {
    values[i] = last_submitted_ + 1 + i;
    timelines[i] = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, 0, nullptr, 1, &values[i]};
    infos[i] = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timelines[i], 0, nullptr, nullptr, static_cast<std::uint32_t>(batches[i].command_buffers.size()),
                batches[i].command_buffers.data(), 1, &timeline_};
  }
  if (parts_.lock_queue) parts_.lock_queue();
  const VkResult result = vk().vkQueueSubmit(parts_.queue, static_cast<std::uint32_t>(n), infos.data(), VK_NULL_HANDLE);
  if (parts_.unlock_queue) parts_.unlock_queue();
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: submission failed", caps().name));
  last_submitted_ += n;
  return values[n - 1];
}

Result<std::uint64_t> Device::completed_value() {
  RONDO_TRY(check_lost());
  std::uint64_t value = 0;
  const VkResult result = vk().vkGetSemaphoreCounterValue(handle(), timeline_, &value);
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: the timeline can't be read", caps().name));
  return value;
}

Status Device::wait(std::uint64_t value, std::uint64_t timeout_ns) {
  RONDO_TRY(check_lost());
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &timeline_, &value};
  const VkResult result = vk().vkWaitSemaphores(handle(), &info, timeout_ns);
  if (result == VK_TIMEOUT) return Status(StatusCode::kTimeout, fmt::format("device {}: not done yet", caps().name));
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: waiting failed", caps().name));
  return {};
}

void Device::destroy(Garbage& garbage) {
  for (VkCommandPool pool : garbage.command_pools) vk().vkDestroyCommandPool(handle(), pool, nullptr);
  for (VkDescriptorPool pool : garbage.descriptor_pools) vk().vkDestroyDescriptorPool(handle(), pool, nullptr);
  for (VkQueryPool pool : garbage.query_pools) vk().vkDestroyQueryPool(handle(), pool, nullptr);
  for (VkBuffer buffer : garbage.buffers) vk().vkDestroyBuffer(handle(), buffer, nullptr);
  for (VkDeviceMemory memory : garbage.memories) vk().vkFreeMemory(handle(), memory, nullptr);
  garbage = {};
}

void Device::retire(Garbage garbage) {
  const std::lock_guard lock(garbage_mutex_);
  garbage_.emplace_back(last_submitted_.load(), std::move(garbage));
  collect();
}

void Device::collect() {
  std::uint64_t done = last_submitted_;
  if (!lost_) {
    const Result<std::uint64_t> completed = completed_value();
    if (completed.ok()) done = *completed;
  }
  std::size_t kept = 0;
  for (auto& entry : garbage_) {
    if (entry.first <= done) destroy(entry.second);
    else std::swap(garbage_[kept++], entry);
  }
  garbage_.resize(kept);
}

}  // namespace rondo::runtime

namespace rondo {

bool Device::add_pipeline_cache(std::span<const std::byte> blob) {
  const std::string refusal = impl_->pipeline_cache().add(blob);
  if (refusal.empty()) return true;
  impl_->log(LogLevel::kWarn, fmt::format("pipeline cache not used: {}", refusal));
  return false;
}

Result<std::vector<std::byte>> Device::pipeline_cache() const { return impl_->pipeline_cache().blob(); }
std::string Device::pipeline_cache_key() const { return impl_->pipeline_cache().key(); }

Device::Device(std::unique_ptr<runtime::Device> impl) : impl_(std::move(impl)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

const DeviceInfo& Device::info() const { return impl_->info(); }

DeviceProfile::DeviceProfile(std::unique_ptr<const runtime::DeviceCaps> caps) : caps_(std::move(caps)) {}
DeviceProfile::DeviceProfile(DeviceProfile&&) noexcept = default;
DeviceProfile& DeviceProfile::operator=(DeviceProfile&&) noexcept = default;
DeviceProfile::~DeviceProfile() = default;

const std::string& DeviceProfile::name() const { return caps_->name; }

Result<Device> Device::create(const Instance& instance, std::string_view selector, const DeviceOptions& options) {
  RONDO_ASSIGN(const std::uint32_t index, instance.find_device(selector));
  const runtime::DeviceCaps* profile = options.profile ? &options.profile->internal() : nullptr;
  RONDO_ASSIGN(std::unique_ptr<runtime::Device> impl, runtime::Device::create(instance.internal(), index, profile));
  return Device(std::move(impl));
}

namespace {

/// The features that Rondo uses and a VkDeviceCreateInfo's pNext chain has on.
struct EnabledFeatures {
  bool timeline_semaphore = false, storage16 = false;
};
EnabledFeatures read_features(const void* chain) {
  EnabledFeatures enabled;
  for (auto* link = static_cast<const VkBaseInStructure*>(chain); link; link = link->pNext) {
    if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      enabled.timeline_semaphore |= reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(link)->timelineSemaphore == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) {
      enabled.timeline_semaphore |= reinterpret_cast<const VkPhysicalDeviceTimelineSemaphoreFeatures*>(link)->timelineSemaphore == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES) {
      enabled.storage16 |= reinterpret_cast<const VkPhysicalDeviceVulkan11Features*>(link)->storageBuffer16BitAccess == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES) {
      enabled.storage16 |= reinterpret_cast<const VkPhysicalDevice16BitStorageFeatures*>(link)->storageBuffer16BitAccess == VK_TRUE;
    }
  }
  return enabled;
}

}  // namespace

Result<Device> import_device(const ImportedDevice& imported) {
  if (!imported.instance || !imported.physical_device || !imported.device || !imported.queue) {
    return Status(StatusCode::kInvalidArgument, "import_device: instance, physical device, device and queue must not be null");
  }
  if (!imported.lock_queue != !imported.unlock_queue) {
    return Status(StatusCode::kInvalidArgument, "import_device: lock_queue and unlock_queue go together");
  }
  RONDO_ASSIGN(const runtime::InstanceTable vk, runtime::load_instance_table(imported.instance, imported.get_instance_proc_addr));
  runtime::DeviceSnapshot snapshot = runtime::take_snapshot(vk, imported.physical_device);
  snapshot.api_version = std::min(snapshot.api_version, imported.api_version);
  const EnabledFeatures enabled = read_features(imported.enabled_features);
  snapshot.storage16 = enabled.storage16;
  if (!enabled.timeline_semaphore) {
    return Status(StatusCode::kUnsupported, fmt::format("import_device: {}: feature timelineSemaphore is not enabled", snapshot.reported.name));
  }
  runtime::Device::Parts parts;
  parts.plan = runtime::plan_device(snapshot);
  if (!parts.plan.usable) return Status(StatusCode::kUnsupported, fmt::format("import_device: {}: {}", snapshot.reported.name, parts.plan.reason));
  if (imported.queue_family >= snapshot.queues.size() || !(snapshot.queues[imported.queue_family].flags & runtime::kQueueCompute)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("import_device: queue family {} can't compute", imported.queue_family));
  }
  for (const std::string& needed : parts.plan.extensions) {
    const auto& given = imported.enabled_extensions;
    if (std::none_of(given.begin(), given.end(), [&](const char* name) { return needed == name; })) {
      return Status(StatusCode::kUnsupported, fmt::format("import_device: {}: extension {} is not enabled", snapshot.reported.name, needed));
    }
  }
  parts.plan.queue_family = imported.queue_family;
  parts.info = runtime::describe(0, snapshot, parts.plan);
  parts.memory_types = snapshot.memory_types;
  parts.handle = imported.device;
  parts.queue = imported.queue;
  parts.log = imported.log;
  parts.lock_queue = imported.lock_queue;
  parts.unlock_queue = imported.unlock_queue;
  RONDO_ASSIGN(parts.vk, runtime::load_device_table(imported.instance, imported.device, imported.get_instance_proc_addr));
  RONDO_ASSIGN(std::unique_ptr<runtime::Device> impl, runtime::Device::adopt(std::move(parts)));
  return Device(std::move(impl));
}

}  // namespace rondo
