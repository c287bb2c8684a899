#include "models/encoder_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/image.h"
#include "models/model_loader.h"
#include "models/take_all.h"
#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

constexpr std::uint32_t kMostBatch = 64;

const char* caller_of(bool images) { return images ? "image encoder" : "encoder"; }

Result<Role> role_of(const Network& network, const EncoderOptions& options, bool images) {
  const auto refuse = [&](const std::string& what) { return Status(StatusCode::kUnsupported, fmt::format("{}: {} {}", caller_of(images), network.facts.architecture, what)); };
  if (options.output == EncoderOutput::kAttention) {
    const Role attention = images ? Role::kAttentionImage : Role::kAttention;
    return network.find(attention) ? Result<Role>(attention) : refuse(images ? "takes no images" : "takes no texts");
  }
  const Role encode = images ? Role::kEncodeImage : Role::kEncode, pool = images ? Role::kPoolImage : Role::kPool, head = images ? Role::kHeadImage : Role::kHead;
  if (!network.find(encode)) return refuse(images ? "takes no images" : "does not encode texts");
  if (options.output == EncoderOutput::kHead && !network.find(head)) return refuse("has no head here, so nothing but hidden states and vectors");
  if (options.output == EncoderOutput::kVector && options.pooling == Pooling::kPooler && !network.has_pooler) return refuse("has no pooler");
  return options.output == EncoderOutput::kHidden ? encode : options.output == EncoderOutput::kVector ? pool : head;
}

Status check_options(const Network& network, const EncoderOptions& options, Role role, bool images) {
  const auto refuse = [&](const std::string& what) { return Status(StatusCode::kInvalidArgument, fmt::format("{}: {}", caller_of(images), what)); };
  if (options.output > EncoderOutput::kAttention) return refuse(fmt::format("output is {}, which is none", static_cast<unsigned>(options.output)));
  if (options.pooling > Pooling::kLast) return refuse(fmt::format("pooling is {}, which is none", static_cast<unsigned>(options.pooling)));
  if (options.max_batch < 1 || options.max_batch > kMostBatch) return refuse(fmt::format("max_batch is {} but must be in [1, {}]", options.max_batch, kMostBatch));
  if (options.normalize && options.output != EncoderOutput::kVector) return refuse("normalize is for vectors alone");
  const RoleSpec& spec = *network.find(role);
  if (options.output == EncoderOutput::kAttention && options.attention_layer >= spec.n_layers) {
    return refuse(fmt::format("attention_layer is {} but {} has layers from 0 to {}{}", options.attention_layer, network.facts.architecture, spec.n_layers - 1, network.facts.source_context > 0 ? " in its encoder" : ""));
  }
  if (!(options.max_segment_us > 0)) return refuse("max_segment_us must be positive");
  const std::uint32_t most = std::max(network.facts.context, network.facts.source_context);
  if (!images && options.max_tokens > most) return refuse(fmt::format("max_tokens is {} but {} was made for {}", options.max_tokens, network.facts.architecture, most));
  return {};
}

}  // namespace

Result<std::unique_ptr<EncoderState>> EncoderState::create(std::shared_ptr<const LoadedModel> model, const EncoderOptions& options, bool images) {
  const Network& network = model->network();
  RONDO_ASSIGN(const Role role, role_of(network, options, images));
  RONDO_TRY(check_options(network, options, role, images));
  const runtime::DeviceCaps& caps = model->device.caps();
  const std::uint32_t max_tokens = images ? network.facts.image_rows : options.max_tokens ? options.max_tokens : default_text(network);
  const std::vector<StepKind> kinds = encoder_kinds(network, caps, role, options.max_batch, max_tokens);
  RONDO_ASSIGN(SessionPlan planned, plan_encoder(network, model->weights, caps, model->options, {options.max_batch, max_tokens, options.pooling, options.normalize, options.attention_layer}, kinds));
  auto plan = std::make_shared<const SessionPlan>(std::move(planned));
  RONDO_ASSIGN(PlanBuffers buffers, PlanBuffers::create(model, plan));
  std::unique_ptr<EncoderState> state(new EncoderState(std::move(model), std::move(plan), std::move(buffers), options, role));
  RONDO_TRY(state->prepare(options));
  return state;
}

