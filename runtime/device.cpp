#include "runtime/device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include <rondo/vulkan.h>

#include "runtime/cooperative_matrix.h"
#include "runtime/fmt.h"
#include "runtime/instance.h"
#include "runtime/kernel.h"
#include "runtime/memory.h"
#include "runtime/mixed_float_dot_product.h"
#include "runtime/pipeline_cache.h"
#include "runtime/transfer.h"

namespace rondo::runtime {

namespace {

/// What a measurement copies, to two places: copies to one would need a barrier between them.
constexpr std::uint64_t kMeasuredBytes = 2u << 20;
constexpr std::uint32_t kMeasuredRounds = 3;

void record_round(CommandList& commands, const Buffer& buffer) {
  for (std::uint64_t to : {kMeasuredBytes, 2 * kMeasuredBytes}) commands.copy(buffer, 0, buffer, to, kMeasuredBytes);
}

/// Bytes per second of a round, in which each copy reads and writes.
double rate_of_round(double seconds) { return 4.0 * kMeasuredBytes / std::max(seconds, 1e-6); }

}  // namespace

/// Copies between timestamps, recorded when the device is made and submitted in front of its first work.
struct Device::Measurement {
  Buffer buffer;
  TimestampPool timestamps;
  CommandList commands;
  VkCommandBuffer recorded = VK_NULL_HANDLE;
};

Device::Device(Parts parts) : parts_(std::move(parts)), caps_(&parts_.plan.caps) {}

namespace {

/// A device with all that the plan uses. Errors as create_logical_device's.
Result<Instance::LogicalDevice> create_with(const Instance& instance, std::uint32_t index, const DevicePlan& plan) {
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.timelineSemaphore = VK_TRUE;
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  features11.storageBuffer16BitAccess = plan.caps.storage16;
  features12.pNext = &features11;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, nullptr, VK_TRUE, VK_TRUE};
  if (plan.subgroup_size_control) features11.pNext = &size_control;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  dot.shaderIntegerDotProduct = VK_TRUE;
  if (plan.caps.integer_dot) dot.pNext = features11.pNext, features11.pNext = &dot;
  features12.shaderFloat16 = plan.caps.float16;
  MixedFloatDotProductFeatures half_dot;
  half_dot.shaderMixedFloatDotProductFloat16AccFloat32 = VK_TRUE;
  if (plan.caps.half_dot) half_dot.pNext = features11.pNext, features11.pNext = &half_dot;
  CooperativeMatrixFeatures matrices;
  matrices.cooperativeMatrix = VK_TRUE;
  if (!plan.caps.matrices.empty()) {
    features12.vulkanMemoryModel = VK_TRUE;
    features12.vulkanMemoryModelDeviceScope = VK_TRUE;  // with that model other kernels' atomics need it
    matrices.pNext = features11.pNext;
    features11.pNext = &matrices;
  }
  std::vector<const char*> extensions;
  for (const std::string& name : plan.extensions) extensions.push_back(name.c_str());
  for (const std::string& name : plan.optional_extensions) extensions.push_back(name.c_str());
  return instance.create_logical_device(index, &features12, extensions);
}

/// A feature that kernels do without.
struct OptionalFeature {
  const char* name;
  bool DeviceSnapshot::*listed;
};
constexpr OptionalFeature kOptionalFeatures[] = {{"cooperative matrices", &DeviceSnapshot::cooperative_matrix}, {"dot products of f16", &DeviceSnapshot::half_dot},
                                                 {"integer dot products", &DeviceSnapshot::integer_dot},        {"subgroups of a required size", &DeviceSnapshot::subgroup_size_control},
                                                 {"arithmetic in f16", &DeviceSnapshot::float16},               {"16-bit storage", &DeviceSnapshot::storage16}};

/// The same for a driver that lists features and then refuses them: without the first that it can do without, or without all; `plan` becomes what that leaves.
Result<Instance::LogicalDevice> create_without(const Instance& instance, std::uint32_t index, DevicePlan& plan) {
  const auto try_without = [&](std::span<const OptionalFeature> features) {
    DeviceSnapshot fewer = instance.snapshot(index);
    std::vector<const char*> names;
    for (const OptionalFeature& feature : features) {
      if (std::exchange(fewer.*feature.listed, false)) names.push_back(feature.name);
    }
    DevicePlan left = plan_device(fewer);
    Result<Instance::LogicalDevice> device = create_with(instance, index, left);
    if (!device.ok()) return device;
    if (instance.log()) instance.log()(LogLevel::kWarn, fmt::format("device {} lists {} and refuses them: it is used without", left.caps.name, fmt::join(names, ", ")));
    plan = std::move(left);
    return device;
  };
  for (const OptionalFeature& feature : kOptionalFeatures) {
    if (!(instance.snapshot(index).*feature.listed)) continue;
    Result<Instance::LogicalDevice> device = try_without({&feature, 1});
    if (device.ok()) return device;
  }
  return try_without(kOptionalFeatures);
}

}  // namespace

