#include "runtime/instance.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "runtime/cooperative_matrix.h"
#include "runtime/fmt.h"
#include "runtime/mixed_float_dot_product.h"

namespace rondo::runtime {

namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

bool has_extension(const std::vector<VkExtensionProperties>& list, const char* name) {
  return std::any_of(list.begin(), list.end(), [name](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

bool has_validation_layer(const LoaderTable& loader) {
  std::uint32_t n = 0;
  if (loader.enumerate_layers(&n, nullptr) != VK_SUCCESS) return false;
  std::vector<VkLayerProperties> layers(n);
  loader.enumerate_layers(&n, layers.data());
  return std::any_of(layers.begin(), layers.end(), [](const VkLayerProperties& l) { return std::strcmp(l.layerName, kValidationLayer) == 0; });
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return DeviceType::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return DeviceType::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return DeviceType::kVirtual;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return DeviceType::kCpu;
    default: return DeviceType::kOther;
  }
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// Features of a device of Vulkan 1.2; of those of extensions only what it knows.
void read_features(const InstanceTable& vk, VkPhysicalDevice physical_device, bool sizes_known, bool dot_known, bool matrices_known, bool half_dot_known, DeviceSnapshot& snapshot) {
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features12.pNext = &features11;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot{};
  dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_control{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, nullptr, VK_FALSE, VK_FALSE};
  if (dot_known) features11.pNext = &dot;
  if (sizes_known) dot.pNext = &size_control, features11.pNext = dot_known ? static_cast<void*>(&dot) : &size_control;
  CooperativeMatrixFeatures matrices;
  if (matrices_known) matrices.pNext = features11.pNext, features11.pNext = &matrices;
  MixedFloatDotProductFeatures half_dot;
  if (half_dot_known) half_dot.pNext = features11.pNext, features11.pNext = &half_dot;
  VkPhysicalDeviceFeatures2 features{};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  features.pNext = &features12;
  vk.get_features(physical_device, &features);
  snapshot.timeline_semaphore = features12.timelineSemaphore;
  snapshot.float16 = features12.shaderFloat16;
  snapshot.int8 = features12.shaderInt8;
  snapshot.storage8 = features12.storageBuffer8BitAccess;
  snapshot.storage16 = features11.storageBuffer16BitAccess;
  snapshot.integer_dot = dot.shaderIntegerDotProduct;
  snapshot.half_dot = half_dot.shaderMixedFloatDotProductFloat16AccFloat32;
  snapshot.reported.device_scope = features12.vulkanMemoryModelDeviceScope;
  snapshot.cooperative_matrix = matrices.cooperativeMatrix && features12.vulkanMemoryModel && features12.vulkanMemoryModelDeviceScope;
  snapshot.subgroup_sizes_known = sizes_known;
  snapshot.subgroup_size_control = size_control.subgroupSizeControl && size_control.computeFullSubgroups;
}

/// The name of a VkComponentTypeKHR.
std::string component_name(std::uint32_t type) {
  constexpr const char* kNames[] = {"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  if (type < std::size(kNames)) return kNames[type];
  switch (type) {
    case 1000141000: return "bf16";
    case 1000491002: return "e4m3";
    case 1000491003: return "e5m2";
    default: return fmt::format("type {}", type);
  }
}

/// The name of a VkScopeKHR.
std::string scope_name(std::uint32_t scope) {
  switch (scope) {
    case 1: return "device";
    case 2: return "workgroup";
    case 3: return "subgroup";
    case 5: return "queue family";
    default: return fmt::format("scope {}", scope);
  }
}

std::vector<MatrixProduct> read_matrix_products(const InstanceTable& vk, VkPhysicalDevice physical_device) {
  const auto get = reinterpret_cast<GetCooperativeMatrixProperties>(vk.get_matrix_properties);
  std::uint32_t n = 0;
  if (!get || get(physical_device, &n, nullptr) != VK_SUCCESS) return {};
  std::vector<CooperativeMatrixProperties> all(n);
  if (get(physical_device, &n, all.data()) != VK_SUCCESS) return {};
  std::vector<MatrixProduct> products;
  for (const CooperativeMatrixProperties& one : all) {
    const MatrixProduct product{{one.MSize, one.NSize, one.KSize}, component_name(one.AType), component_name(one.BType), component_name(one.CType), scope_name(one.scope)};
    if (one.CType == one.ResultType && std::find(products.begin(), products.end(), product) == products.end()) products.push_back(product);  // some are listed again for sums that saturate
  }
  return products;
}

/// Those that kernels are made for.
std::vector<MatrixShape> shapes_of_halves(std::span<const MatrixProduct> products) {
  std::vector<MatrixShape> shapes;
  for (const MatrixProduct& one : products) {
    if (one == MatrixProduct{one.shape, "f16", "f16", "f32", "subgroup"}) shapes.push_back(one.shape);
  }
  return shapes;
}

}  // namespace

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version), VK_API_VERSION_PATCH(version));
}

DeviceSnapshot take_snapshot(const InstanceTable& vk, VkPhysicalDevice physical_device) {
  DeviceSnapshot snapshot;
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT subgroup_sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT, nullptr, 0, 0, 0, 0};
  VkPhysicalDeviceVulkan11Properties properties11{};
  properties11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  VkPhysicalDeviceVulkan12Properties properties12{};
  properties12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia_cores{};
  nvidia_cores.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV;
  VkPhysicalDeviceShaderCorePropertiesAMD amd_cores{};
  amd_cores.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD;
  VkPhysicalDeviceShaderIntegerDotProductProperties dots{};
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
  CooperativeMatrixDeviceProperties matrices;
  VkPhysicalDeviceMaintenance3Properties maintenance3{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, nullptr, 0, 0};
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  vk.get_properties(physical_device, &properties);
  const VkPhysicalDeviceProperties& base = properties.properties;
  snapshot.api_version = base.apiVersion;
  const bool is_12 = base.apiVersion >= VK_API_VERSION_1_2;

