#include "runtime/recording.h"

#include <utility>

#include "runtime/fmt.h"
#include "runtime/kernel.h"

namespace rondo::runtime {

namespace {

void barrier(const VolkDeviceTable& vk, VkCommandBuffer commands, VkPipelineStageFlags from_stages, VkAccessFlags from, VkPipelineStageFlags to_stages,
             VkAccessFlags to) {
  const VkMemoryBarrier memory{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, from, to};
  vk.vkCmdPipelineBarrier(commands, from_stages, to_stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

constexpr VkAccessFlags kShaderAccess = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

}  // namespace

Result<Recording> Recording::create(Device& device, const Program& program, std::span<const Segment> segments, std::span<const Buffer* const> buffers,
                                    const TimestampPool* timestamps) {
  std::vector<const Pipeline*> pipelines;
  for (const Kernel& kernel : program.kernels) {
    RONDO_ASSIGN(const Pipeline* pipeline, device.kernels().find_or_create(kernel));
    pipelines.push_back(pipeline);
  }
  Recording recording;
  recording.device_ = &device;
  recording.segments_.assign(segments.begin(), segments.end());
  recording.n_dispatches_ = static_cast<std::uint32_t>(program.dispatches.size());
  for (const Segment& segment : segments) recording.cost_ns_ += segment.cost_ns;
  RONDO_TRY(recording.allocate_sets(program, pipelines, buffers));
  RONDO_TRY(recording.record(program, pipelines, timestamps));
  return recording;
}

Status Recording::allocate_sets(const Program& program, std::span<const Pipeline* const> pipelines, std::span<const Buffer* const> buffers) {
  const VolkDeviceTable& vk = device_->vk();
  std::uint32_t n_descriptors = 0;
  std::vector<VkDescriptorSetLayout> layouts;
  for (const Dispatch& dispatch : program.dispatches) {
    n_descriptors += static_cast<std::uint32_t>(dispatch.bindings.size());
    layouts.push_back(pipelines[dispatch.kernel]->set_layout);
  }
  const auto n_sets = static_cast<std::uint32_t>(layouts.size());
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, n_descriptors};
  const VkDescriptorPoolCreateInfo pool{VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, nullptr, 0, n_sets, 1, &size};
  VkResult result = vk.vkCreateDescriptorPool(device_->handle(), &pool, nullptr, &descriptor_pool_);
  if (result == VK_SUCCESS) {
    sets_.resize(n_sets);
    const VkDescriptorSetAllocateInfo allocation{VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, descriptor_pool_, n_sets, layouts.data()};
    result = vk.vkAllocateDescriptorSets(device_->handle(), &allocation, sets_.data());
  }
  if (result != VK_SUCCESS) return device_->fail(result, fmt::format("recording {}: descriptor sets can't be allocated", program.name));

  std::vector<VkDescriptorBufferInfo> infos;
  infos.reserve(n_descriptors);
  std::vector<VkWriteDescriptorSet> writes;
  for (std::uint32_t i = 0; i < n_sets; ++i) {
    const Dispatch& dispatch = program.dispatches[i];
    for (std::uint32_t binding = 0; binding < dispatch.bindings.size(); ++binding) {
      const BufferRange& range = dispatch.bindings[binding].range;
      infos.push_back({buffers[range.buffer]->handle(), range.offset_bytes, range.size_bytes});
      writes.push_back({VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, nullptr, sets_[i], binding, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, nullptr, &infos.back(), nullptr});
    }
  }
  vk.vkUpdateDescriptorSets(device_->handle(), static_cast<std::uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return {};
}

Status Recording::record(const Program& program, std::span<const Pipeline* const> pipelines, const TimestampPool* timestamps) {
  const VolkDeviceTable& vk = device_->vk();
  const auto failed = [&](VkResult result) { return device_->fail(result, fmt::format("recording {}: command buffers can't be recorded", program.name)); };
  const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0, device_->queue_family()};
  VkResult result = vk.vkCreateCommandPool(device_->handle(), &pool, nullptr, &command_pool_);
  if (result != VK_SUCCESS) return failed(result);
  command_buffers_.resize(segments_.size());
  const VkCommandBufferAllocateInfo allocation{VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, command_pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                               static_cast<std::uint32_t>(command_buffers_.size())};
  result = vk.vkAllocateCommandBuffers(device_->handle(), &allocation, command_buffers_.data());
  if (result != VK_SUCCESS) {
    command_buffers_.clear();
    return failed(result);
  }
  for (std::size_t s = 0; s < segments_.size(); ++s) {
    const VkCommandBuffer commands = command_buffers_[s];
    const VkCommandBufferBeginInfo begin{VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, nullptr, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, nullptr};
    result = vk.vkBeginCommandBuffer(commands, &begin);
    if (result != VK_SUCCESS) return failed(result);
    if (s == 0) {
      barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
              VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kShaderAccess);
      if (timestamps) {
        vk.vkCmdResetQueryPool(commands, timestamps->handle(), 0, timestamps->n_queries());
        vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps->handle(), 0);
      }
    }
    VkPipeline bound = VK_NULL_HANDLE;
    for (std::uint32_t i = segments_[s].first; i < segments_[s].last; ++i) {
      const Dispatch& dispatch = program.dispatches[i];
      const Pipeline& pipeline = *pipelines[dispatch.kernel];
      if (dispatch.barrier_before || (timestamps && i > 0)) {
        barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, kShaderAccess);
      }
      if (pipeline.handle != bound) vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
      bound = pipeline.handle;
      vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &sets_[i], 0, nullptr);
      vk.vkCmdPushConstants(commands, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, static_cast<std::uint32_t>(dispatch.push.size()), dispatch.push.data());
      vk.vkCmdDispatch(commands, dispatch.grid[0], dispatch.grid[1], dispatch.grid[2]);
      if (timestamps) vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps->handle(), i + 1);
    }
    if (s + 1 == segments_.size()) {
      barrier(vk, commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    }
    result = vk.vkEndCommandBuffer(commands);
    if (result != VK_SUCCESS) return failed(result);
  }
  return {};
}

Recording::~Recording() {
  if (!device_ || (!command_pool_ && !descriptor_pool_)) return;
  Garbage garbage;
  if (command_pool_) garbage.command_pools.push_back(command_pool_);
  if (descriptor_pool_) garbage.descriptor_pools.push_back(descriptor_pool_);
  device_->retire(std::move(garbage));
}

void Recording::swap(Recording& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(command_pool_, other.command_pool_);
  std::swap(descriptor_pool_, other.descriptor_pool_);
  std::swap(sets_, other.sets_);
  std::swap(command_buffers_, other.command_buffers_);
  std::swap(segments_, other.segments_);
  std::swap(n_dispatches_, other.n_dispatches_);
  std::swap(cost_ns_, other.cost_ns_);
}

}  // namespace rondo::runtime
