#include "runtime/kernel.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "runtime/device.h"
#include "runtime/fmt.h"
#include "runtime/hash.h"
#include "runtime/packed_spirv.h"
#include "runtime/pipeline_cache.h"
#include "shader_code.inc"

namespace rondo::runtime {

const char* shader_name(Shader shader) { return kShaders[static_cast<std::size_t>(shader)].name; }

std::vector<std::uint32_t> shader_code(Shader shader) { return unpack_module(kPackedShaders, kShaders, static_cast<std::size_t>(shader)); }

namespace {

/// Kernels that load a tile while they multiply another.
constexpr Shader kLoadAhead[] = {Shader::linear_tiled, Shader::linear_dot_tiled, Shader::linear_matrix, Shader::linear_half_tiled, Shader::matmul_tiled, Shader::matmul_matrix, Shader::matmul_half_tiled, Shader::attention_registers, Shader::attention_matrix};

/// Goes through a module's instructions: `keep` may change one's words, and says how many of them stay.
template <typename Keep>
void rewrite(std::vector<std::uint32_t>& words, const Keep& keep) {
  constexpr std::size_t kHeader = 5;
  std::size_t kept = kHeader;
  for (std::size_t at = kHeader; at < words.size();) {
    const std::span<std::uint32_t> instruction(words.data() + at, words[at] >> 16);
    at += instruction.size();
    const std::size_t n = keep(instruction, instruction[0] & 0xffffu);
    std::copy_n(instruction.begin(), n, words.begin() + static_cast<std::ptrdiff_t>(kept));
    kept += n;
  }
  words.resize(kept);
}

/// Takes from a module what says that buffers are read only: somebody else might write, so that no compiler moves a load past a barrier.
void drop_read_only(std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t kMemberDecorate = 72, kNonWritable = 24;
  rewrite(words, [](std::span<std::uint32_t> instruction, std::uint32_t op) { return op == kMemberDecorate && instruction[3] == kNonWritable ? 0 : instruction.size(); });
}

/// Makes copies of insertions into matrices: of how many elements a lane has, only one driver's module may know.
void drop_insertions(std::vector<std::uint32_t>& words) {
  constexpr std::uint32_t kCompositeInsert = 82, kCopyObject = 83, kTypeCooperativeMatrix = 4456;
  std::vector<std::uint32_t> matrix_types;
  rewrite(words, [&](std::span<std::uint32_t> instruction, std::uint32_t op) {
    if (op == kTypeCooperativeMatrix) matrix_types.push_back(instruction[1]);
    if (op != kCompositeInsert || std::find(matrix_types.begin(), matrix_types.end(), instruction[1]) == matrix_types.end()) return instruction.size();
    instruction[0] = 4u << 16 | kCopyObject;
    instruction[3] = instruction[4];  // the matrix
    return std::size_t{4};
  });
}

}  // namespace

std::vector<std::uint32_t> shader_code(Shader shader, const DeviceCaps& caps) {
  std::vector<std::uint32_t> words = shader_code(shader);
  const bool loads_ahead = std::any_of(std::begin(kLoadAhead), std::end(kLoadAhead), [&](Shader one) { return shader == one || shader == f16_variant(one); });
  if (loads_ahead && caps.sinks_loads) drop_read_only(words);
  if (!caps.matrices.empty() && !caps.columns_in_lanes) drop_insertions(words);
  return words;
}

std::uint64_t embedded_spirv_hash() { return fnv1a(std::as_bytes(std::span(kPackedShaders))); }
std::string embedded_spirv_key() { return fmt::format("{:016x}", embedded_spirv_hash()); }

KernelCache::~KernelCache() {
  const VolkDeviceTable& vk = device_.vk();
  for (const auto& pipeline : pipelines_) vk.vkDestroyPipeline(device_.handle(), pipeline->handle, nullptr);
  for (const Layout& layout : layouts_) {
    vk.vkDestroyPipelineLayout(device_.handle(), layout.layout, nullptr);
    vk.vkDestroyDescriptorSetLayout(device_.handle(), layout.set_layout, nullptr);
  }
  for (VkShaderModule shader_module : modules_) vk.vkDestroyShaderModule(device_.handle(), shader_module, nullptr);
}

std::size_t KernelCache::n_pipelines() const {
  const std::lock_guard lock(mutex_);
  return pipelines_.size();
}

Result<KernelCache::Layout> KernelCache::find_or_create_layout(const Kernel& kernel) {
  const std::uint32_t n_bindings = kernel.n_bindings, push_bytes = kernel.push_bytes;
  for (const Layout& layout : layouts_) {
    if (layout.n_bindings == n_bindings && layout.push_bytes == push_bytes) return layout;
  }
  const VolkDeviceTable& vk = device_.vk();
  std::array<VkDescriptorSetLayoutBinding, kMaxBindings> bindings{};
  for (std::uint32_t i = 0; i < n_bindings; ++i) bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  const VkDescriptorSetLayoutCreateInfo set_info{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, nullptr, 0, n_bindings, bindings.data()};
  Layout layout{n_bindings, push_bytes, VK_NULL_HANDLE, VK_NULL_HANDLE};
  VkResult result = vk.vkCreateDescriptorSetLayout(device_.handle(), &set_info, nullptr, &layout.set_layout);
  if (result != VK_SUCCESS) return device_.fail(result, fmt::format("kernel {}: the descriptor set layout can't be created", shader_name(kernel.shader)));
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  const VkPipelineLayoutCreateInfo info{VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 1, &layout.set_layout, push_bytes ? 1u : 0u, &range};
  result = vk.vkCreatePipelineLayout(device_.handle(), &info, nullptr, &layout.layout);
  if (result != VK_SUCCESS) {
    vk.vkDestroyDescriptorSetLayout(device_.handle(), layout.set_layout, nullptr);
    return device_.fail(result, fmt::format("kernel {}: the pipeline layout can't be created", shader_name(kernel.shader)));
  }
  layouts_.push_back(layout);
  return layout;
}

Result<VkShaderModule> KernelCache::find_or_create_module(Shader shader) {
  modules_.resize(std::size(kShaders));
  VkShaderModule& shader_module = modules_[static_cast<std::size_t>(shader)];
  if (shader_module) return shader_module;
  const std::vector<std::uint32_t> code = shader_code(shader, device_.caps());
  const VkShaderModuleCreateInfo info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr, 0, code.size() * sizeof(std::uint32_t), code.data()};
  const VkResult result = device_.vk().vkCreateShaderModule(device_.handle(), &info, nullptr, &shader_module);
  if (result != VK_SUCCESS) return device_.fail(result, fmt::format("kernel {}: the shader module can't be created", shader_name(shader)));
  return shader_module;
}