  std::uint32_t n = 0;
  std::vector<VkExtensionProperties> extensions;
  if (vk.enumerate_extensions(physical_device, nullptr, &n, nullptr) == VK_SUCCESS) {
    extensions.resize(n);
    vk.enumerate_extensions(physical_device, nullptr, &n, extensions.data());
  }
  for (const VkExtensionProperties& extension : extensions) snapshot.extensions.emplace_back(extension.extensionName);
  const bool sizes_known = is_12 && (base.apiVersion >= VK_API_VERSION_1_3 || has_extension(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME));
  const bool dot_known = is_12 && has_extension(extensions, kIntegerDotProduct);
  const bool matrices_known = is_12 && has_extension(extensions, kCooperativeMatrix);
  const bool half_dot_known = is_12 && has_extension(extensions, kMixedFloatDotProduct);
  if (is_12) {
    properties.pNext = &properties11;
    properties11.pNext = &properties12;
    properties12.pNext = &maintenance3;
    if (sizes_known) maintenance3.pNext = &subgroup_sizes;
    const auto add = [&](const char* extension, auto& more) {
      if (!has_extension(extensions, extension)) return;
      more.pNext = properties11.pNext;
      properties11.pNext = &more;
    };
    add(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME, nvidia_cores);
    add(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME, amd_cores);
    add(kIntegerDotProduct, dots);
    add(kCooperativeMatrix, matrices);
    vk.get_properties(physical_device, &properties);
  }

