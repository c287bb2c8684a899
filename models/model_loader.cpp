#include "models/model_loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "graph/kernel_choice.h"
#include "models/random_weights.h"
#include "runtime/fmt.h"
#include "runtime/kernel.h"
#include "runtime/recording.h"
#include "runtime/warm_up.h"

namespace rondo::models {

namespace {

using Clock = std::chrono::steady_clock;

/// The piece of a block that holds a row.
const graph::StoragePiece& piece_of(std::span<const graph::StoragePiece> pieces, std::int64_t row) {
  return *std::find_if(pieces.begin(), pieces.end(), [row](const graph::StoragePiece& each) { return row < each.first + each.count; });
}

}  // namespace

ModelLoader::ModelLoader(std::shared_ptr<LoadedModel> model) : model_(std::move(model)), kernels_(model_->plan->kernels()), uploader_(model_->device) {
  for (const WeightBlock& block : model_->network().blocks) progress_.bytes_total += block.file_bytes();
}

bool ModelLoader::is_compiling() const { return next_kernel_ < kernels_.size() || block_ == model_->network().blocks.size(); }

Result<std::shared_ptr<const LoadedModel>> ModelLoader::loaded() const {
  if (!progress_.finished) return Status(StatusCode::kFailedPrecondition, "session: the model is not loaded yet");
  return std::shared_ptr<const LoadedModel>(model_);
}

Result<std::shared_ptr<LoadedModel>> ModelLoader::tunable() const {
  if (!progress_.finished) return Status(StatusCode::kFailedPrecondition, "tuning: the model is not loaded yet");
  return model_;
}

/// Uploads as many rows of the current part as one staging write and one piece of the block hold.
Status ModelLoader::upload_rows() {
  const WeightBlock& block = model_->network().blocks[block_];
  const WeightPart& part = block.parts[part_];
  const std::int64_t block_row = part.first + row_;
  const graph::StoragePiece& piece = piece_of(model_->weights.pieces[block_], block_row);
  const graph::PlaneLayout layout = graph::plane_layout(*part.stored, piece.count, block.matrix[1]);
  const std::uint64_t quant_bytes = std::uint64_t{layout.row_words} * 4, scale_bytes = std::uint64_t{layout.scale_row_words} * 4;
  const auto fit = static_cast<std::int64_t>(uploader_.max_write_bytes() / (quant_bytes + scale_bytes));
  const std::int64_t n = std::min({part.count - row_, fit, piece.first + piece.count - block_row});
  RONDO_TRY(read_rows(model_->checkpoint->source, block, part, row_, n, file_rows_));

  const runtime::Buffer& to = model_->weight_buffers[piece.place.buffer];
  const auto rows = static_cast<std::uint64_t>(n), first = static_cast<std::uint64_t>(block_row - piece.first);
  const std::uint64_t quants_at = piece.place.offset_bytes + first * quant_bytes, scales_at = piece.place.offset_bytes + layout.scale_offset_words * 4 + first * scale_bytes;
  RONDO_TRY(uploader_.reserve(to, rows * (quant_bytes + scale_bytes)));
  std::byte* quants = uploader_.target(to, quants_at, rows * quant_bytes);
  std::byte* scales = scale_bytes ? uploader_.target(to, scales_at, rows * scale_bytes) : nullptr;
  graph::pack_rows(*part.stored, static_cast<std::uint32_t>(block.matrix[1]), file_rows_, quants, scales);
  progress_.bytes_done += file_rows_.size();
  row_ += n;
  if (row_ < part.count) return {};
  row_ = 0;
  if (++part_ < block.parts.size()) return {};
  return finish_block();
}

/// Uploads a block of vectors in one piece: they are small, and their parts need not begin with a whole group.
Status ModelLoader::upload_vector() {
  const WeightBlock& block = model_->network().blocks[block_];
  const graph::StoragePiece& piece = model_->weights.pieces[block_].front();
  RONDO_ASSIGN(const std::vector<float> values, read_values(model_->checkpoint->source, block));
  const graph::BlockFormat& format = *graph::find_block_format(block.type);
  const std::uint64_t bytes = std::uint64_t{graph::plane_layout(format, 1, block.matrix[1]).row_words} * 4;
  const runtime::Buffer& to = model_->weight_buffers[piece.place.buffer];
  RONDO_TRY(uploader_.reserve(to, bytes));
  graph::pack_rows(format, static_cast<std::uint32_t>(block.matrix[1]), std::as_bytes(std::span(values)), uploader_.target(to, piece.place.offset_bytes, bytes), nullptr);
  progress_.bytes_done += block.file_bytes();
  return finish_block();
}

Status ModelLoader::finish_block() {
  for (const graph::StoragePiece& done : model_->weights.pieces[block_]) {
    RONDO_TRY(model_->weight_buffers[done.place.buffer].flush(done.place.offset_bytes, done.place.size_bytes));
  }
  part_ = 0;
  if (++block_ < model_->network().blocks.size()) return {};
  return uploader_.submit();
}

Status ModelLoader::replace_kernel(const runtime::Kernel& kernel, const Status& why) {
  if (why.code() == StatusCode::kDeviceLost || why.code() == StatusCode::kOutOfMemory) return why;
  LoadedModel& model = *model_;
  std::vector<std::string> labels;
  for (const PlannedStep& step : model.plan->steps) {
    const runtime::Program& program = step.lowered.program;
    const auto add = [&](const std::string& label) {
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
    };
    for (const runtime::Dispatch& dispatch : program.dispatches) {
      if (program.kernels[dispatch.kernel] != kernel) continue;
      if (dispatch.choice.empty() || !graph::chosen_kernel(dispatch).empty()) {
        add(dispatch.label);
        continue;
      }
      // It makes what another one needs, which another than that may do without.
      for (const runtime::Dispatch& other : program.dispatches) {
        if (other.choice == dispatch.choice && !graph::chosen_kernel(other).empty()) add(other.label);
      }
    }
  }
  const std::size_t n_before = model.options.quarantine.size();
  model.options.quarantine.insert(model.options.quarantine.end(), labels.begin(), labels.end());
  Result<std::shared_ptr<const SessionPlan>> plan = plan_default_session(model);
  if (labels.empty() || !plan.ok()) {
    model.options.quarantine.resize(n_before);
    return why;
  }
  model.device.log(LogLevel::kWarn, fmt::format("model: {}; others take the place of '{}'", why.message(), fmt::join(labels, "' and '")));
  model.plan = std::move(plan).value();
  kernels_ = model.plan->kernels();
  next_kernel_ = 0;
  return {};
}

/// All pipelines by the executor. If some can't be made, the first of them is replaced.
Status ModelLoader::create_kernels() {
  runtime::KernelCache& cache = model_->device.kernels();
  if (cache.create_all(kernels_, model_->options.executor).ok()) {
    pipelines_created_ = true;
    return {};
  }
  for (const runtime::Kernel& kernel : kernels_) {
    if (const Status made = cache.find_or_create(kernel).status(); !made.ok()) return replace_kernel(kernel, made);
  }
  return {};
}

/// Creates one pipeline and dispatches it once with an inactive step state, so that drivers which compile lazily do it while
/// the next pipelines are created and the weights uploaded.
Status ModelLoader::build_kernel(const runtime::Kernel& kernel) {
  runtime::Device& device = model_->device;
  const auto start = Clock::now();
  RONDO_ASSIGN(const runtime::Buffer inactive, runtime::Buffer::create(device, runtime::kWarmUpBytes, runtime::MemoryIntent::kDevice, "inactive state"));
  runtime::CommandList clear(device);
  RONDO_TRY(clear.begin());
  clear.fill(inactive, 0);
  RONDO_ASSIGN(const VkCommandBuffer clearing, clear.end());

  const runtime::Program program = runtime::warm_up_program(kernel);
  const runtime::Segment segment{0, 1, 0};
  const runtime::Buffer* buffers[] = {&inactive};
  RONDO_ASSIGN(const runtime::Recording recording, runtime::Recording::create(device, program, {&segment, 1}, buffers));
  const VkCommandBuffer both[] = {clearing, recording.command_buffers()[0]};
  const runtime::Batch batch{both};
  RONDO_ASSIGN(kernels_built_, device.submit({&batch, 1}));
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
  device.log(LogLevel::kDebug, fmt::format("kernel {} created in {} ms", program.name, took.count()));
  return {};
}

/// One piece of work, of which there is some.
Status ModelLoader::load_piece() {
  if (model_->options.executor && !pipelines_created_) return create_kernels();
  if (next_kernel_ < kernels_.size()) {
    const runtime::Kernel kernel = kernels_[next_kernel_];
    if (const Status made = model_->device.kernels().find_or_create(kernel).status(); !made.ok()) return replace_kernel(kernel, made);
    RONDO_TRY(build_kernel(kernel));
    ++next_kernel_;
    return {};
  }
  const WeightBlock& block = model_->network().blocks[block_];
  Status status;
  if (random_weights_) {
    status = make_random_block(*model_, block_++);
    progress_.bytes_done += block.file_bytes();
  } else {
    status = block.is_vector ? upload_vector() : upload_rows();
  }
  return status.ok() ? status : status.with_prefix(model_->checkpoint->file.name());
}

Result<LoadProgress> ModelLoader::load_some(std::chrono::nanoseconds budget) {
  const auto until = Clock::now() + budget;
  while (!progress_.finished) {
    if (next_kernel_ < kernels_.size() || block_ < model_->network().blocks.size()) {
      RONDO_TRY(load_piece());
    } else {
      const auto left = std::max<std::chrono::nanoseconds>(until - Clock::now(), std::chrono::nanoseconds(0));
      const Status built = model_->device.wait(kernels_built_, static_cast<std::uint64_t>(left.count()));
      if (built.code() == StatusCode::kTimeout) return progress_;
      RONDO_TRY(built);
      progress_.finished = true;
      uploader_.release();
      file_rows_ = {};
    }
    if (Clock::now() >= until) break;
  }
  return progress_;
}

}  // namespace rondo::models