EncoderState::EncoderState(std::shared_ptr<const LoadedModel> model, std::shared_ptr<const SessionPlan> plan, PlanBuffers buffers, const EncoderOptions& options, Role role)
    : model_(std::move(model)), device_(&model_->device), plan_(std::move(plan)), buffers_(std::move(buffers)), role_(role), spec_(model_->network().find(role)), pooling_(options.pooling), profiles_(options.profile) {
  statistics_.activation_bytes = plan_->memory.activation_bytes;
}

Status EncoderState::prepare(const EncoderOptions& options) {
  const std::vector<const runtime::Buffer*> table = buffers_.table();
  for (const PlannedStep& planned : plan_->steps) {
    Step step{planned.kind, &planned.lowered.program, {}, {}};
    if (profiles_) {
      RONDO_ASSIGN(step.timestamps, runtime::TimestampPool::create(*device_, static_cast<std::uint32_t>(step.program->dispatches.size())));
    }
    const std::vector<runtime::Segment> segments = graph::cut_segments(*step.program, device_->caps(), options.max_segment_us * 1000);
    RONDO_ASSIGN(step.recording, runtime::Recording::create(*device_, *step.program, segments, table, profiles_ ? &step.timestamps : nullptr));
    steps_.push_back(std::move(step));
  }
  const std::uint64_t input_bytes = plan_->memory.slots[plan_->places.source_state.buffer].size_bytes;
  for (std::size_t i = 0; i < kSlots; ++i) {
    Slot& slot = slots_.emplace_back(Slot{{}, {}, runtime::CommandList(*device_), runtime::CommandList(*device_), false, 0, 0, {}, VK_NULL_HANDLE, VK_NULL_HANDLE});
    RONDO_ASSIGN(slot.upload, runtime::Buffer::create(*device_, input_bytes, runtime::MemoryIntent::kUpload, "encoder inputs"));
    RONDO_ASSIGN(slot.readback, runtime::Buffer::create(*device_, plan_->memory.slots[plan_->output_slot].size_bytes, runtime::MemoryIntent::kReadback, "encodings"));
  }
  // What a kernel may read before it is written is finite.
  runtime::CommandList list(*device_);
  RONDO_TRY(list.begin());
  list.fill(buffers_.slot(plan_->activation_slot), 0);
  list.fill(buffers_.slot(plan_->places.source_state.buffer), 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  return device_->submit({&batch, 1}).status();
}

std::vector<const runtime::Program*> EncoderState::programs() const {
  std::vector<const runtime::Program*> all;
  for (const Step& step : steps_) all.push_back(step.program);
  return all;
}

void EncoderState::add(Input input) {
  input.ticket = first_ticket_ + results_.size();
  results_.emplace_back();
  waiting_.push_back(std::move(input));
}

void EncoderState::forget_all() {
  waiting_.clear();
  results_.clear();
}

Status EncoderState::append(std::span<const std::int32_t> tokens, std::span<const std::int32_t> types) {
  const NetworkFacts& facts = model_->network().facts;
  const auto refuse = [](const std::string& what) { return Status(StatusCode::kInvalidArgument, "encoder: " + what); };
  if (tokens.empty()) return refuse("a text has no tokens");
  if (tokens.size() > max_tokens()) return refuse(fmt::format("a text has {} tokens but at most {} fit (EncoderOptions::max_tokens)", tokens.size(), max_tokens()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) >= facts.n_vocab) return refuse(fmt::format("token {} is {} but ids go from 0 to {}", i, tokens[i], facts.n_vocab - 1));
  }
  if (!types.empty() && types.size() != tokens.size()) return refuse(fmt::format("{} types are given for {} tokens", types.size(), tokens.size()));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] >= 0 && static_cast<std::uint32_t>(types[i]) < std::max(facts.n_token_types, 1u)) continue;
    return refuse(fmt::format("type {} is {} but the model has {}", i, types[i], facts.n_token_types == 0 ? "none but 0" : fmt::format("types from 0 to {}", facts.n_token_types - 1)));
  }
  if (role_ == Role::kPool) {
    const Result<std::span<const std::int32_t>> text = model_->network().until_end(tokens);
    if (!text.ok()) return text.status().with_prefix("encoder");
    tokens = *text;
    if (!types.empty()) types = types.first(tokens.size());
  }
  Input input;
  input.tokens.assign(tokens.begin(), tokens.end());
  input.types.assign(types.begin(), types.end());
  input.n_rows = static_cast<std::int64_t>(tokens.size());
  add(std::move(input));
  return {};
}