  DeviceCaps& caps = snapshot.reported;
  caps.name = base.deviceName;
  caps.vendor_id = base.vendorID;
  caps.type = type_of(base.deviceType);
  caps.driver = is_12 ? fmt::format("{} {}", properties12.driverName, properties12.driverInfo) : "";
  const VkPhysicalDeviceLimits& limits = base.limits;
  caps.max_storage_range_bytes = limits.maxStorageBufferRange;
  caps.max_allocation_bytes = is_12 ? maintenance3.maxMemoryAllocationSize : 0;
  caps.storage_offset_alignment = static_cast<std::uint32_t>(limits.minStorageBufferOffsetAlignment);
  caps.non_coherent_atom_bytes = static_cast<std::uint32_t>(limits.nonCoherentAtomSize);
  caps.max_storage_buffers = std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers);
  caps.max_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  caps.max_shared_bytes = limits.maxComputeSharedMemorySize;
  caps.max_push_bytes = limits.maxPushConstantsSize;
  caps.timestamp_period_ns = static_cast<double>(limits.timestampPeriod);
  for (std::size_t i = 0; i < 3; ++i) caps.max_grid[i] = limits.maxComputeWorkGroupCount[i];
  caps.cores = nvidia_cores.shaderSMCount ? nvidia_cores.shaderSMCount : amd_cores.shaderEngineCount * amd_cores.shaderArraysPerEngineCount * amd_cores.computeUnitsPerShaderArray;
  caps.min_subgroup_size = sizes_known ? subgroup_sizes.minSubgroupSize : properties11.subgroupSize;
  caps.max_subgroup_size = sizes_known ? subgroup_sizes.maxSubgroupSize : properties11.subgroupSize;
  const VkSubgroupFeatureFlags operations = properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT ? properties11.subgroupSupportedOperations : 0;
  caps.subgroup_shuffle = (operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  caps.subgroup_arithmetic = (operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0;
  caps.fast_integer_dot = dots.integerDotProduct4x8BitPackedSignedAccelerated;

  if (is_12) {
    read_features(vk, physical_device, sizes_known, dot_known, matrices_known, half_dot_known, snapshot);
    snapshot.cooperative_matrix = snapshot.cooperative_matrix && (matrices.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    if (snapshot.cooperative_matrix) caps.matrix_products = read_matrix_products(vk, physical_device);
    caps.matrices = shapes_of_halves(caps.matrix_products);
    if (subgroup_sizes.maxComputeWorkgroupSubgroups != 0) caps.max_workgroup_subgroups = subgroup_sizes.maxComputeWorkgroupSubgroups;
    snapshot.subgroup_size_control = snapshot.subgroup_size_control && (subgroup_sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) && has_extension(extensions, kSubgroupSizeControl);
  }

  n = 0;
  vk.get_queue_families(physical_device, &n, nullptr);
  std::vector<VkQueueFamilyProperties> families(n);
  vk.get_queue_families(physical_device, &n, families.data());
  for (const VkQueueFamilyProperties& family : families) {
    snapshot.queues.push_back({family.queueFlags, family.queueCount, family.timestampValidBits});
  }
  VkPhysicalDeviceMemoryProperties memory{};
  vk.get_memory_properties(physical_device, &memory);
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    snapshot.memory_types.push_back({memory.memoryTypes[i].propertyFlags, memory.memoryTypes[i].heapIndex});
  }
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    snapshot.heaps.push_back({memory.memoryHeaps[i].size, (memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0});
  }
  return snapshot;
}

DeviceInfo describe(std::uint32_t index, const DeviceSnapshot& snapshot, const DevicePlan& plan) {
  DeviceInfo info;
  info.index = index;
  info.name = snapshot.reported.name;
  info.driver = snapshot.reported.driver;
  info.type = device_type_name(snapshot.reported.type);
  info.api_version = version_text(snapshot.api_version);
  info.memory_bytes = plan.caps.memory_budget_bytes;
  info.min_subgroup_size = snapshot.reported.min_subgroup_size;
  info.max_subgroup_size = snapshot.reported.max_subgroup_size;
  const std::pair<bool, const char*> features[] = {{snapshot.float16, "float16"},
                                                   {snapshot.int8, "int8"},
                                                   {snapshot.storage16, "storage16"},
                                                   {snapshot.storage8, "storage8"},
                                                   {snapshot.integer_dot, "integer_dot"},
                                                   {plan.caps.fast_integer_dot, "fast_integer_dot"},
                                                   {plan.caps.half_dot, "half_dot"},
                                                   {!plan.caps.matrices.empty(), "cooperative_matrix"},
                                                   {snapshot.subgroup_size_control, "subgroup_size_control"}};
  for (const auto& [present, name] : features) {
    if (present) info.features.emplace_back(name);
  }
  const auto text_of = [](const MatrixShape& shape) { return fmt::format("{}x{}x{}", shape.rows, shape.columns, shape.depth); };
  for (const MatrixShape& shape : plan.caps.matrices) info.matrices.push_back(text_of(shape));
  for (const MatrixProduct& one : plan.caps.matrix_products) info.matrix_products.push_back(fmt::format("{} {} x {} + {}, {}", text_of(one.shape), one.left, one.right, one.sums, one.scope));
  info.usable = plan.usable;
  info.reason = plan.reason;
  return info;
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  auto* instance = static_cast<Instance*>(user);
  const bool from_layers = (types & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT)) != 0;
  const bool error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
  if (from_layers) ++instance->n_validation_messages_;
  if (instance->log_) instance->log_(error ? LogLevel::kError : LogLevel::kWarn, fmt::format("validation: {}", data->pMessage ? data->pMessage : ""));
  return VK_FALSE;
}

