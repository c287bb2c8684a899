// Setting up a session: plan, allocate, record.
#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "models/placement.h"
#include "models/session_state.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

SessionState::SessionState(std::shared_ptr<LoadedModel> model, const SessionOptions& options)
    : model_(std::move(model)), device_(model_->device), options_(options) {}

namespace {

Status check_sampling(const SamplingOptions& sampling) {
  const auto refuse = [](const char* name, float value, const char* expected) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {} is {} but must be {}", name, value, expected));
  };
  // Written so that NaN is refused.
  if (!(sampling.temperature >= 0 && sampling.temperature <= 1e6f)) return refuse("temperature", sampling.temperature, "from 0 to 1e6");
  if (!(sampling.top_p > 0 && sampling.top_p <= 1)) return refuse("top_p", sampling.top_p, "above 0 and at most 1");
  if (!(sampling.min_p >= 0 && sampling.min_p <= 1)) return refuse("min_p", sampling.min_p, "from 0 to 1");
  if (!(sampling.repeat_penalty > 0 && sampling.repeat_penalty <= 1e6f)) return refuse("repeat_penalty", sampling.repeat_penalty, "above 0 and at most 1e6");
  return {};
}

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<LoadedModel> model, const SessionOptions& options) {
  if (!model->progress.finished) return Status(StatusCode::kFailedPrecondition, "session: the model is not loaded yet");
  if (options.burst > runtime::Device::kMaxBatches) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: burst is {} but must be at most {}", options.burst, runtime::Device::kMaxBatches));
  }
  RONDO_TRY(check_sampling(options.sampling));
  for (const std::string& text : options.stop_texts) {
    if (text.empty()) return Status(StatusCode::kInvalidArgument, "session: a stop text is empty");
  }
  if (!(options.max_segment_us > 0)) return Status(StatusCode::kInvalidArgument, "session: max_segment_us must be positive");
  std::unique_ptr<SessionState> session(new SessionState(std::move(model), options));
  session->n_ctx_ = options.n_ctx ? options.n_ctx : std::min(session->model_->info.context, 4096u);
  session->stop_ids_ = options.stop_ids;
  if (options.use_model_stop_ids) {
    for (std::int32_t id : session->model_->tokenizer.stop_ids()) session->stop_ids_.push_back(id);
  }
  if (session->stop_ids_.size() > RONDO_STATE_MAX_STOP_IDS) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {} stop ids are given but at most {} can be", session->stop_ids_.size(), RONDO_STATE_MAX_STOP_IDS));
  }
  RONDO_TRY(session->plan_and_allocate());
  session->history_.reserve(session->n_ctx_);
  session->ready_.reserve(session->n_ctx_);
  RONDO_TRY(session->record_steps());
  RONDO_TRY(session->write_initial_state());
  return session;
}

Status SessionState::plan_and_allocate() {
  const LlamaConfig& config = model_->checkpoint->config;
  const runtime::DeviceCaps& caps = device_.caps();
  const std::uint64_t layer_bytes = cache_layer_bytes(config, model_->kv_type(), n_ctx_);
  statistics_.kv_bytes = 2 * layer_bytes * config.n_layers;
  const std::string plan = fmt::format("context of {} tokens: KV cache {} MB + weights {} MB", n_ctx_, statistics_.kv_bytes >> 20, model_->info.weight_bytes >> 20);
  if (caps.memory_budget_bytes && statistics_.kv_bytes + model_->info.weight_bytes > caps.memory_budget_bytes) {
    return Status(StatusCode::kOutOfMemory, fmt::format("{} do not fit the {} MB of device {}; ask for a smaller context", plan, caps.memory_budget_bytes >> 20, caps.name));
  }
  if (layer_bytes > caps.max_storage_range_bytes) {
    return Status(StatusCode::kUnsupported, fmt::format("{}: one layer's keys need {} bytes in one storage buffer but device {} allows {}; splitting is not there yet; ask for a smaller context",
                                                        plan, layer_bytes, caps.name, caps.max_storage_range_bytes));
  }
  device_.log(LogLevel::kInfo, plan);
  const auto create = [&](runtime::Buffer& buffer, std::uint64_t bytes, runtime::MemoryIntent intent, const char* what) -> Status {
    Result<runtime::Buffer> made = runtime::Buffer::create(device_, bytes, intent, what);
    if (!made.ok()) return made.status().with_prefix(plan);
    buffer = std::move(made).value();
    return {};
  };
  const std::uint64_t token_bytes = std::uint64_t{4} * n_ctx_;
  RONDO_TRY(create(state_, RONDO_STATE_WORDS * 4, runtime::MemoryIntent::kDevice, "step state"));
  RONDO_TRY(create(tokens_, token_bytes, runtime::MemoryIntent::kDevice, "tokens"));
  RONDO_TRY(create(mirror_, token_bytes, runtime::MemoryIntent::kReadback, "token mirror"));

  const std::vector<std::uint64_t> sizes(std::size_t{2} * config.n_layers, (layer_bytes + 255) / 256 * 256);
  const auto first_cache = static_cast<std::uint32_t>(kFirstWeightBuffer + model_->weight_buffers.size());
  constexpr std::uint64_t kLargestBuffer = 1u << 30;
  RONDO_ASSIGN(const Placement placement, place_blocks(sizes, 256, std::min(kLargestBuffer, caps.max_allocation_bytes), first_cache));
  for (std::uint64_t bytes : placement.buffer_bytes) RONDO_TRY(create(caches_.emplace_back(), bytes, runtime::MemoryIntent::kDevice, "KV cache"));

  places_.n_ctx = n_ctx_;
  places_.kv_type = model_->kv_type();
  places_.state = {kStateBuffer, 0, RONDO_STATE_WORDS * 4};
  places_.tokens = {kTokensBuffer, 0, token_bytes};
  places_.mirror = {kMirrorBuffer, 0, token_bytes};
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    places_.key_caches.push_back(placement.places[std::size_t{2} * i]);
    places_.value_caches.push_back(placement.places[std::size_t{2} * i + 1]);
  }
  return {};
}