Status EncoderState::append(std::span<const float> pixels) {
  const ImageShape& image = model_->network().facts.image;
  if (pixels.size() != image.n_values()) {
    return Status(StatusCode::kInvalidArgument, fmt::format("image encoder: an image has {} numbers but the model takes ({}, {}, {})", pixels.size(), image.channels, image.height, image.width));
  }
  Input input;
  input.pixels.assign(pixels.begin(), pixels.end());
  input.n_rows = model_->network().facts.image_rows;
  add(std::move(input));
  return {};
}

std::int64_t EncoderState::rows_for(std::int64_t n_rows) const {
  return std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) { return step.kind.rows >= n_rows; })->kind.rows;
}

/// Starts a run of those that wait, if there are any and a slot is free: the one that waits longest, and others of its length.
Result<bool> EncoderState::begin_run() {
  const auto slot = std::find_if(slots_.begin(), slots_.end(), [](const Slot& each) { return !each.busy; });
  if (waiting_.empty() || slot == slots_.end() || (profiles_ && std::any_of(slots_.begin(), slots_.end(), [](const Slot& each) { return each.busy; }))) return false;
  const std::int64_t rows = rows_for(waiting_.front().n_rows);
  const auto is_of_these = [&](const Step& step) { return step.kind.rows == rows; };
  const auto first = std::find_if(steps_.begin(), steps_.end(), is_of_these);
  const auto largest = std::find_if(steps_.rbegin(), steps_.rend(), is_of_these);
  const auto most = static_cast<std::size_t>(largest->kind.n_texts);
  slot->inputs.clear();
  constexpr std::size_t kLook = 256;  // so far ahead
  for (std::size_t i = 0, looked = 0; i < waiting_.size() && looked < kLook && slot->inputs.size() < most; ++looked) {
    if (rows_for(waiting_[i].n_rows) != rows) {
      ++i;
      continue;
    }
    slot->inputs.push_back(std::move(waiting_[i]));
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  slot->step = static_cast<std::size_t>((slot->inputs.size() == 1 ? first : std::prev(largest.base())) - steps_.begin());
  slot->next_segment = 0;
  if (Status staged = stage(*slot); !staged.ok()) {
    while (!slot->inputs.empty()) {
      waiting_.push_front(std::move(slot->inputs.back()));
      slot->inputs.pop_back();
    }
    return staged;
  }
  slot->busy = true;
  unfinished_ = static_cast<std::size_t>(slot - slots_.begin());
  return true;
}

/// Puts a run's inputs into its host memory, and records its copies.
Status EncoderState::stage(Slot& slot) {
  const Step& step = steps_[slot.step];
  const StepPlaces& places = plan_->places;
  const auto texts = static_cast<std::uint64_t>(step.kind.n_texts), rows = static_cast<std::uint64_t>(step.kind.rows);
  std::byte* const bytes = slot.upload.mapped();
  const auto put = [&](const runtime::BufferRange& place, std::uint64_t offset_bytes, const auto& values) {
    if (!values.empty()) std::memcpy(bytes + place.offset_bytes + offset_bytes, values.data(), values.size() * sizeof values[0]);
  };
  const bool has_types = places.source_types.size_bytes > 0;
  std::vector<std::int32_t> state(texts * RONDO_STATE_WORDS), zeros(rows);
  for (std::size_t i = 0; i < slot.inputs.size(); ++i) {
    const Input& input = slot.inputs[i];
    state[i * RONDO_STATE_WORDS + RONDO_STATE_COUNT] = static_cast<std::int32_t>(input.n_rows);
    state[i * RONDO_STATE_WORDS + RONDO_STATE_ACTIVE] = 1;
    put(places.source_tokens, i * rows * 4, input.tokens);
    if (has_types) put(places.source_types, i * rows * 4, zeros);
    if (has_types) put(places.source_types, i * rows * 4, input.types);
    put(places.pixels, i * input.pixels.size() * 4, input.pixels);
  }
  put(places.source_state, 0, state);
  const bool images = takes_images(role_);
  const std::uint64_t image_bytes = 4 * model_->network().facts.image.n_values();
  const std::pair<const runtime::BufferRange*, std::uint64_t> copied[] = {
      {&places.source_state, state.size() * 4}, {&places.source_tokens, images ? 0 : texts * rows * 4}, {&places.source_types, has_types && !images ? texts * rows * 4 : 0}, {&places.pixels, images ? slot.inputs.size() * image_bytes : 0}};
  RONDO_TRY(slot.upload.flush(0, slot.upload.size_bytes()));
  RONDO_TRY(slot.before.begin());
  for (const auto& [place, size_bytes] : copied) {
    if (size_bytes > 0) slot.before.copy(slot.upload, place->offset_bytes, buffers_.slot(place->buffer), place->offset_bytes, size_bytes);
  }
  RONDO_ASSIGN(slot.before_commands, slot.before.end());
  RONDO_TRY(slot.after.begin());
  slot.after.copy(buffers_.slot(plan_->output_slot), 0, slot.readback, 0, 4 * slot.inputs.size() * static_cast<std::uint64_t>(spec_->n_values(step.kind.rows, pooling_)));
  RONDO_ASSIGN(slot.after_commands, slot.after.end());
  return {};
}

Status EncoderState::submit_segment(std::size_t index) {
  Slot& slot = slots_[index];
  const Step& step = steps_[slot.step];
  const std::span<const VkCommandBuffer> segments = step.recording.command_buffers();
  std::array<VkCommandBuffer, 3> commands{};
  std::size_t n = 0;
  if (slot.next_segment == 0) commands[n++] = slot.before_commands;
  commands[n++] = segments[slot.next_segment];
  const bool last = slot.next_segment + 1 == segments.size();
  if (last) commands[n++] = slot.after_commands;
  const runtime::Batch batch{std::span<const VkCommandBuffer>(commands).first(n)};
  RONDO_ASSIGN(const std::uint64_t value, device_->submit({&batch, 1}));
  in_flight_.push_back({value, index, last});
  ++slot.next_segment;
  if (!last) return {};
  unfinished_.reset();
  ++statistics_.n_steps;
  statistics_.n_inputs += slot.inputs.size();
  statistics_.n_dispatches += step.recording.n_dispatches();
  return {};
}

Encoding EncoderState::read_encoding(const Slot& slot, std::size_t index, std::int64_t rows) const {
  const auto n_values = static_cast<std::size_t>(spec_->n_values(rows, pooling_)), n = static_cast<std::size_t>(slot.inputs[index].n_rows);
  const std::byte* const from = slot.readback.mapped() + 4 * index * n_values;
  // Of attention the own part (n, n) of each head's (rows, rows), else the first rows.
  const bool attention = spec_->n_heads > 0;
  const std::size_t width = attention ? n : static_cast<std::size_t>(spec_->width(pooling_)), n_rows = attention ? spec_->n_heads * n : spec_->of_text ? 1 : n;
  const std::size_t stride = attention ? static_cast<std::size_t>(rows) : width;
  Encoding encoding{static_cast<std::uint32_t>(n_rows), static_cast<std::uint32_t>(width), std::vector<float>(n_rows * width)};
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::size_t at = attention ? row / n * stride + row % n : row;
    std::memcpy(encoding.values.data() + row * width, from + 4 * at * stride, 4 * width);
  }
  return encoding;
}