Result<std::unique_ptr<Device>> Device::create(std::shared_ptr<Instance> owner, std::uint32_t index, const DeviceCaps* profile) {
  const Instance& instance = *owner;
  Parts parts;
  parts.plan = instance.plans()[index];
  Result<Instance::LogicalDevice> logical = create_with(instance, index, parts.plan);
  const std::int32_t result = logical.status().vk_result();
  if (result == VK_ERROR_FEATURE_NOT_PRESENT || result == VK_ERROR_EXTENSION_NOT_PRESENT) logical = create_without(instance, index, parts.plan);
  RONDO_TRY(logical.status());
  parts.instance = std::move(owner);
  parts.info = instance.infos()[index];
  parts.memory_types = instance.snapshot(index).memory_types;
  parts.log = instance.log();
  parts.owned = true;
  parts.handle = logical->handle;
  parts.vk = logical->vk;
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
  return parts_.measure_later ? prepare_measurement() : measure();
}

/// Scales the predictions by the copy rate of this very device. Copies need no pipeline, so nothing is compiled.
Status Device::measure() {
  RONDO_ASSIGN(Buffer buffer, Buffer::create(*this, 3 * kMeasuredBytes, MemoryIntent::kDevice, "measurement"));
  CommandList commands(*this);
  double best_s = 1;
  for (std::uint32_t i = 0; i < kMeasuredRounds; ++i) {
    RONDO_TRY(commands.begin());
    record_round(commands, buffer);
    RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
    const Batch batch{{&recorded, 1}};
    const auto start = std::chrono::steady_clock::now();
    RONDO_ASSIGN(const std::uint64_t value, submit({&batch, 1}));
    RONDO_TRY(wait(value, ~0ull));
    // With the submission itself: some tens of microseconds, which only small devices notice.
    best_s = std::min(best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  scale_predictions(parts_.plan.caps, rate_of_round(best_s));
  return {};
}

Status Device::prepare_measurement() {
  if (caps().timestamp_bits == 0) return {};  // when the queue reached our work can't be known
  RONDO_ASSIGN(Buffer buffer, Buffer::create(*this, 3 * kMeasuredBytes, MemoryIntent::kDevice, "measurement"));
  RONDO_ASSIGN(TimestampPool timestamps, TimestampPool::create(*this, kMeasuredRounds));
  CommandList commands(*this);
  RONDO_TRY(commands.begin());
  commands.reset(timestamps);
  commands.note_time(timestamps, 0);
  for (std::uint32_t i = 0; i < kMeasuredRounds; ++i) {
    record_round(commands, buffer);
    commands.note_time(timestamps, i + 1);
    commands.wait_for_copies();
  }
  RONDO_ASSIGN(const VkCommandBuffer recorded, commands.end());
  measurement_.reset(new Measurement{std::move(buffer), std::move(timestamps), std::move(commands), recorded});
  return {};
}

/// Reads the times of a measurement that is done.
void Device::learn_speed(std::uint64_t done) {
  const std::uint64_t value = measurement_done_;
  if (value == 0 || done < value) return;
  std::unique_ptr<Measurement> measurement;
  {
    const std::unique_lock lock(queue_mutex_, std::try_to_lock);
    if (!lock || !measurement_) return;
    measurement = std::move(measurement_);
    measurement_done_ = 0;
  }
  const Result<std::vector<double>> times = measurement->timestamps.read();
  if (!times.ok()) return;  // the predictions stay those of the device's type
  double best_ns = 1e9;
  for (std::uint32_t i = 0; i < kMeasuredRounds; ++i) best_ns = std::min(best_ns, (*times)[i + 1] - (*times)[i]);
  auto measured = std::make_unique<DeviceCaps>(parts_.plan.caps);
  scale_predictions(*measured, rate_of_round(1e-9 * best_ns));
  caps_.store(measured.get(), std::memory_order_release);
  measured_caps_ = std::move(measured);
}

void Device::pretend(const DeviceCaps& profile) {
  parts_.plan.caps = clamp_caps(caps(), profile);
  parts_.info.name = caps().name;
}

Device::~Device() {
  if (timeline_ && !lost_ && wait(last_submitted_, ~0ull).code() == StatusCode::kInternal) {
    // Nothing that it may still use can be destroyed, and waiting for ever is worse than leaving it.
    log(LogLevel::kError, fmt::format("device {}: does no work; its objects are left", caps().name));
    (void)measurement_.release();
    (void)kernels_.release();
    (void)pipeline_cache_.release();
    return;
  }
  measurement_.reset();
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
  assert(!batches.empty() && batches.size() <= kMaxBatches);
  std::uint64_t last = 0;
  // The host's lock comes first, and ours is free again before the host's: a callback that throws, which it must not, leaves
  // no lock of ours held.
  if (parts_.lock_queue) parts_.lock_queue();
  const VkResult result = submit_locked(batches, last);
  if (parts_.unlock_queue) parts_.unlock_queue();
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: submission failed", caps().name));
  tidy();
  return last;
}

/// Gives the value of the last batch in `last`.
VkResult Device::submit_locked(std::span<const Batch> batches, std::uint64_t& last) {
  std::array<VkSubmitInfo, kMaxBatches + 1> infos;
  std::array<VkTimelineSemaphoreSubmitInfo, kMaxBatches> timelines;
  std::array<std::uint64_t, kMaxBatches> values;
  const std::lock_guard lock(queue_mutex_);
  std::uint32_t n = 0;
  const bool measures = measurement_ && measurement_done_ == 0;
  if (measures) infos[n++] = {VK_STRUCTURE_TYPE_SUBMIT_INFO, nullptr, 0, nullptr, nullptr, 1, &measurement_->recorded, 0, nullptr};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    values[i] = last_submitted_ + 1 + i;
    timelines[i] = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, nullptr, 0, nullptr, 1, &values[i]};
    infos[n++] = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &timelines[i], 0, nullptr, nullptr, static_cast<std::uint32_t>(batches[i].command_buffers.size()),
                  batches[i].command_buffers.data(), 1, &timeline_};
  }
  const VkResult result = vk().vkQueueSubmit(parts_.queue, n, infos.data(), VK_NULL_HANDLE);
  if (result != VK_SUCCESS) return result;
  if (measures) measurement_done_ = values[0];
  last_submitted_ += batches.size();
  last = last_submitted_;
  return result;
}

