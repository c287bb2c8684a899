#include "tools/isa/compiler.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/fmt.h"

namespace rondo::isa {

namespace {

bool has_extension(const runtime::DeviceSnapshot& snapshot, const char* name) {
  return std::find(snapshot.extensions.begin(), snapshot.extensions.end(), name) != snapshot.extensions.end();
}

double number_of(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return statistic.value.b32;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return static_cast<double>(statistic.value.u64);
    default: return statistic.value.f64;
  }
}

/// Puts `feature` in front of the chain that `first` begins.
template <class Feature>
void chain(VkPhysicalDeviceFeatures2& first, Feature& feature) {
  feature.pNext = first.pNext;
  first.pNext = &feature;
}

}  // namespace

bool has_statistics(const runtime::DeviceSnapshot& snapshot) { return has_extension(snapshot, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME); }

Result<std::unique_ptr<Compiler>> Compiler::create(const runtime::Instance& instance, std::uint32_t index) {
  const runtime::DeviceSnapshot& snapshot = instance.snapshot(index);
  const runtime::DevicePlan& plan = instance.plans()[index];
  const std::string& name = instance.infos()[index].name;
  if (!has_statistics(snapshot)) {
    return Status(StatusCode::kUnsupported, fmt::format("device {}: its driver does not tell what it compiles (no VK_KHR_pipeline_executable_properties)", name));
  }
  std::unique_ptr<Compiler> compiler(new Compiler());
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
  VkPhysicalDeviceVulkan11Features features11{};
  features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  VkPhysicalDeviceVulkan12Features features12{};
  features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, nullptr, VK_FALSE};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT sizes{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT, nullptr, VK_FALSE, VK_FALSE};
  VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dots{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR, nullptr, VK_FALSE};
  std::vector<const char*> extensions = {VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME};
  for (const std::string& extension : plan.extensions) extensions.push_back(extension.c_str());
  chain(features, features11);
  chain(features, features12);
  chain(features, executables);
  if (has_extension(snapshot, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    chain(features, sizes);
    extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  if (has_extension(snapshot, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    chain(features, dots);
    extensions.push_back(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  }
  instance.vk().get_features(instance.physical_device(index), &features);
  features.features.robustBufferAccess = VK_FALSE;  // Rondo does not ask for it either
  if (!executables.pipelineExecutableInfo) return Status(StatusCode::kUnsupported, fmt::format("device {}: its driver does not tell what it compiles (no pipelineExecutableInfo)", name));
  compiler->has_subgroup_sizes_ = sizes.subgroupSizeControl;
  compiler->has_full_subgroups_ = sizes.computeFullSubgroups;

  RONDO_ASSIGN(const runtime::Instance::LogicalDevice logical, instance.create_logical_device(index, &features, extensions));
  compiler->handle_ = logical.handle;
  compiler->vk_ = logical.vk;
  return compiler;
}

Compiler::~Compiler() {
  if (handle_) vk_.vkDestroyDevice(handle_, nullptr);
}

/// A pipeline with what it is made of, until it has been looked at.
struct Compiler::Pipeline {
  const Compiler& compiler;
  VkShaderModule shader_module = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline handle = VK_NULL_HANDLE;

  explicit Pipeline(const Compiler& owner) : compiler(owner) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  ~Pipeline() {
    const VolkDeviceTable& vk = compiler.vk_;
    vk.vkDestroyPipeline(compiler.handle_, handle, nullptr);
    vk.vkDestroyPipelineLayout(compiler.handle_, layout, nullptr);
    vk.vkDestroyDescriptorSetLayout(compiler.handle_, set_layout, nullptr);
    vk.vkDestroyShaderModule(compiler.handle_, shader_module, nullptr);
  }
};

Status Compiler::create_pipeline(const Module& module, Pipeline& pipeline) {
  const auto failed = [](VkResult result, const char* what) { return Status::from_vulkan(result, fmt::format("{} can't be created", what)); };
  const VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, module.code.size() * sizeof(std::uint32_t), module.code.data()};
  if (const VkResult result = vk_.vkCreateShaderModule(handle_, &module_info, nullptr, &pipeline.shader_module)) return failed(result, "the shader module");
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (std::uint32_t i = 0; i < module.n_bindings; ++i) bindings.push_back({i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  const VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, module.n_bindings, bindings.data()};
  if (const VkResult result = vk_.vkCreateDescriptorSetLayout(handle_, &set_info, nullptr, &pipeline.set_layout)) return failed(result, "the descriptor set layout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, module.push_bytes};
  const VkPipelineLayoutCreateInfo layout_info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &pipeline.set_layout, module.push_bytes ? 1u : 0u, &range};
  if (const VkResult result = vk_.vkCreatePipelineLayout(handle_, &layout_info, nullptr, &pipeline.layout)) return failed(result, "the pipeline layout");

  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < module.constants.size(); ++i) entries.push_back({i, i * 4, 4});
  const VkSpecializationInfo specialization{static_cast<std::uint32_t>(entries.size()), entries.data(), module.constants.size() * sizeof(std::uint32_t), module.constants.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT, nullptr, module.subgroup_size};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR | VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = pipeline.shader_module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  if ((module.subgroup_size && !has_subgroup_sizes_) || (module.full_subgroups && !has_full_subgroups_)) {
    return Status(StatusCode::kUnsupported, "the device has no control of subgroup sizes, or no full subgroups, which the module asks for");
  }
  if (module.subgroup_size) info.stage.pNext = &size;
  if (module.full_subgroups) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  info.layout = pipeline.layout;
  if (const VkResult result = vk_.vkCreateComputePipelines(handle_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline.handle)) return failed(result, "the pipeline");
  return {};
}

Result<Executable> Compiler::compile(const Module& module) {
  Pipeline pipeline(*this);
  RONDO_TRY(create_pipeline(module, pipeline));
  return read(pipeline.handle);
}

Result<Executable> Compiler::read(VkPipeline pipeline) const {
  const VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, pipeline};
  std::uint32_t n = 0;
  VkResult result = vk_.vkGetPipelineExecutablePropertiesKHR(handle_, &info, &n, nullptr);
  std::vector<VkPipelineExecutablePropertiesKHR> properties(n);
  for (auto& one : properties) one = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR, nullptr, 0, "", "", 0};
  if (result == VK_SUCCESS && n > 0) result = vk_.vkGetPipelineExecutablePropertiesKHR(handle_, &info, &n, properties.data());
  if (result != VK_SUCCESS) return Status::from_vulkan(result, "the pipeline's executables can't be read");
  if (n == 0) return Status(StatusCode::kInternal, "the driver tells of no executable of the pipeline");
  std::uint32_t widest = 0;
  for (std::uint32_t i = 1; i < n; ++i) {
    if (properties[i].subgroupSize > properties[widest].subgroupSize) widest = i;
  }
  Executable executable;
  executable.subgroup_size = properties[widest].subgroupSize;
  RONDO_TRY(read_executable(pipeline, widest, executable));
  fill_from_statistics(executable);
  return executable;
}