/// Takes what a run has left, and frees its slot.
Status EncoderState::finish(Slot& slot) {
  const Step& step = steps_[slot.step];
  RONDO_TRY(slot.readback.invalidate(0, slot.readback.size_bytes()));
  if (profiles_) {
    RONDO_ASSIGN(const std::vector<double> times, step.timestamps.read());
    ProfiledStep& profiled = profile_.emplace_back(ProfiledStep{step.program->name, {}});
    for (std::size_t i = 0; i + 1 < times.size(); ++i) profiled.dispatches.push_back({step.program->dispatches[i].label, 1e-3 * times[i], 1e-3 * times[i + 1]});
  }
  for (std::size_t i = 0; i < slot.inputs.size(); ++i) {
    results_[slot.inputs[i].ticket - first_ticket_] = read_encoding(slot, i, step.kind.rows);
  }
  slot.inputs.clear();
  slot.busy = false;
  return {};
}

Status EncoderState::poll() {
  if (in_flight_.empty()) return device_->check_lost();
  RONDO_ASSIGN(const std::uint64_t done, device_->completed_value());
  while (!in_flight_.empty() && in_flight_.front().value <= done) {
    const Segment segment = in_flight_.front();
    if (segment.last) RONDO_TRY(finish(slots_[segment.slot]));  // else it is told again
    in_flight_.pop_front();
  }
  return {};
}