Result<std::uint64_t> Device::completed_value() {
  RONDO_TRY(check_lost());
  std::uint64_t value = 0;
  const VkResult result = vk().vkGetSemaphoreCounterValue(handle(), timeline_, &value);
  if (result != VK_SUCCESS) return fail(result, fmt::format("device {}: the timeline can't be read", caps().name));
  tidy_up_to(value);
  return value;
}

Status Device::wait(std::uint64_t value, std::uint64_t timeout_ns) {
  std::uint64_t done = timeout_ns > kMostStillNs ? find_completed() : 0;
  for (; timeout_ns > kMostStillNs; timeout_ns -= kMostStillNs) {
    const Status waited = wait_once(value, kMostStillNs);
    if (waited.code() != StatusCode::kTimeout) return waited;
    if (find_completed() == done) return Status(StatusCode::kInternal, fmt::format("device {}: has finished nothing for {} s", caps().name, kMostStillNs / 1'000'000'000));
    done = find_completed();
  }
  return wait_once(value, timeout_ns);
}

Status Device::wait_once(std::uint64_t value, std::uint64_t timeout_ns) {
  RONDO_TRY(check_lost());
  const bool again = value <= waited_;
  VkSemaphoreWaitInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, nullptr, 0, 1, &timeline_, &value};
  const VkResult result = vk().vkWaitSemaphores(handle(), &info, timeout_ns);
  if (result != VK_SUCCESS && result != VK_TIMEOUT) return fail(result, fmt::format("device {}: waiting failed", caps().name));
  tidy();
  if (result == VK_TIMEOUT) return Status(StatusCode::kTimeout, "not done yet");
  if (again) return doubt_wait(value, timeout_ns);
  for (std::uint64_t before = waited_; before < value && !waited_.compare_exchange_weak(before, value);) {
  }
  return {};
}

Status Device::wait_for_results(std::uint64_t value, std::uint64_t timeout_ns) {
  RONDO_TRY(wait(value, timeout_ns));
  if (find_completed() >= value) return {};
  return Status(StatusCode::kInternal, fmt::format("device {}: its waits end, but it has finished nothing; its driver does no work", caps().name));
}

/// Some drivers that run nothing end every wait at once, while their timeline stands still. Whoever waits for results looks at
/// the timeline and waits again, which must not become a busy loop, nor go on for ever. The first wait for a value is believed:
/// it costs no look at the timeline.
Status Device::doubt_wait(std::uint64_t value, std::uint64_t timeout_ns) {
  const std::uint64_t done = find_completed();
  if (done >= value) return {};
  constexpr std::uint64_t kNapNs = 5'000'000;
  const auto now_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  {
    const std::lock_guard lock(still_mutex_);
    if (still_.since_ns == 0 || done != still_.done || last_submitted_ != still_.submitted) still_ = {done, last_submitted_, now_ns};
    if (now_ns - still_.since_ns > kMostStillNs) {
      return Status(StatusCode::kInternal, fmt::format("device {}: its waits end, but it has finished nothing for {} s", caps().name, kMostStillNs / 1'000'000'000));
    }
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns, kNapNs)));
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
  destroy_up_to(find_completed());
}

bool Device::collect() {
  const std::uint64_t done = find_completed();
  learn_speed(done);
  const std::lock_guard lock(garbage_mutex_);
  destroy_up_to(done);
  return garbage_.empty();
}

void Device::tidy() {
  if (n_garbage_ > 0 || measurement_done_ > 0) tidy_up_to(find_completed());
}

/// `done` is a value that the timeline has passed.
void Device::tidy_up_to(std::uint64_t done) {
  learn_speed(done);
  if (n_garbage_ == 0) return;
  const std::unique_lock lock(garbage_mutex_, std::try_to_lock);
  if (lock) destroy_up_to(done);
}

/// The timeline's value. Of a lost device, on which nothing runs any more, and of one without a timeline, the last submitted.
std::uint64_t Device::find_completed() {
  std::uint64_t value = 0;
  if (lost_ || !timeline_) return last_submitted_;
  const VkResult result = vk().vkGetSemaphoreCounterValue(handle(), timeline_, &value);
  if (result == VK_ERROR_DEVICE_LOST) lost_ = true;
  return result == VK_SUCCESS ? value : 0;
}

/// The caller holds the lock.
void Device::destroy_up_to(std::uint64_t done) {
  std::size_t kept = 0;
  for (auto& entry : garbage_) {
    if (entry.first <= done) destroy(entry.second);
    else std::swap(garbage_[kept++], entry);
  }
  garbage_.resize(kept);
  n_garbage_ = kept;
}

}  // namespace rondo::runtime

