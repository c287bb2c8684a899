// Setting up a session: plan, allocate, record.
#include <algorithm>
#include <bit>
#include <cstring>

#include "models/session_state.h"
#include "runtime/fmt.h"
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
  const LoadedModel& loaded = *session->model_;
  RONDO_ASSIGN(SessionPlan plan, plan_session(*loaded.checkpoint, loaded.weights, loaded.device.caps(), loaded.options, session->n_ctx_, step_kinds(loaded.checkpoint->config, loaded.device.caps(), session->n_ctx_)));
  RONDO_TRY(session->allocate(plan));
  session->history_.reserve(session->n_ctx_);
  session->ready_.reserve(session->n_ctx_);
  RONDO_TRY(session->record_steps(std::move(plan)));
  RONDO_TRY(session->write_initial_state());
  return session;
}

Status SessionState::allocate(const SessionPlan& plan) {
  const MemoryPlan& memory = plan.memory;
  device_.log(LogLevel::kInfo, fmt::format("{} + activations {} MB", memory.summary(), memory.activation_bytes >> 20));
  const auto create = [&](runtime::Buffer& buffer, std::size_t index, const char* what) -> Status {
    const MemoryPlan::Buffer& planned = memory.buffers[index];
    Result<runtime::Buffer> made = runtime::Buffer::create(device_, planned.size_bytes, planned.intent, what);
    if (!made.ok()) return made.status().with_prefix(memory.summary());
    buffer = std::move(made).value();
    return {};
  };
  RONDO_TRY(create(state_, kStateBuffer, "step state"));
  RONDO_TRY(create(tokens_, kTokensBuffer, "tokens"));
  RONDO_TRY(create(mirror_, kMirrorBuffer, "token mirror"));
  RONDO_TRY(create(constants_, kConstantsBuffer, "constants"));
  RONDO_TRY(create(activations_, kActivationsBuffer, "activations"));
  for (std::size_t i = kFirstWeightBuffer + model_->weight_buffers.size(); i < memory.buffers.size(); ++i) RONDO_TRY(create(caches_.emplace_back(), i, "KV cache"));
  statistics_.kv_bytes = memory.kv_bytes;
  statistics_.activation_bytes = memory.activation_bytes;
  places_ = plan.places;
  for (const SessionPlan::Constant& constant : plan.constants) constant_places_.emplace_back(constant.name, constant.place);
  return upload_constants(plan);
}

Status SessionState::upload_constants(const SessionPlan& plan) {
  runtime::Uploader uploader(device_);
  for (const SessionPlan::Constant& constant : plan.constants) {
    for (std::uint64_t at = 0; at < constant.content.size(); at += uploader.max_write_bytes()) {
      const std::uint64_t n = std::min<std::uint64_t>(uploader.max_write_bytes(), constant.content.size() - at);
      RONDO_TRY(uploader.reserve(constants_, n));
      std::memcpy(uploader.target(constants_, constant.place.offset_bytes + at, n), constant.content.data() + at, n);
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

Status SessionState::record_steps(SessionPlan plan) {
  const std::vector<const runtime::Buffer*> buffers = buffer_table();
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) {
    const StepKind kind = plan.kinds[i];
    RONDO_ASSIGN(RecordedStep step, record_step(kind, std::move(plan.steps[i].program), buffers));
    if (kind.rows == 1) decode_ = std::move(step);
    else (kind.head == StepHead::kNone ? prefill_ : prefill_and_sample_).push_back(std::move(step));
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