Status EncoderState::advance() {
  RONDO_TRY(poll());
  while (in_flight_.size() < kMostInFlight) {
    if (!unfinished_) {
      RONDO_ASSIGN(const bool begun, begin_run());
      if (!begun) break;
    }
    RONDO_TRY(submit_segment(*unfinished_));
  }
  return {};
}

Status EncoderState::wait(std::uint64_t timeout_ns) {
  RONDO_TRY(poll());
  if (!results_.empty() && results_.front()) return {};
  const bool has_slot = std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.busy; });
  if (in_flight_.size() < kMostInFlight && (unfinished_ || (!waiting_.empty() && has_slot && !profiles_))) return {};
  if (in_flight_.empty()) return waiting_.empty() ? Status(StatusCode::kTimeout, "encoder: idle") : Status();
  RONDO_TRY(device_->wait(in_flight_.front().value, timeout_ns));
  return poll();
}

Result<bool> EncoderState::take(Encoding& encoding) {
  if (results_.empty()) return false;
  if (!results_.front()) RONDO_TRY(poll());
  if (!results_.front()) return false;
  encoding = std::move(*results_.front());
  results_.pop_front();
  ++first_ticket_;
  return true;
}

}  // namespace rondo::models

namespace rondo {

namespace {

using models::EncoderState;

Status moved_from(const char* what) { return Status(StatusCode::kFailedPrecondition, std::string(what) + ": it was moved from"); }

Result<std::unique_ptr<EncoderState>> create_state(const Model& model, const EncoderOptions& options, bool images) {
  if (!model.internal()) return Status(StatusCode::kFailedPrecondition, "encoder: its Model is empty; it was moved from");
  RONDO_ASSIGN(std::shared_ptr<const models::LoadedModel> loaded, model.internal()->loaded());
  return EncoderState::create(std::move(loaded), options, images);
}

Status wait_for(EncoderState* state, std::chrono::nanoseconds timeout) { return state ? state->wait(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count())) : moved_from("encoder"); }

Result<bool> take_from(EncoderState* state, Encoding& encoding) {
  if (!state) return moved_from("encoder");
  return state->take(encoding);
}

const EncoderStatistics& statistics_of(const EncoderState* state) {
  static const EncoderStatistics kNone;
  return state ? state->statistics() : kNone;
}

template <typename Text, typename Append>
Result<std::vector<Encoding>> encode_all(EncoderState& state, std::span<const Text> texts, const Append& append) {
  if (!state.idle()) return Status(StatusCode::kFailedPrecondition, "encoder: encode while inputs are not taken; take them first");
  return models::append_and_take_all<Encoding>(state, texts, append);
}

}  // namespace