namespace rondo {

namespace {

Status empty_handle() { return Status(StatusCode::kFailedPrecondition, "device: the Device is empty; it was moved from"); }

}  // namespace

bool Device::add_pipeline_cache(std::span<const std::byte> blob) {
  if (!impl_) return false;
  const std::string refusal = impl_->pipeline_cache().add(blob);
  if (refusal.empty()) return true;
  impl_->log(LogLevel::kWarn, fmt::format("pipeline cache not used: {}", refusal));
  return false;
}

Result<std::vector<std::byte>> Device::pipeline_cache() const {
  if (!impl_) return empty_handle();
  return impl_->pipeline_cache().blob();
}
std::string Device::pipeline_cache_key() const { return impl_ ? impl_->pipeline_cache().key() : ""; }
bool Device::collect() { return !impl_ || impl_->collect(); }

Device::Device(std::shared_ptr<runtime::Device> impl) : impl_(std::move(impl)) {}
Device::Device(Device&&) noexcept = default;
Device& Device::operator=(Device&&) noexcept = default;
Device::~Device() = default;

const DeviceInfo& Device::info() const {
  static const DeviceInfo none;
  return impl_ ? impl_->info() : none;
}

DeviceProfile::DeviceProfile(std::unique_ptr<const runtime::DeviceCaps> caps) : caps_(std::move(caps)) {}
DeviceProfile::DeviceProfile(DeviceProfile&&) noexcept = default;
DeviceProfile& DeviceProfile::operator=(DeviceProfile&&) noexcept = default;
DeviceProfile::~DeviceProfile() = default;

const std::string& DeviceProfile::name() const {
  static const std::string none;
  return caps_ ? caps_->name : none;
}

Result<Device> Device::create(const Instance& instance, std::string_view selector, const DeviceOptions& options) {
  RONDO_ASSIGN(const std::uint32_t index, instance.find_device(selector));
  const runtime::DeviceCaps* profile = options.profile ? options.profile->caps_.get() : nullptr;
  if (options.profile && !profile) return Status(StatusCode::kFailedPrecondition, "device: the DeviceProfile is empty; it was moved from");
  RONDO_ASSIGN(std::shared_ptr<runtime::Device> impl, runtime::Device::create(instance.shared(), index, profile));
  return Device(std::move(impl));
}

namespace {

/// The features that Rondo uses and a VkDeviceCreateInfo's pNext chain has on.
struct EnabledFeatures {
  bool timeline_semaphore = false, storage16 = false, subgroup_size_control = false, integer_dot = false, float16 = false, memory_model = false, cooperative_matrix = false, half_dot = false;
};
EnabledFeatures read_features(const void* chain) {
  EnabledFeatures enabled;
  for (auto* link = static_cast<const VkBaseInStructure*>(chain); link; link = link->pNext) {
    if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES) {
      const auto* features12 = reinterpret_cast<const VkPhysicalDeviceVulkan12Features*>(link);
      enabled.timeline_semaphore |= features12->timelineSemaphore == VK_TRUE;
      enabled.float16 |= features12->shaderFloat16 == VK_TRUE;
      enabled.memory_model |= features12->vulkanMemoryModel && features12->vulkanMemoryModelDeviceScope;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES) {
      enabled.float16 |= reinterpret_cast<const VkPhysicalDeviceShaderFloat16Int8Features*>(link)->shaderFloat16 == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES) {
      const auto* model = reinterpret_cast<const VkPhysicalDeviceVulkanMemoryModelFeatures*>(link);
      enabled.memory_model |= model->vulkanMemoryModel && model->vulkanMemoryModelDeviceScope;
    } else if (link->sType == runtime::kCooperativeMatrixFeaturesType) {
      enabled.cooperative_matrix |= reinterpret_cast<const runtime::CooperativeMatrixFeatures*>(link)->cooperativeMatrix == VK_TRUE;
    } else if (link->sType == runtime::kMixedFloatDotProductFeaturesType) {
      enabled.half_dot |= reinterpret_cast<const runtime::MixedFloatDotProductFeatures*>(link)->shaderMixedFloatDotProductFloat16AccFloat32 == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES) {
      enabled.timeline_semaphore |= reinterpret_cast<const VkPhysicalDeviceTimelineSemaphoreFeatures*>(link)->timelineSemaphore == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES) {
      enabled.storage16 |= reinterpret_cast<const VkPhysicalDeviceVulkan11Features*>(link)->storageBuffer16BitAccess == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES) {
      enabled.storage16 |= reinterpret_cast<const VkPhysicalDevice16BitStorageFeatures*>(link)->storageBuffer16BitAccess == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT) {
      const auto* sizes = reinterpret_cast<const VkPhysicalDeviceSubgroupSizeControlFeaturesEXT*>(link);
      enabled.subgroup_size_control |= sizes->subgroupSizeControl && sizes->computeFullSubgroups;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES) {
      const auto* features13 = reinterpret_cast<const VkPhysicalDeviceVulkan13Features*>(link);
      enabled.subgroup_size_control |= features13->subgroupSizeControl && features13->computeFullSubgroups;
      enabled.integer_dot |= features13->shaderIntegerDotProduct == VK_TRUE;
    } else if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES) {
      enabled.integer_dot |= reinterpret_cast<const VkPhysicalDeviceShaderIntegerDotProductFeatures*>(link)->shaderIntegerDotProduct == VK_TRUE;
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
  snapshot.integer_dot = snapshot.integer_dot && enabled.integer_dot;
  snapshot.half_dot = snapshot.half_dot && enabled.half_dot;
  snapshot.float16 = enabled.float16;
  snapshot.cooperative_matrix = snapshot.cooperative_matrix && enabled.cooperative_matrix && enabled.memory_model;
  snapshot.subgroup_size_control = snapshot.subgroup_size_control && enabled.subgroup_size_control;
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
  parts.plan.caps.timestamp_bits = snapshot.queues[imported.queue_family].timestamp_bits;
  parts.info = runtime::describe(0, snapshot, parts.plan);
  parts.memory_types = snapshot.memory_types;
  parts.handle = imported.device;
  parts.queue = imported.queue;
  parts.log = imported.log;
  parts.lock_queue = imported.lock_queue;
  parts.unlock_queue = imported.unlock_queue;
  parts.measure_later = true;
  RONDO_ASSIGN(parts.vk, runtime::load_device_table(vk, imported.device));
  RONDO_ASSIGN(std::shared_ptr<runtime::Device> impl, runtime::Device::adopt(std::move(parts)));
  return Device(std::move(impl));
}

}  // namespace rondo