Result<std::unique_ptr<Instance>> Instance::create(const InstanceOptions& options) {
  RONDO_ASSIGN(const LoaderTable loader, load_vulkan());
  std::uint32_t version = VK_API_VERSION_1_0;
  if (loader.enumerate_version) loader.enumerate_version(&version);
  if (version < VK_API_VERSION_1_1) return Status(StatusCode::kUnsupported, "Vulkan: the loader knows only version 1.0 but 1.2 is needed");

  std::uint32_t n = 0;
  loader.enumerate_extensions(nullptr, &n, nullptr);
  std::vector<VkExtensionProperties> known(n);
  loader.enumerate_extensions(nullptr, &n, known.data());

  std::vector<const char*> extensions, layers;
  VkInstanceCreateFlags flags = 0;
#ifdef VK_KHR_portability_enumeration
  if (has_extension(known, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
#endif
  const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT validation{VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT, nullptr, 1, enables, 0, nullptr};
  if (options.validate) {
    if (!has_validation_layer(loader)) {
      return Status(StatusCode::kNotFound, "Vulkan: the layer VK_LAYER_KHRONOS_validation is not installed (Debian: vulkan-validationlayers)");
    }
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  }

  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO, nullptr, "rondo", 1, "rondo", 1, std::min(version, VK_API_VERSION_1_3)};
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  info.pNext = options.validate ? &validation : nullptr;
  info.flags = flags;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<std::uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();

  std::unique_ptr<Instance> instance(new Instance());
  instance->log_ = options.log;
  const VkResult result = loader.create_instance(&info, nullptr, &instance->handle_);
  if (result == VK_ERROR_INCOMPATIBLE_DRIVER) {
    return Status(StatusCode::kNotFound, "Vulkan: there is no driver; install one (Debian: mesa-vulkan-drivers) or check VK_ICD_FILENAMES");
  }
  if (result != VK_SUCCESS) return Status::from_vulkan(result, "Vulkan: the instance can't be created");
  RONDO_ASSIGN(instance->vk_, load_instance_table(instance->handle_, nullptr));
  if (options.validate && instance->vk_.create_messenger) {
    VkDebugUtilsMessengerCreateInfoEXT messenger{};
    messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
    messenger.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
    messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
    messenger.pfnUserCallback = on_message;
    messenger.pUserData = instance.get();
    instance->vk_.create_messenger(instance->handle_, &messenger, nullptr, &instance->messenger_);
  }
  RONDO_TRY(instance->list_devices());
  return instance;
}

Status Instance::list_devices() {
  std::uint32_t n = 0;
  VkResult result = vk_.enumerate_physical_devices(handle_, &n, nullptr);
  if (result == VK_SUCCESS) {
    physical_devices_.resize(n);
    result = vk_.enumerate_physical_devices(handle_, &n, physical_devices_.data());
    physical_devices_.resize(n);
  }
  // Some loaders report a driver that fails to start this way: there is no device then, which find_device says.
  if (result == VK_ERROR_INITIALIZATION_FAILED) physical_devices_.clear();
  else if (result < 0) return Status::from_vulkan(result, "Vulkan: the devices can't be listed");
  for (std::uint32_t i = 0; i < physical_devices_.size(); ++i) {
    snapshots_.push_back(take_snapshot(vk_, physical_devices_[i]));
    plans_.push_back(plan_device(snapshots_.back()));
    infos_.push_back(describe(i, snapshots_.back(), plans_.back()));
  }
  return {};
}

Result<Instance::LogicalDevice> Instance::create_logical_device(std::uint32_t index, const void* features, const std::vector<const char*>& extensions) const {
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, plans_[index].queue_family, 1, &priority};
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  LogicalDevice device;
  const VkResult result = vk_.create_device(physical_devices_[index], &info, nullptr, &device.handle);
  if (result != VK_SUCCESS) return Status::from_vulkan(result, fmt::format("device {}: it can't be created", infos_[index].name));
  const Result<VolkDeviceTable> table = load_device_table(vk_, device.handle);
  if (!table.ok()) {
    vk_.destroy_device(device.handle, nullptr);
    return table.status().with_prefix(fmt::format("device {}", infos_[index].name));
  }
  device.vk = *table;
  return device;
}