Encoder::Encoder(std::unique_ptr<EncoderState> impl) : impl_(std::move(impl)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Result<Encoder> Encoder::create(const Model& model, const EncoderOptions& options) {
  RONDO_ASSIGN(std::unique_ptr<EncoderState> impl, create_state(model, options, false));
  return Encoder(std::move(impl));
}

Status Encoder::append(std::span<const std::int32_t> tokens, std::span<const std::int32_t> types) { return impl_ ? impl_->append(tokens, types) : moved_from("encoder"); }

Status Encoder::append(std::string_view text) {
  if (!impl_) return moved_from("encoder");
  const Tokenizer& tokenizer = impl_->model().tokenizer;
  if (tokenizer.n_vocab() == 0) return Status(StatusCode::kFailedPrecondition, fmt::format("encoder: {} has no tokenizer; give it tokens", impl_->model().checkpoint->file.name()));
  return impl_->append(tokenizer.encode(text), {});
}

Status Encoder::advance() { return impl_ ? impl_->advance() : moved_from("encoder"); }
Status Encoder::wait(std::chrono::nanoseconds timeout) { return wait_for(impl_.get(), timeout); }
Result<bool> Encoder::take(Encoding& encoding) { return take_from(impl_.get(), encoding); }
bool Encoder::idle() const { return !impl_ || impl_->idle(); }
const EncoderStatistics& Encoder::statistics() const { return statistics_of(impl_.get()); }
std::vector<ProfiledStep> Encoder::take_profile() { return impl_ ? impl_->take_profile() : std::vector<ProfiledStep>(); }

Result<std::vector<Encoding>> Encoder::encode(std::span<const std::vector<std::int32_t>> texts) {
  return impl_ ? encode_all(*impl_, texts, [this](const std::vector<std::int32_t>& text) { return append(std::span<const std::int32_t>(text)); }) : moved_from("encoder");
}

Result<std::vector<Encoding>> Encoder::encode(std::span<const std::string_view> texts) {
  return impl_ ? encode_all(*impl_, texts, [this](std::string_view text) { return append(text); }) : moved_from("encoder");
}

ImageEncoder::ImageEncoder(std::unique_ptr<EncoderState> impl) : impl_(std::move(impl)) {}
ImageEncoder::ImageEncoder(ImageEncoder&&) noexcept = default;
ImageEncoder& ImageEncoder::operator=(ImageEncoder&&) noexcept = default;
ImageEncoder::~ImageEncoder() = default;

Result<ImageEncoder> ImageEncoder::create(const Model& model, const EncoderOptions& options) {
  RONDO_ASSIGN(std::unique_ptr<EncoderState> impl, create_state(model, options, true));
  return ImageEncoder(std::move(impl));
}

ImageShape ImageEncoder::shape() const { return impl_ ? impl_->model().network().facts.image : ImageShape(); }

Status ImageEncoder::append(std::span<const float> pixels) { return impl_ ? impl_->append(pixels) : moved_from("image encoder"); }

Status ImageEncoder::append_rgb(std::span<const std::byte> rgb) {
  if (!impl_) return moved_from("image encoder");
  const ImageShape takes = shape();
  const std::uint64_t n_bytes = std::uint64_t{3} * takes.width * takes.height;
  if (rgb.size() != n_bytes) return Status(StatusCode::kInvalidArgument, fmt::format("image encoder: {} bytes are given but {} x {} pixels have {}", rgb.size(), takes.width, takes.height, n_bytes));
  RONDO_ASSIGN(const std::vector<float> pixels, models::to_numbers({takes.width, takes.height, rgb}, takes, impl_->model().network().image_preprocessing));
  return impl_->append(pixels);
}

Status ImageEncoder::append_image(std::span<const std::byte> rgb, std::uint32_t width, std::uint32_t height) {
  if (!impl_) return moved_from("image encoder");
  RONDO_ASSIGN(const std::vector<float> pixels, models::preprocess({width, height, rgb}, shape(), impl_->model().network().image_preprocessing));
  return impl_->append(pixels);
}

Status ImageEncoder::advance() { return impl_ ? impl_->advance() : moved_from("image encoder"); }
Status ImageEncoder::wait(std::chrono::nanoseconds timeout) { return wait_for(impl_.get(), timeout); }
Result<bool> ImageEncoder::take(Encoding& encoding) { return take_from(impl_.get(), encoding); }
bool ImageEncoder::idle() const { return !impl_ || impl_->idle(); }
const EncoderStatistics& ImageEncoder::statistics() const { return statistics_of(impl_.get()); }
std::vector<ProfiledStep> ImageEncoder::take_profile() { return impl_ ? impl_->take_profile() : std::vector<ProfiledStep>(); }

}  // namespace rondo
