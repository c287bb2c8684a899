#include <rondo/model.h>

#include <algorithm>

#include "models/loaded_model.h"
#include "models/random_weights.h"
#include "models/tokenizers/tokenizer_model.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"

namespace rondo::models {

namespace {

/// Gives each block its places.
Status plan_places(LoadedModel& model) {
  Checkpoint& checkpoint = *model.checkpoint;
  RONDO_ASSIGN(model.weights, plan_weights(checkpoint, model.device.caps()));
  model.info.weight_bytes = model.weights.size_bytes;
  for (std::size_t i = 0; i < checkpoint.blocks.size(); ++i) checkpoint.blocks[i].pieces = model.weights.pieces[i];
  return {};
}

Status allocate_weights(LoadedModel& model) {
  for (std::uint64_t bytes : model.weights.buffer_bytes) {
    RONDO_ASSIGN(runtime::Buffer buffer, runtime::Buffer::create(model.device, bytes, runtime::MemoryIntent::kDevice, "weights"));
    model.weight_buffers.push_back(std::move(buffer));
  }
  return {};
}

/// The kernels of all steps, found by planning a session with a tiny context: no kernel depends on it.
Status list_kernels(LoadedModel& model) {
  const runtime::DeviceCaps& caps = model.device.caps();
  const std::vector<StepKind> kinds = step_kinds(model.checkpoint->config, caps, std::end(kPrefillRows)[-1]);
  RONDO_ASSIGN(const SessionPlan plan, plan_session(*model.checkpoint, model.weights, caps, model.options, 16, kinds));
  for (const graph::Lowered& step : plan.steps) {
    for (const runtime::Kernel& kernel : step.program.kernels) {
      auto& list = model.kernels_to_build;
      if (std::find(list.begin(), list.end(), kernel) == list.end()) list.push_back(kernel);
    }
  }
  return {};
}

/// Uploads as many rows of the current part as one staging write and one piece of the block hold.
Status upload_some(LoadedModel& model) {
  const Checkpoint& checkpoint = *model.checkpoint;
  const WeightBlock& block = checkpoint.blocks[model.block];
  const WeightBlock::Part& part = block.parts[model.part];
  const std::int64_t block_row = part.first_row + model.row;
  const graph::StoragePiece& piece = *std::find_if(block.pieces.begin(), block.pieces.end(), [&](const graph::StoragePiece& each) { return block_row < each.first + each.count; });
  const graph::BlockFormat& kept = *graph::find_block_format(block.type);
  const graph::BlockFormat& stored = file_format(part);
  const graph::PlaneLayout layout = graph::plane_layout(kept, piece.count, block.matrix[1]);
  const auto k = static_cast<std::uint32_t>(block.matrix[1]);
  const std::uint64_t row_bytes = graph::file_row_bytes(stored, k);
  const std::uint64_t quant_bytes = std::uint64_t{layout.row_words} * 4, scale_bytes = std::uint64_t{layout.scale_row_words} * 4;
  const auto part_rows = static_cast<std::int64_t>(part.tensor->dims[1]);
  const auto fit = static_cast<std::int64_t>(model.uploader.max_write_bytes() / (quant_bytes + scale_bytes));
  const std::int64_t n = std::min({part_rows - model.row, fit, piece.first + piece.count - block_row});
  RONDO_TRY(read_rows(checkpoint, part, model.row, n, model.file_rows));

  const runtime::Buffer& to = model.weight_buffers[piece.place.buffer - kFirstWeightBuffer];
  const auto rows = static_cast<std::uint64_t>(n), first = static_cast<std::uint64_t>(block_row - piece.first);
  const std::uint64_t quants_at = piece.place.offset_bytes + first * quant_bytes, scales_at = piece.place.offset_bytes + layout.scale_offset_words * 4 + first * scale_bytes;
  RONDO_TRY(model.uploader.reserve(to, rows * (quant_bytes + scale_bytes)));
  std::byte* quants = model.uploader.target(to, quants_at, rows * quant_bytes);
  std::byte* scales = scale_bytes ? model.uploader.target(to, scales_at, rows * scale_bytes) : nullptr;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::span<const std::byte> from(model.file_rows.data() + row * row_bytes, row_bytes);
    if (&stored != &kept) {  // vectors: kept as f32, whatever the file has
      model.vector_values.resize(k);
      stored.dequantize_row(from, k, model.vector_values.data());
      from = std::as_bytes(std::span(model.vector_values));
    }
    kept.repack_row(from, k, reinterpret_cast<std::uint32_t*>(quants + row * quant_bytes), reinterpret_cast<std::uint32_t*>(scales + row * scale_bytes));
  }
  model.progress.bytes_done += rows * row_bytes;
  model.row += n;
  if (model.row < part_rows) return {};
  model.row = 0;
  if (++model.part < block.parts.size()) return {};
  for (const graph::StoragePiece& done : block.pieces) {
    RONDO_TRY(model.weight_buffers[done.place.buffer - kFirstWeightBuffer].flush(done.place.offset_bytes, done.place.size_bytes));
  }
  model.part = 0;
  if (++model.block == checkpoint.blocks.size()) RONDO_TRY(model.uploader.submit());
  return {};
}

/// Creates one pipeline and dispatches it once with an inactive step state, so that drivers which compile lazily do it while
/// the next pipelines are created and the weights uploaded.
Status build_kernel(LoadedModel& model, const runtime::Kernel& kernel) {
  runtime::Device& device = model.device;
  const auto start = std::chrono::steady_clock::now();
  RONDO_ASSIGN(runtime::Buffer inactive, runtime::Buffer::create(device, 256, runtime::MemoryIntent::kDevice, "inactive state"));
  runtime::CommandList clear(device);
  RONDO_TRY(clear.begin());
  clear.fill(inactive, 0);
  RONDO_ASSIGN(const VkCommandBuffer clearing, clear.end());

  runtime::Program program;
  program.name = runtime::shader_name(kernel.shader);
  program.kernels.push_back(kernel);
  runtime::Dispatch dispatch;
  dispatch.bindings.assign(kernel.n_bindings, {{0, 0, 256}, runtime::Access::kReadWrite});
  // All ones: no divisor among the parameters is zero.
  dispatch.push.assign(kernel.push_bytes, std::byte{1});
  program.dispatches.push_back(std::move(dispatch));
  const runtime::Segment segment{0, 1, 0};
  const runtime::Buffer* buffers[] = {&inactive};
  RONDO_ASSIGN(runtime::Recording recording, runtime::Recording::create(device, program, {&segment, 1}, buffers));
  const VkCommandBuffer both[] = {clearing, recording.command_buffers()[0]};
  const runtime::Batch batch{both};
  RONDO_ASSIGN(model.kernels_built, device.submit({&batch, 1}));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  device.log(LogLevel::kDebug, fmt::format("kernel {} created in {} ms", program.name, took.count()));
  return {};
}

}  // namespace

}  // namespace rondo::models