Instance::~Instance() {
  if (messenger_ && vk_.destroy_messenger) vk_.destroy_messenger(handle_, messenger_, nullptr);
  if (handle_ && vk_.destroy_instance) vk_.destroy_instance(handle_, nullptr);
}

}  // namespace rondo::runtime

namespace rondo {

namespace {

Status unusable(const DeviceInfo& info) {
  return Status(StatusCode::kUnsupported, fmt::format("device {} ({}) can't be used: {}", info.index, info.name, info.reason));
}

}  // namespace

Instance::Instance(std::shared_ptr<runtime::Instance> impl) : impl_(std::move(impl)) {}
Instance::Instance(Instance&&) noexcept = default;
Instance& Instance::operator=(Instance&&) noexcept = default;
Instance::~Instance() = default;

Result<Instance> Instance::create(const InstanceOptions& options) {
  RONDO_ASSIGN(std::shared_ptr<runtime::Instance> impl, runtime::Instance::create(options));
  return Instance(std::move(impl));
}

std::span<const DeviceInfo> Instance::devices() const { return impl_ ? impl_->infos() : std::span<const DeviceInfo>(); }

std::uint64_t Instance::n_validation_messages() const { return impl_ ? impl_->n_validation_messages() : 0; }

Result<std::uint32_t> Instance::find_device(std::string_view selector) const {
  if (!impl_) return Status(StatusCode::kFailedPrecondition, "Vulkan: the Instance is empty; it was moved from");
  const std::span<const DeviceInfo> infos = impl_->infos();
  if (infos.empty()) return Status(StatusCode::kNotFound, "Vulkan: there is no device; install a driver (Debian: mesa-vulkan-drivers) or check VK_ICD_FILENAMES");
  if (selector.empty()) {
    const int best = runtime::choose_device(impl_->plans());
    if (best >= 0) return static_cast<std::uint32_t>(best);
    return unusable(infos[0]).with_prefix("Vulkan: there is no suitable device");
  }
  const bool number = std::all_of(selector.begin(), selector.end(), [](char c) { return c >= '0' && c <= '9'; });
  std::string matches;
  int n_matches = 0;
  const DeviceInfo* found = nullptr;
  for (const DeviceInfo& info : infos) {
    const bool match = number ? std::to_string(info.index) == selector : runtime::lower_case(info.name).find(runtime::lower_case(selector)) != std::string::npos;
    if (!match) continue;
    matches += fmt::format("{}{} ({})", n_matches++ ? ", " : "", info.index, info.name);
    found = &info;
  }
  if (!found) return Status(StatusCode::kNotFound, fmt::format("device '{}': no device has this {}; `rondo devices` lists them", selector, number ? "index" : "name"));
  if (n_matches > 1) {
    return Status(StatusCode::kInvalidArgument, fmt::format("device '{}': more than one device matches: {}; use the index", selector, matches));
  }
  if (!found->usable) return unusable(*found);
  return found->index;
}

}  // namespace rondo
