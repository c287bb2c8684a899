#include "models/random_weights.h"

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "random_weights.params.h"

namespace rondo::models {

namespace {

Status make_random_piece(LoadedModel& model, const WeightBlock& block, const graph::StoragePiece& piece, std::uint32_t seed) {
  const graph::PlaneLayout layout = graph::plane_layout(*graph::find_block_format(block.type), piece.count, block.matrix[1]);
  const double columns = static_cast<double>(block.matrix[1]);
  constexpr std::uint32_t kWidth = 64, kWordsEach = 16;
  shaders::RandomWeightsParams push{};
  push.words = static_cast<std::uint32_t>(layout.scale_offset_words) + static_cast<std::uint32_t>(piece.count) * layout.scale_row_words;
  push.quant_words = static_cast<std::uint32_t>(layout.scale_offset_words);
  push.seed = seed;
  push.constant = block.type == graph::Type::kF32 && block.matrix[0] == 1;
  switch (block.type) {
    case graph::Type::kF32:
    case graph::Type::kF16:
      push.float_bits = block.type == graph::Type::kF32 ? 32 : 16;
      push.scale = push.constant ? 1.0f : static_cast<float>(std::sqrt(3 / columns));
      break;
    case graph::Type::kQ8_0: push.scale = static_cast<float>(1 / (73.9 * std::sqrt(columns))); break;  // bytes: deviation 73.9
    case graph::Type::kQ4_0: push.scale = static_cast<float>(1 / (4.61 * std::sqrt(columns))); break;  // nibbles: 4.61
    default: return Status(StatusCode::kUnsupported, fmt::format("random weights of type {} are not there yet", graph::type_name(block.type)));
  }
  runtime::Program program;
  program.name = "random weights";
  program.kernels.push_back({runtime::Shader::random_weights, {kWidth}, 1, 1, sizeof push});
  runtime::Dispatch dispatch;
  dispatch.label = program.name;
  dispatch.bindings.push_back({{0, piece.place.offset_bytes, piece.place.size_bytes}, runtime::Access::kWrite});
  dispatch.push.resize(sizeof push);
  std::memcpy(dispatch.push.data(), &push, sizeof push);
  dispatch.grid = {graph::ceil_div(push.words, kWidth * kWordsEach), 1, 1};
  program.dispatches.push_back(std::move(dispatch));
  const runtime::Segment segment{0, 1, 0};
  const runtime::Buffer* buffers[] = {&model.weight_buffers[piece.place.buffer - kFirstWeightBuffer]};
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(model.device, program, {&segment, 1}, buffers));
  const runtime::Batch batch{recording.command_buffers()};
  RONDO_ASSIGN(const std::uint64_t value, model.device.submit({&batch, 1}));
  RONDO_TRY(model.device.wait(value, ~0ull));
  return {};
}

}  // namespace

Status make_random_block(LoadedModel& model, std::size_t index) {
  const WeightBlock& block = model.checkpoint->blocks[index];
  for (const graph::StoragePiece& piece : block.pieces) RONDO_TRY(make_random_piece(model, block, piece, static_cast<std::uint32_t>(index + 1) + 4096 * static_cast<std::uint32_t>(piece.first)));
  for (const WeightBlock::Part& part : block.parts) model.progress.bytes_done += part.tensor->size_bytes;
  return {};
}

}  // namespace rondo::models