/// Gives equal constants of all graphs one place, and uploads them.
Status SessionState::place_constants(std::vector<graph::Graph>& graphs) {
  std::uint64_t total = 0;
  std::vector<const std::vector<std::byte>*> contents;
  for (graph::Graph& step : graphs) {
    for (std::size_t i = 0; i < step.n_storages(); ++i) {
      graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
      if (storage.kind != graph::StorageKind::kConstant) continue;
      auto found = std::find_if(constant_places_.begin(), constant_places_.end(), [&](const auto& known) { return known.first == storage.name; });
      if (found == constant_places_.end()) {
        constant_places_.emplace_back(storage.name, runtime::BufferRange{kConstantsBuffer, total, storage.size_bytes});
        total = (total + storage.size_bytes + 255) / 256 * 256;
        contents.push_back(&storage.content);
        found = constant_places_.end() - 1;
      }
      storage.place = found->second;
    }
  }
  RONDO_ASSIGN(constants_, runtime::Buffer::create(device_, total, runtime::MemoryIntent::kDevice, "constants"));
  runtime::Uploader uploader(device_);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    for (std::uint64_t at = 0; at < contents[i]->size(); at += uploader.max_write_bytes()) {
      const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), contents[i]->size() - at);
      RONDO_TRY(uploader.reserve(constants_, n));
      std::memcpy(uploader.target(constants_, constant_places_[i].second.offset_bytes + at, n), contents[i]->data() + at, n);
    }
  }
  RONDO_TRY(constants_.flush(0, constants_.size_bytes()));
  return uploader.submit();
}

/// Gives the constants of a graph made later the places of those that are there.
Status SessionState::find_constants(graph::Graph& step) const {
  for (std::size_t i = 0; i < step.n_storages(); ++i) {
    graph::Storage& storage = step.storage(static_cast<graph::StorageId>(i));
    if (storage.kind != graph::StorageKind::kConstant) continue;
    const auto found = std::find_if(constant_places_.begin(), constant_places_.end(), [&](const auto& known) { return known.first == storage.name; });
    if (found == constant_places_.end()) return Status(StatusCode::kInternal, fmt::format("session: constant {} is new", storage.name));
    storage.place = found->second;
  }
  return {};
}

std::vector<const runtime::Buffer*> SessionState::buffer_table() const {
  std::vector<const runtime::Buffer*> table = {&state_, &tokens_, &mirror_, &constants_, &activations_, &logits_};
  for (const runtime::Buffer& buffer : model_->weight_buffers) table.push_back(&buffer);
  for (const runtime::Buffer& buffer : caches_) table.push_back(&buffer);
  return table;
}