namespace rondo {

Model::Model(std::shared_ptr<models::LoadedModel> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }
const Tokenizer& Model::tokenizer() const { return impl_->tokenizer; }

Result<Model> Model::create(Device& device, ByteSource source, const ModelOptions& options) {
  auto impl = std::make_shared<models::LoadedModel>(device.internal());
  impl->options = options;
  RONDO_ASSIGN(impl->checkpoint, models::open_checkpoint(std::move(source)));
  const models::Checkpoint& checkpoint = *impl->checkpoint;
  RONDO_ASSIGN(std::shared_ptr<const models::TokenizerModel> tokenizer, models::TokenizerModel::create(checkpoint.file));
  impl->tokenizer = Tokenizer(std::move(tokenizer));
  const models::LlamaConfig& config = checkpoint.config;
  if (impl->tokenizer.n_vocab() != static_cast<std::int32_t>(config.n_vocab)) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tokenizer.ggml.tokens has {} entries but tensor 'token_embd.weight' {} rows", checkpoint.file.name(),
                                                        impl->tokenizer.n_vocab(), config.n_vocab));
  }
  impl->info = {config.architecture, config.name, config.n_layers, config.width, config.n_heads, config.n_kv_heads, config.n_vocab, config.context, checkpoint.n_parameters, 0};
  RONDO_TRY(models::plan_places(*impl));
  RONDO_TRY(models::list_kernels(*impl));
  RONDO_TRY(models::allocate_weights(*impl));
  for (const models::WeightBlock& block : checkpoint.blocks) {
    for (const auto& part : block.parts) impl->progress.bytes_total += part.tensor->size_bytes;
  }
  return Model(std::move(impl));
}

Result<LoadProgress> Model::load_some(std::chrono::microseconds budget) {
  models::LoadedModel& model = *impl_;
  const auto until = std::chrono::steady_clock::now() + budget;
  while (!model.progress.finished) {
    if (model.options.executor && !model.pipelines_created) {
      const std::vector<runtime::Kernel> kernels(model.kernels_to_build.begin(), model.kernels_to_build.end());
      RONDO_TRY(model.device.kernels().create_all(kernels, model.options.executor));
      model.pipelines_created = true;
    } else if (!model.kernels_to_build.empty()) {
      RONDO_TRY(models::build_kernel(model, model.kernels_to_build.front()));
      model.kernels_to_build.pop_front();
    } else if (model.block < model.checkpoint->blocks.size()) {
      Status status = model.random_weights ? models::make_random_block(model, model.block++) : models::upload_some(model);
      if (!status.ok()) return status.with_prefix(model.checkpoint->file.name());
    } else {
      const auto left = std::max<std::chrono::nanoseconds>(until - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0));
      const Status built = model.device.wait(model.kernels_built, static_cast<std::uint64_t>(left.count()));
      if (built.code() == StatusCode::kTimeout) return model.progress;
      RONDO_TRY(built);
      model.progress.finished = true;
      model.uploader.release();
      model.file_rows = {};
    }
    if (std::chrono::steady_clock::now() >= until) break;
  }
  return model.progress;
}

Status Model::wait_loaded() {
  const Result<LoadProgress> progress = load_some(std::chrono::hours(1000));
  return progress.ok() ? Status() : progress.status();
}

}  // namespace rondo
