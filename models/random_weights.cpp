#include "models/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "random_weights.params.h"

namespace rondo::models {

namespace {

constexpr std::uint32_t kWidth = 64, kWordsOfGroup = 16 * kWidth;

/// Runs the kernel over `push.words` words from the beginning of `place`, in as many dispatches as grids and bindings need.
Status fill(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, const shaders::RandomWeightsParams& push) {
  const std::uint64_t most_words = std::min<std::uint64_t>(std::uint64_t{device.caps().max_grid[0]} * kWordsOfGroup, device.caps().max_storage_range_bytes / 4) / kWordsOfGroup * kWordsOfGroup;
  runtime::Program program;
  program.name = "random weights";
  program.kernels.push_back({runtime::Shader::random_weights, {kWidth}, 1, 1, sizeof push});
  for (std::uint64_t first = 0; first < push.words; first += most_words) {
    shaders::RandomWeightsParams part = push;
    part.words = static_cast<std::uint32_t>(std::min(most_words, push.words - first));
    part.quant_words = static_cast<std::uint32_t>(push.quant_words - std::min<std::uint64_t>(first, push.quant_words));
    part.seed = push.seed + static_cast<std::uint32_t>(first);
    runtime::Dispatch dispatch;
    dispatch.label = program.name;
    dispatch.bindings.push_back({{0, place.offset_bytes + 4 * first, std::min<std::uint64_t>(4 * most_words, place.size_bytes - 4 * first)}, runtime::Access::kWrite});
    dispatch.push.resize(sizeof part);
    std::memcpy(dispatch.push.data(), &part, sizeof part);
    dispatch.grid = {graph::ceil_div(part.words, kWordsOfGroup), 1, 1};
    program.dispatches.push_back(std::move(dispatch));
  }
  const runtime::Segment segment{0, static_cast<std::uint32_t>(program.dispatches.size()), 0};
  const runtime::Buffer* buffers[] = {&buffer};
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(device, program, {&segment, 1}, buffers));
  const runtime::Batch batch{recording.command_buffers()};
  RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
  return device.wait(value, ~0ull);
}

/// The scale that values of variance 1 / columns have, or less.
float scale_of(graph::Type type, double columns) {
  switch (type) {
    case graph::Type::kQ8_0: return static_cast<float>(1 / (73.9 * std::sqrt(columns)));  // bytes: deviation 73.9
    case graph::Type::kQ4_0: return static_cast<float>(1 / (4.61 * std::sqrt(columns)));  // nibbles: 4.61
    case graph::Type::kQ4_K: return static_cast<float>(1 / (63 * 15 * std::sqrt(columns)));
    case graph::Type::kQ6_K: return static_cast<float>(1 / (128 * 32 * std::sqrt(columns)));
    default: return static_cast<float>(std::sqrt(3 / columns));
  }
}

std::uint32_t float_bits(graph::Type type) { return type == graph::Type::kF32 ? 32 : type == graph::Type::kF16 ? 16 : 0; }

shaders::RandomWeightsParams matrix_params(const graph::BlockFormat& format, const graph::Shape& matrix, std::uint32_t seed) {
  const graph::PlaneLayout layout = graph::plane_layout(format, matrix[0], matrix[1]);
  shaders::RandomWeightsParams push{};
  push.words = static_cast<std::uint32_t>(layout.scale_offset_words) + static_cast<std::uint32_t>(matrix[0]) * layout.scale_row_words;
  push.quant_words = static_cast<std::uint32_t>(layout.scale_offset_words);
  push.float_bits = float_bits(format.type);
  push.seed = seed;
  push.scale = scale_of(format.type, static_cast<double>(matrix[1]));
  return push;
}

}  // namespace

Status make_random_block(LoadedModel& model, std::size_t index) {
  const WeightBlock& block = model.checkpoint->blocks[index];
  shaders::RandomWeightsParams push = matrix_params(*graph::find_block_format(block.type), block.matrix, static_cast<std::uint32_t>(index + 1));
  push.constant = block.type == graph::Type::kF32 && block.matrix[0] == 1;
  if (push.constant) push.scale = 1;
  RONDO_TRY(fill(model.device, model.weight_buffers[block.place.buffer - kFirstWeightBuffer], block.place, push));
  for (const WeightBlock::Part& part : block.parts) model.progress.bytes_done += part.tensor->size_bytes;
  return {};
}

Status make_random_matrix(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, const graph::Shape& matrix,
                          std::uint32_t seed) {
  const graph::BlockFormat* format = graph::find_block_format(type);
  if (!format) return Status(StatusCode::kInvalidArgument, fmt::format("random weights: {} is not a weight type", graph::type_name(type)));
  return fill(device, buffer, place, matrix_params(*format, matrix, seed));
}

Status make_random_floats(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, std::uint32_t seed) {
  if (float_bits(type) == 0) return Status(StatusCode::kInvalidArgument, fmt::format("random numbers: {} is not f32 or f16", graph::type_name(type)));
  shaders::RandomWeightsParams push{};
  push.words = push.quant_words = static_cast<std::uint32_t>(place.size_bytes / 4);
  push.float_bits = float_bits(type);
  push.seed = seed;
  push.scale = 1;
  return fill(device, buffer, place, push);
}

}  // namespace rondo::models
