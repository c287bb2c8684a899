// Setting up what a session has on the device: plan, allocate, record.
#include "models/step_set.h"

#include <algorithm>
#include <bit>

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

StepSet::StepSet(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, const SessionOptions& options, PlanBuffers buffers)
    : model_(std::move(model)), device_(&model_->device), plan_(std::move(plan)), buffers_(std::move(buffers)), profile_(options.profile), max_segment_ns_(options.max_segment_us * 1000) {}

namespace {

/// The model's plan where the session is as it supposed, else one of its own.
Result<std::shared_ptr<const SessionPlan>> find_plan(const LoadedModel& model, std::uint32_t n_ctx, std::uint32_t n_source) {
  if (model.plan->memory.n_ctx == n_ctx && model.plan->memory.n_source == n_source) return model.plan;
  const runtime::DeviceCaps& caps = model.device.caps();
  RONDO_ASSIGN(SessionPlan plan, plan_session(model.network(), model.weights, caps, model.options, n_ctx, step_kinds(model.network(), caps, n_ctx, n_source), 1, n_source));
  return std::make_shared<const SessionPlan>(std::move(plan));
}

}  // namespace

Result<StepSet> StepSet::create(std::shared_ptr<const LoadedModel> model, const SessionOptions& options, std::uint32_t n_ctx, std::uint32_t n_source, std::span<const std::int32_t> stop_ids) {
  RONDO_ASSIGN(std::shared_ptr<const SessionPlan> plan, find_plan(*model, n_ctx, n_source));
  const MemoryPlan& memory = plan->memory;
  model->device.log(LogLevel::kInfo, fmt::format("{} + activations {} MB", memory.summary(), memory.activation_bytes >> 20));
  RONDO_ASSIGN(PlanBuffers buffers, PlanBuffers::create(model, plan));
  StepSet set(std::move(model), std::move(plan), options, std::move(buffers));
  for (const PlannedStep& planned : set.plan_->steps) {
    RONDO_ASSIGN(RecordedStep step, set.record_step(planned.kind, planned.lowered.program));
    if (Status taken = set.take(std::move(step)); !taken.ok()) return taken;
  }
  RONDO_TRY(set.write_initial_state(options, stop_ids));
  return set;
}

Status StepSet::take(RecordedStep step) {
  switch (step.kind.role) {
    case Role::kDecode: decode_ = std::move(step); return {};
    case Role::kPrefill: prefill_.push_back(std::move(step)); return {};
    case Role::kPrefillAndSample: prefill_and_sample_.push_back(std::move(step)); return {};
    case Role::kEncode: encode_.push_back(std::move(step)); return {};
    default: break;
  }
  return Status(StatusCode::kUnsupported, fmt::format("session: a step that is to {} is not there yet", role_name(step.kind.role)));
}

Result<RecordedStep> StepSet::record_step(const StepKind& kind, const runtime::Program& program) const {
  RecordedStep step{kind, &program, {}, {}};
  if (profile_) {
    RONDO_ASSIGN(step.timestamps, runtime::TimestampPool::create(*device_, static_cast<std::uint32_t>(program.dispatches.size())));
  }
  const std::vector<runtime::Segment> segments = graph::cut_segments(program, device_->caps(), max_segment_ns_);
  RONDO_ASSIGN(step.recording, runtime::Recording::create(*device_, program, segments, buffers_.table(), profile_ ? &step.timestamps : nullptr));
  return step;
}

Status StepSet::write_initial_state(const SessionOptions& options, std::span<const std::int32_t> stop_ids) {
  std::array<std::int32_t, RONDO_STATE_WORDS> words{};
  words[RONDO_STATE_SEED_LOW] = static_cast<std::int32_t>(options.seed & 0xffffffffu);
  words[RONDO_STATE_SEED_HIGH] = static_cast<std::int32_t>(options.seed >> 32);
  words[RONDO_STATE_N_STOP] = static_cast<std::int32_t>(stop_ids.size());
  const SamplingOptions& sampling = options.sampling;
  words[RONDO_STATE_TEMPERATURE] = std::bit_cast<std::int32_t>(sampling.temperature);
  words[RONDO_STATE_TOP_K] = static_cast<std::int32_t>(sampling.top_k);
  words[RONDO_STATE_TOP_P] = std::bit_cast<std::int32_t>(sampling.top_p);
  words[RONDO_STATE_MIN_P] = std::bit_cast<std::int32_t>(sampling.min_p);
  words[RONDO_STATE_REPEAT_PENALTY] = std::bit_cast<std::int32_t>(sampling.repeat_penalty);
  words[RONDO_STATE_REPEAT_LAST_N] = static_cast<std::int32_t>(sampling.repeat_last_n);
  for (std::size_t i = 0; i < stop_ids.size(); ++i) words[RONDO_STATE_STOP_IDS + i] = stop_ids[i];
  runtime::CommandList list(*device_);
  RONDO_TRY(list.begin());
  for (std::int64_t sequence = 0; sequence < plan_->places.n_sequences; ++sequence) {
    list.update(state(), static_cast<std::uint64_t>(sequence) * sizeof words, std::as_bytes(std::span(words)));
  }
  // Caches and activations start as zeros: what a kernel may read before it is written is then finite.
  for (const runtime::Buffer& cache : caches()) list.fill(cache, 0);
  list.fill(slot(plan_->activation_slot), 0);
  if (!encode_.empty()) list.fill(source(), 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  return device_->submit({&batch, 1}).status();
}

std::vector<const runtime::Program*> StepSet::programs() const {
  std::vector<const runtime::Program*> all = {decode_.program};
  for (const RecordedStep& step : prefill_) all.push_back(step.program);
  for (const RecordedStep& step : prefill_and_sample_) all.push_back(step.program);
  for (const RecordedStep& step : encode_) all.push_back(step.program);
  if (logits_step_) all.push_back(logits_step_->program);
  return all;
}

Status StepSet::record_logits_step() {
  if (logits_step_) return {};
  const StepKind kind = output_step_kind(model_->network(), Role::kLogits, device_->caps());
  std::uint64_t logits_bytes = 0;
  RONDO_ASSIGN(graph::Lowered lowered, plan_output_step(model_->network(), device_->caps(), model_->options, *plan_, kind, logits_bytes));
  RONDO_TRY(buffers_.create_slot(plan_->output_slot, logits_bytes));
  RONDO_TRY(buffers_.create_slot(plan_->output_activation_slot, lowered.activation_bytes));
  logits_program_ = std::make_unique<const runtime::Program>(std::move(lowered.program));
  RONDO_ASSIGN(RecordedStep step, record_step(kind, *logits_program_));
  logits_step_ = std::make_unique<RecordedStep>(std::move(step));
  return {};
}

Status StepSet::fill_history() {
  runtime::CommandList list(*device_);
  RONDO_TRY(list.begin());
  // All equal and small: 0.1 as f32, or twice as f16; of q8_0 quants of 28 and scales of 0.004.
  const std::uint32_t pattern = plan_->places.kv_type == graph::Type::kQ8_0 ? 0x1c1c1c1cu : plan_->places.kv_type == graph::Type::kF16 ? 0x2e662e66u : 0x3dcccccdu;
  for (const runtime::Buffer& cache : caches()) list.fill(cache, pattern);
  list.fill(tokens(), 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  return device_->submit({&batch, 1}).status();
}

}  // namespace rondo::models