Status SessionState::record_steps() {
  const Checkpoint& checkpoint = *model_->checkpoint;
  const std::vector<StepKind> kinds = step_kinds(n_ctx_);
  std::vector<graph::Graph> graphs;
  for (const StepKind& kind : kinds) {
    graphs.push_back(build_llama_step(checkpoint.config, checkpoint.weights, checkpoint.blocks, places_, kind.rows, kind.head));
    RONDO_TRY(graphs.back().status());
  }
  RONDO_TRY(place_constants(graphs));

  std::vector<graph::Lowered> lowered;
  std::uint64_t activation_bytes = 0;
  for (graph::Graph& step : graphs) {
    RONDO_ASSIGN(graph::Lowered one, graph::lower(step, device_.caps(), model_->lowering_options()));
    activation_bytes = std::max(activation_bytes, one.activation_bytes);
    lowered.push_back(std::move(one));
  }
  RONDO_ASSIGN(activations_, runtime::Buffer::create(device_, activation_bytes, runtime::MemoryIntent::kDevice, "activations"));
  statistics_.activation_bytes = activation_bytes;
  const std::vector<const runtime::Buffer*> buffers = buffer_table();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    RONDO_ASSIGN(RecordedStep step, record_step(kinds[i], std::move(lowered[i].program), buffers));
    if (kinds[i].rows == 1) decode_ = std::move(step);
    else (kinds[i].head == StepHead::kNone ? prefill_ : prefill_and_sample_).push_back(std::move(step));
  }
  statistics_.dispatches_per_decode_step = decode_.recording.n_dispatches();
  statistics_.segments_per_decode_step = static_cast<std::uint32_t>(decode_.recording.segments().size());
  return {};
}

Result<RecordedStep> SessionState::record_step(const StepKind& kind, runtime::Program program, std::span<const runtime::Buffer* const> buffers) {
  RecordedStep step{kind, std::move(program), {}, {}};
  if (options_.profile) {
    RONDO_ASSIGN(step.timestamps, runtime::TimestampPool::create(device_, static_cast<std::uint32_t>(step.program.dispatches.size())));
  }
  const std::vector<runtime::Segment> segments = graph::cut_segments(step.program, device_.caps(), options_.max_segment_us * 1000);
  RONDO_ASSIGN(step.recording, runtime::Recording::create(device_, step.program, segments, buffers, options_.profile ? &step.timestamps : nullptr));
  return step;
}

Status SessionState::write_initial_state() {
  std::array<std::int32_t, RONDO_STATE_WORDS> words{};
  words[RONDO_STATE_SEED_LOW] = static_cast<std::int32_t>(options_.seed & 0xffffffffu);
  words[RONDO_STATE_SEED_HIGH] = static_cast<std::int32_t>(options_.seed >> 32);
  words[RONDO_STATE_N_STOP] = static_cast<std::int32_t>(stop_ids_.size());
  const SamplingOptions& sampling = options_.sampling;
  words[RONDO_STATE_TEMPERATURE] = std::bit_cast<std::int32_t>(sampling.temperature);
  words[RONDO_STATE_TOP_K] = static_cast<std::int32_t>(sampling.top_k);
  words[RONDO_STATE_TOP_P] = std::bit_cast<std::int32_t>(sampling.top_p);
  words[RONDO_STATE_MIN_P] = std::bit_cast<std::int32_t>(sampling.min_p);
  words[RONDO_STATE_REPEAT_PENALTY] = std::bit_cast<std::int32_t>(sampling.repeat_penalty);
  words[RONDO_STATE_REPEAT_LAST_N] = static_cast<std::int32_t>(sampling.repeat_last_n);
  for (std::size_t i = 0; i < stop_ids_.size(); ++i) words[RONDO_STATE_STOP_IDS + i] = stop_ids_[i];
  runtime::CommandList list(device_);
  RONDO_TRY(list.begin());
  list.update(state_, 0, std::as_bytes(std::span(words)));
  // Caches and activations start as zeros: what a kernel may read before it is written is then finite.
  for (const runtime::Buffer& cache : caches_) list.fill(cache, 0);
  list.fill(activations_, 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  RONDO_ASSIGN(const std::uint64_t value, device_.submit({&batch, 1}));
  staging_lists_.emplace_back(value, std::move(list));
  return {};
}

std::vector<const runtime::Program*> SessionState::programs() const {
  std::vector<const runtime::Program*> all = {&decode_.program};
  for (const RecordedStep& step : prefill_) all.push_back(&step.program);
  for (const RecordedStep& step : prefill_and_sample_) all.push_back(&step.program);
  if (logits_step_) all.push_back(&logits_step_->program);
  return all;
}

}  // namespace rondo::models
