#include "models/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/float16.h"
#include "random_weights.params.h"
#include "runtime/fmt.h"
#include "runtime/recording.h"

namespace rondo::models {

namespace {

std::uint32_t halves(float low, float high) { return graph::float_to_half(low) | static_cast<std::uint32_t>(graph::float_to_half(high)) << 16; }

/// What makes weights of this standard deviation; false for a type that has none yet. The quants are uniform over all their
/// values, so their own deviation is that of 2^bits integers, sqrt((4^bits - 1) / 12).
bool set_scales(shaders::RandomWeightsParams& push, graph::Type type, float deviation) {
  constexpr float kDeviation8 = 73.9f, kDeviation6 = 18.47f, kDeviation4 = 4.61f;
  const auto pair = [](float scale) { return halves(scale, scale); };
  switch (type) {
    case graph::Type::kF32:
    case graph::Type::kF16:
      push.float_bits = type == graph::Type::kF32 ? 32 : 16;
      push.scale = std::sqrt(3.0f) * deviation;
      return true;
    case graph::Type::kQ8_0: push.first_scale = pair(deviation / kDeviation8); return true;
    case graph::Type::kQ4_0: push.first_scale = pair(deviation / kDeviation4); return true;
    case graph::Type::kQ4_K: {  // fives in the low bits and ones in the high pairs: every scale and min is 5 + 16
      const float scale = deviation / kDeviation4 / 21;
      push.first_scale = halves(scale, 7.5f * scale);  // the quants' mean is 7.5
      push.more_scales = 0x55555555u;
      return true;
    }
    case graph::Type::kQ6_K:  // every scale is 1
      push.first_scale = halves(deviation / kDeviation6, 0);
      push.more_scales = 0x01010101u;
      return true;
    default: return false;
  }
}

/// Runs the kernel over the first `push.words` words of `place`, and waits.
Status fill(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, shaders::RandomWeightsParams push) {
  push.scale_words = std::max(push.scale_words, 1u);  // a divisor, on CPU drivers also where nothing is divided
  constexpr std::uint32_t kWidth = 64, kWordsEach = 16;
  runtime::Program program;
  program.name = "random weights";
  program.kernels.push_back({runtime::Shader::random_weights, {kWidth}, 1, 1, sizeof push});
  runtime::Dispatch dispatch;
  dispatch.label = program.name;
  dispatch.bindings.push_back({{0, place.offset_bytes, place.size_bytes}, runtime::Access::kWrite});
  dispatch.push.resize(sizeof push);
  std::memcpy(dispatch.push.data(), &push, sizeof push);
  const std::uint32_t workgroups = graph::ceil_div(push.words, kWidth * kWordsEach), columns = std::min(workgroups, 32768u);
  dispatch.grid = {columns, graph::ceil_div(workgroups, columns), 1};
  program.dispatches.push_back(std::move(dispatch));
  const runtime::Segment segment{0, 1, 0};
  const runtime::Buffer* buffers[] = {&buffer};
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(device, program, {&segment, 1}, buffers));
  const runtime::Batch batch{recording.command_buffers()};
  RONDO_ASSIGN(const std::uint64_t value, device.submit({&batch, 1}));
  return device.wait(value, ~0ull);
}

}  // namespace

Status make_random_matrix(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, const graph::Shape& matrix,
                          std::uint32_t seed) {
  const graph::BlockFormat* format = graph::find_block_format(type);
  shaders::RandomWeightsParams push{};
  if (!format || !set_scales(push, type, static_cast<float>(1 / std::sqrt(static_cast<double>(matrix[1]))))) {
    return Status(StatusCode::kUnsupported, fmt::format("random weights of type {} are not there yet", graph::type_name(type)));
  }
  const graph::PlaneLayout layout = graph::plane_layout(*format, matrix[0], matrix[1]);
  push.quant_words = static_cast<std::uint32_t>(layout.scale_offset_words);
  push.words = push.quant_words + static_cast<std::uint32_t>(matrix[0]) * layout.scale_row_words;
  push.scale_words = format->scale_words;
  push.seed = seed;
  return fill(device, buffer, place, push);
}

Status make_random_floats(runtime::Device& device, const runtime::Buffer& buffer, const runtime::BufferRange& place, graph::Type type, std::uint32_t seed) {
  if (type != graph::Type::kF32 && type != graph::Type::kF16) {
    return Status(StatusCode::kInvalidArgument, fmt::format("random numbers are f32 or f16, not {}", graph::type_name(type)));
  }
  shaders::RandomWeightsParams push{};
  push.words = push.quant_words = static_cast<std::uint32_t>(place.size_bytes / 4);
  push.float_bits = type == graph::Type::kF32 ? 32 : 16;
  push.seed = seed;
  push.scale = 1;
  return fill(device, buffer, place, push);
}

Status make_random_block(const LoadedModel& model, std::size_t index) {
  const WeightBlock& block = model.network().blocks[index];
  for (const graph::StoragePiece& piece : model.weights.pieces[index]) {
    const runtime::Buffer& buffer = model.weight_buffers[piece.place.buffer];
    if (block.is_vector) {
      shaders::RandomWeightsParams push{};
      push.words = push.quant_words = static_cast<std::uint32_t>(piece.place.size_bytes / 4);
      push.constant = 1;
      push.scale = 1;
      RONDO_TRY(fill(model.device, buffer, piece.place, push));
    } else {
      const auto seed = static_cast<std::uint32_t>(index + 1) + 4096 * static_cast<std::uint32_t>(piece.first);
      RONDO_TRY(make_random_matrix(model.device, buffer, piece.place, block.type, {piece.count, block.matrix[1]}, seed));
    }
  }
  return {};
}

}  // namespace rondo::models