const Pipeline* KernelCache::find_locked(const Kernel& kernel) const {
  for (const auto& pipeline : pipelines_) {
    if (pipeline->kernel == kernel) return pipeline.get();
  }
  return nullptr;
}

Result<const Pipeline*> KernelCache::find_or_create(const Kernel& kernel) {
  RONDO_TRY(device_.check_lost());
  Layout layout;
  VkShaderModule shader_module = VK_NULL_HANDLE;
  {
    const std::lock_guard lock(mutex_);
    if (const Pipeline* found = find_locked(kernel)) return found;
    RONDO_ASSIGN(layout, find_or_create_layout(kernel));
    RONDO_ASSIGN(shader_module, find_or_create_module(kernel.shader));
  }
  std::array<VkSpecializationMapEntry, kMaxSpecialization> entries{};
  for (std::uint32_t i = 0; i < kernel.n_constants; ++i) entries[i] = {i, i * 4, 4};
  const VkSpecializationInfo specialization{kernel.n_constants, entries.data(), kernel.n_constants * std::size_t{4}, kernel.constants.data()};
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader_module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = layout.layout;
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT required{VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT, nullptr, kernel.subgroup_size};
  if (kernel.subgroup_size != 0 && device_.has_subgroup_size_control()) {
    info.stage.pNext = &required;
    info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  }
  auto pipeline = std::make_unique<Pipeline>(Pipeline{kernel, layout.set_layout, layout.layout, VK_NULL_HANDLE});
  const VolkDeviceTable& vk = device_.vk();
  const VkResult result = vk.vkCreateComputePipelines(device_.handle(), device_.pipeline_cache().handle(), 1, &info, nullptr, &pipeline->handle);
  if (result != VK_SUCCESS) return device_.fail(result, fmt::format("kernel {}: the pipeline can't be created", shader_name(kernel.shader)));

  const std::lock_guard lock(mutex_);
  if (const Pipeline* found = find_locked(kernel)) {  // another thread was faster
    vk.vkDestroyPipeline(device_.handle(), pipeline->handle, nullptr);
    return found;
  }
  pipelines_.push_back(std::move(pipeline));
  return pipelines_.back().get();
}

Status KernelCache::create_all(std::span<const Kernel> kernels, const Executor& executor) {
  std::vector<Status> done(kernels.size());
  const auto job = [&](std::size_t i) { done[i] = find_or_create(kernels[i]).status(); };
  if (executor) {
    executor(kernels.size(), job);
  } else {
    for (std::size_t i = 0; i < kernels.size(); ++i) job(i);
  }
  for (Status& status : done) {
    if (!status.ok()) return std::move(status);
  }
  return {};
}

}  // namespace rondo::runtime