Status Compiler::read_executable(VkPipeline pipeline, std::uint32_t index, Executable& executable) const {
  const VkPipelineExecutableInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr, pipeline, index};
  std::uint32_t n = 0;
  VkResult result = vk_.vkGetPipelineExecutableStatisticsKHR(handle_, &info, &n, nullptr);
  std::vector<VkPipelineExecutableStatisticKHR> statistics(n);
  for (auto& one : statistics) one.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR, one.pNext = nullptr;
  if (result == VK_SUCCESS) result = vk_.vkGetPipelineExecutableStatisticsKHR(handle_, &info, &n, statistics.data());
  if (result != VK_SUCCESS) return Status::from_vulkan(result, "the executable's statistics can't be read");
  for (std::uint32_t i = 0; i < n; ++i) executable.statistics.push_back({statistics[i].name, number_of(statistics[i])});

  n = 0;
  result = vk_.vkGetPipelineExecutableInternalRepresentationsKHR(handle_, &info, &n, nullptr);
  std::vector<VkPipelineExecutableInternalRepresentationKHR> texts(n);
  for (auto& one : texts) one = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR, nullptr, "", "", VK_FALSE, 0, nullptr};
  if (result == VK_SUCCESS) result = vk_.vkGetPipelineExecutableInternalRepresentationsKHR(handle_, &info, &n, texts.data());
  std::vector<std::string> contents(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    contents[i].resize(texts[i].dataSize);
    texts[i].pData = contents[i].data();
  }
  if (result == VK_SUCCESS) result = vk_.vkGetPipelineExecutableInternalRepresentationsKHR(handle_, &info, &n, texts.data());
  if (result != VK_SUCCESS) return Status::from_vulkan(result, "the executable's machine code can't be read");
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!texts[i].isText || !is_disassembly(texts[i].name)) continue;
    const std::string_view text(contents[i].data(), std::min(std::strlen(contents[i].c_str()), contents[i].size()));
    executable.loops = find_loops(texts[i].name, text, executable.subgroup_size);
  }
  return {};
}

}  // namespace rondo::isa
