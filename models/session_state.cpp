// Running a session: what to submit next, and what came back.
#include "models/session_state.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

/// Most predicted time of one call, and of one call with `burst` left to us.
constexpr double kMaxCallNs = 100e6, kAutoBurstNs = 25e6;
constexpr std::uint32_t kMaxAutoBurst = 16;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

}  // namespace

Status SessionState::check_tokens(std::span<const std::int32_t> tokens) const {
  const auto n_vocab = static_cast<std::int32_t>(model_->info.n_vocab);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < n_vocab) continue;
    return Status(StatusCode::kInvalidArgument, fmt::format("session: token {} is {} but ids go from 0 to {}", i, tokens[i], n_vocab - 1));
  }
  if (history_.size() + tokens.size() > n_ctx_) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {} tokens of input after {} exceed the context of {}", tokens.size(), history_.size(), n_ctx_));
  }
  return {};
}

Status SessionState::append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens) {
  if (stop_ == StopReason::kNone && (n_expected_ > 0 || current_.step || n_calls_ > 0)) {
    RONDO_TRY(poll());
    if (n_expected_ > 0 || current_.step) {
      return Status(StatusCode::kFailedPrecondition, "session: append while tokens are still to come; take them, cancel or rewind first");
    }
  }
  RONDO_TRY(check_tokens(tokens));
  if (tokens.empty() && max_new_tokens > 0 && history_.size() <= position_) {
    return Status(StatusCode::kInvalidArgument, "session: there is no token to continue from; append at least one");
  }
  cancelled_ = false;
  stop_ = StopReason::kNone;
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  tokens_planned_ = tokens_seen_ = 0;
  tokens_wanted_ = max_new_tokens;
  // One token in the token array and the step state as it is: the decode step itself continues.
  decoding_ = tokens.empty() && !state_is_stale_ && history_.size() == planned_position_ + 1 && n_staged_ == history_.size();
  return {};
}

bool SessionState::choose_next_step(CurrentStep& next) {
  if (stop_ != StopReason::kNone || cancelled_) return false;
  if (decoding_) {
    if (tokens_planned_ >= tokens_wanted_ || planned_position_ + 1 >= n_ctx_) return false;
    next = {&decode_, 0, 1, true};
    return true;
  }
  const auto left = static_cast<std::uint32_t>(history_.size()) - planned_position_;
  if (left == 0) return false;
  const bool last = left <= static_cast<std::uint32_t>(prefill_.back().kind.rows);
  const bool samples = last && tokens_wanted_ > 0;
  for (std::size_t i = 0; i < prefill_.size(); ++i) {
    const auto rows = static_cast<std::uint32_t>(prefill_[i].kind.rows);
    if (left > rows && i + 1 < prefill_.size()) continue;
    next = {samples ? &prefill_and_sample_[i] : &prefill_[i], 0, std::min(left, rows), samples};
    break;
  }
  return true;
}

/// Commands that put a chunk's tokens and count into the step state, in queue order before its step.
Status SessionState::stage_chunk(const CurrentStep& step, VkCommandBuffer& commands) {
  RONDO_ASSIGN(const std::uint64_t done, device_.completed_value());
  auto slot = std::find_if(staging_lists_.begin(), staging_lists_.end(), [done](const auto& entry) { return entry.first <= done; });
  if (slot == staging_lists_.end()) slot = staging_lists_.emplace(staging_lists_.end(), 0, runtime::CommandList(device_));
  runtime::CommandList& list = slot->second;
  RONDO_TRY(list.begin());
  const std::uint32_t end = planned_position_ + step.count;
  if (end > n_staged_) {
    list.update(tokens_, std::uint64_t{n_staged_} * 4, std::as_bytes(std::span(history_).subspan(n_staged_, end - n_staged_)));
    n_staged_ = end;
  }
  const std::int32_t words[] = {static_cast<std::int32_t>(planned_position_), static_cast<std::int32_t>(step.count), 1};
  static_assert(RONDO_STATE_POSITION == 0 && RONDO_STATE_COUNT == 1 && RONDO_STATE_ACTIVE == 2);
  list.update(state_, 0, std::as_bytes(std::span(words)));
  RONDO_ASSIGN(commands, list.end());
  slot->first = ~std::uint64_t{0};  // in use until its submission says when it is done
  return {};
}

std::uint32_t SessionState::burst_limit() const {
  if (options_.profile) return 1;  // a step's times are read before the next overwrites them
  if (options_.burst) return options_.burst;
  const double step_ns = std::max(decode_.recording.cost_ns() * observed_ratio_, 1.0);
  return std::clamp(static_cast<std::uint32_t>(std::min(kAutoBurstNs / step_ns, 1e6)), 1u, kMaxAutoBurst);
}

/// Segments of the current step, from its next one on, that fit into the call: at least one where the call is empty.
std::size_t SessionState::fit_segments(const CallBuilder& call, double& cost_ns) const {
  const std::span<const runtime::Segment> segments = current_.step->recording.segments();
  std::size_t n = 0;
  cost_ns = 0;
  while (current_.next_segment + n < segments.size()) {
    const double next_ns = segments[current_.next_segment + n].cost_ns * observed_ratio_;
    if (call.n + n > 0 && call.predicted_ns + cost_ns + next_ns > kMaxCallNs) break;
    cost_ns += next_ns;
    ++n;
  }
  return n;
}

/// Adds what fits of the current or the next step. False: the call is full, or there is nothing more to do.
Result<bool> SessionState::add_step(CallBuilder& call, std::uint32_t burst) {
  const bool fresh = !current_.step || cancelled_;
  if (fresh && !choose_next_step(current_)) {
    current_ = {};
    return false;
  }
  const bool is_decode = current_.step == &decode_;
  double cost_ns = 0;
  const std::size_t n_segments = fit_segments(call, cost_ns);
  // A chunk of input begins a call of its own: its staging list is tied to it.
  const bool alone = !is_decode || options_.profile;
  const bool must_wait = n_segments == 0 || (fresh && (alone ? call.n > 0 : call.n_decode >= burst));
  if (must_wait) {
    if (fresh) current_ = {};
    return false;
  }
  if (fresh && !is_decode) {
    RONDO_TRY(stage_chunk(current_, call.staged));
    call.add({std::span<const VkCommandBuffer>(&call.staged, 1)}, -1);
    state_is_stale_ = false;
  }
  const runtime::Recording& recording = current_.step->recording;
  const std::span<const VkCommandBuffer> commands = recording.command_buffers().subspan(current_.next_segment, n_segments);
  current_.next_segment += n_segments;
  call.predicted_ns += cost_ns;
  call.n_decode += is_decode ? 1 : 0;
  const bool complete = current_.next_segment == recording.segments().size();
  call.add({commands}, complete && current_.samples ? std::int64_t{planned_position_} + current_.count : -1);
  if (!complete) return false;

  if (options_.profile) profiled_ = current_.step;
  planned_position_ += current_.count;
  ++statistics_.n_steps;
  statistics_.n_dispatches += recording.n_dispatches();
  if (current_.samples) {
    ++tokens_planned_;
    decoding_ = true;
  }
  current_ = {};
  return is_decode;
}

Status SessionState::advance() {
  if (!just_polled_) RONDO_TRY(poll());
  just_polled_ = false;
  const std::size_t most_calls = options_.profile ? 1 : calls_.size();
  while (n_calls_ < most_calls) {
    CallBuilder call;
    const std::uint32_t burst = burst_limit();
    bool more = true;
    while (more && call.n < call.batches.size() && n_expected_ + call.n < expected_.size()) {
      RONDO_ASSIGN(more, add_step(call, burst));
    }
    if (call.n == 0) break;
    RONDO_TRY(submit_call(call));
  }
  return {};
}

Status SessionState::submit_call(CallBuilder& call) {
  RONDO_ASSIGN(const std::uint64_t last, device_.submit({call.batches.data(), call.n}));
  ++statistics_.n_submissions;
  const std::uint64_t first = last + 1 - call.n;
  for (std::size_t i = 0; i < call.n; ++i) {
    if (call.token_index[i] < 0 || call.token_index[i] >= n_ctx_) continue;
    expected_[(expected_head_ + n_expected_++) % expected_.size()] = {first + i, static_cast<std::uint32_t>(call.token_index[i])};
  }
  for (auto& [value, list] : staging_lists_) {
    if (value == ~std::uint64_t{0}) value = last;
  }
  calls_[n_calls_++] = {last, call.predicted_ns, now_ns()};
  return {};
}

/// Learns how far off the prediction is. Times between completions count only while the device had work all along.
void SessionState::observe(const Call& call) {
  const std::uint64_t now = now_ns();
  const double took = static_cast<double>(now - std::max(call.submitted_at_ns, last_done_ns_));
  last_done_ns_ = now;
  if (call.predicted_ns <= 0) return;
  const double ratio = std::clamp(observed_ratio_ * took / call.predicted_ns, 1.0 / 64, 64.0);
  // Faster: believe it slowly. Slower: at once, a watchdog may be waiting.
  observed_ratio_ = ratio > observed_ratio_ ? ratio : 0.75 * observed_ratio_ + 0.25 * ratio;
}

Status SessionState::read_profile() {
  RONDO_ASSIGN(const std::vector<double> times, profiled_->timestamps.read());
  ProfiledStep step{profiled_->program.name, {}};
  for (std::size_t i = 0; i + 1 < times.size(); ++i) step.dispatches.push_back({profiled_->program.dispatches[i].label, 1e-3 * times[i], 1e-3 * times[i + 1]});
  profile_.push_back(std::move(step));
  profiled_ = nullptr;
  return {};
}

void SessionState::finish(StopReason reason) {
  stop_ = reason;
  n_expected_ = 0;
  current_ = {};
  // Steps already submitted beyond the end find `active` cleared (stop id, full context) or were never submitted.
  planned_position_ = position_;
  n_staged_ = std::min(n_staged_, position_);
  state_is_stale_ = true;
  decoding_ = false;
}

Status SessionState::poll() {
  if (n_calls_ == 0 && stop_ != StopReason::kNone) return device_.check_lost();
  RONDO_ASSIGN(const std::uint64_t done, device_.completed_value());
  while (n_calls_ > 0 && calls_[0].value <= done) {
    observe(calls_[0]);
    calls_[0] = calls_[1];
    --n_calls_;
    if (profiled_) RONDO_TRY(read_profile());
  }
  while (n_expected_ > 0 && expected_[expected_head_].value <= done) {
    const std::uint32_t index = expected_[expected_head_].index;
    expected_head_ = (expected_head_ + 1) % expected_.size();
    --n_expected_;
    RONDO_TRY(mirror_.invalidate(std::uint64_t{index} * 4, 4));
    std::int32_t id = 0;
    std::memcpy(&id, mirror_.mapped() + std::uint64_t{index} * 4, 4);
    position_ = index;
    if (std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end()) {
      finish(StopReason::kStopId);
      break;
    }
    history_.push_back(id);
    n_staged_ = std::max(n_staged_, index + 1);
    ready_.push_back(id);
    ++tokens_seen_;
    if (index + 1 >= n_ctx_) {
      finish(StopReason::kContext);
      break;
    }
  }
  if (stop_ != StopReason::kNone || n_calls_ > 0 || n_expected_ > 0) return {};
  // Everything submitted is done and seen.
  if (cancelled_) {
    position_ = planned_position_;
    history_.resize(std::min<std::size_t>(history_.size(), std::size_t{position_} + (tokens_seen_ > 0 ? 1 : 0)));
    finish(StopReason::kCancelled);
  } else if (!current_.step) {
    position_ = planned_position_;
    const bool input_done = decoding_ || history_.size() == position_;
    if (input_done && tokens_seen_ >= tokens_wanted_) stop_ = StopReason::kLength;
    else if (position_ >= n_ctx_) finish(StopReason::kContext);
  }
  return {};
}

Result<std::size_t> SessionState::take_tokens(std::span<std::int32_t> out) {
  if (ready_head_ == ready_.size()) RONDO_TRY(poll());
  const std::size_t n = std::min(out.size(), ready_.size() - ready_head_);
  std::copy_n(ready_.begin() + static_cast<std::ptrdiff_t>(ready_head_), n, out.begin());
  ready_head_ += n;
  if (ready_head_ == ready_.size()) {
    ready_.clear();
    ready_head_ = 0;
  }
  return n;
}

Status SessionState::wait(std::uint64_t timeout_ns) {
  if (ready_head_ < ready_.size()) return {};
  if (n_calls_ > 0 || n_expected_ > 0) {
    std::uint64_t value = n_calls_ > 0 ? calls_[0].value : ~std::uint64_t{0};
    if (n_expected_ > 0) value = std::min(value, expected_[expected_head_].value);
    RONDO_TRY(device_.wait(value, timeout_ns));
    RONDO_TRY(poll());
    just_polled_ = true;
  }
  if (stop_ == StopReason::kCancelled && ready_head_ == ready_.size()) return Status(StatusCode::kCancelled, "session: cancelled");
  return {};
}

bool SessionState::idle() const {
  return ready_head_ == ready_.size() && n_expected_ == 0 && !current_.step && (stop_ != StopReason::kNone || (history_.empty() && n_calls_ == 0));
}

Status SessionState::rewind(std::uint32_t position) {
  RONDO_TRY(poll());
  if (position > position_) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: rewind to {} but only {} tokens are in the cache", position, position_));
  }
  // Steps in flight end before anything staged later begins; what they write lies at or after `position_`.
  history_.resize(position);
  ready_.clear();
  ready_head_ = 0;
  position_ = position;
  finish(StopReason::kLength);
  return {};
}

Status SessionState::pretend_depth(std::uint32_t position) {
  if (position >= n_ctx_) return Status(StatusCode::kInvalidArgument, fmt::format("session: a depth of {} does not fit the context of {}", position, n_ctx_));
  RONDO_TRY(rewind(0));
  runtime::CommandList list(device_);
  RONDO_TRY(list.begin());
  // All equal and small: 0.1 as f32, or twice as f16; of q8_0 quants of 28 and scales of 0.004.
  const std::uint32_t pattern = places_.kv_type == graph::Type::kQ8_0 ? 0x1c1c1c1cu : places_.kv_type == graph::Type::kF16 ? 0x2e662e66u : 0x3dcccccdu;
  for (const runtime::Buffer& cache : caches_) list.fill(cache, pattern);
  list.fill(tokens_, 0);
  RONDO_ASSIGN(const VkCommandBuffer commands, list.end());
  const runtime::Batch batch{{&commands, 1}};
  RONDO_ASSIGN(const std::uint64_t value, device_.submit({&batch, 1}));
  staging_lists_.emplace_back(value, std::move(list));
  history_.assign(position, 0);
  planned_position_ = position_ = n_staged_ = position;
  return {};
}

Status SessionState::record_logits_step() {
  const Checkpoint& checkpoint = *model_->checkpoint;
  const StepKind kind = logits_step_kind(checkpoint.config, device_.caps());
  const std::uint64_t logits_bytes = std::uint64_t{4} * static_cast<std::uint64_t>(kind.rows) * model_->info.n_vocab;
  RONDO_ASSIGN(logits_, runtime::Buffer::create(device_, logits_bytes, runtime::MemoryIntent::kDevice, "logits"));
  places_.logits = {kLogitsBuffer, 0, logits_bytes};
  std::vector<graph::Graph> graphs;
  graphs.push_back(build_llama_step(checkpoint.config, checkpoint.weights, checkpoint.blocks, places_, kind.rows, kind.head));
  RONDO_TRY(graphs[0].status());
  RONDO_TRY(find_constants(graphs[0]));
  RONDO_ASSIGN(graph::Lowered lowered, graph::lower(graphs[0], device_.caps(), model_->lowering_options()));
  RONDO_ASSIGN(logits_activations_, runtime::Buffer::create(device_, lowered.activation_bytes, runtime::MemoryIntent::kDevice, "activations"));
  std::vector<const runtime::Buffer*> buffers = buffer_table();
  buffers[kActivationsBuffer] = &logits_activations_;
  RONDO_ASSIGN(RecordedStep step, record_step(kind, std::move(lowered.program), buffers));
  logits_step_ = std::make_unique<RecordedStep>(std::move(step));
  return {};
}

Result<std::vector<float>> SessionState::wait_logits(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "session: there are no tokens to compute logits of");
  RONDO_TRY(append(tokens, 0));
  if (!logits_step_) RONDO_TRY(record_logits_step());
  const std::size_t n_vocab = model_->info.n_vocab;
  std::vector<float> logits;
  const auto first = static_cast<std::uint32_t>(history_.size() - tokens.size());
  while (planned_position_ < history_.size()) {
    const std::uint32_t left = static_cast<std::uint32_t>(history_.size()) - planned_position_;
    CurrentStep step{logits_step_.get(), 0, std::min(left, static_cast<std::uint32_t>(logits_step_->kind.rows)), false};
    VkCommandBuffer staged = VK_NULL_HANDLE;
    RONDO_TRY(stage_chunk(step, staged));
    const runtime::Batch staging{{&staged, 1}};
    RONDO_ASSIGN(std::uint64_t value, device_.submit({&staging, 1}));
    for (auto& [used_until, list] : staging_lists_) {
      if (used_until == ~std::uint64_t{0}) used_until = value;
    }
    // One segment a submission: each is within the bound on predicted time.
    for (const VkCommandBuffer& commands : step.step->recording.command_buffers()) {
      const runtime::Batch batch{{&commands, 1}};
      RONDO_ASSIGN(value, device_.submit({&batch, 1}));
    }
    RONDO_TRY(device_.wait(value, ~0ull));
    if (options_.profile) {
      profiled_ = logits_step_.get();
      RONDO_TRY(read_profile());
    }
    // A token that was pending before comes first in the chunk; its logits were not asked for.
    const std::uint32_t skipped = planned_position_ < first ? std::min(first - planned_position_, step.count) : 0;
    const std::size_t at = logits.size();
    logits.resize(at + (step.count - skipped) * n_vocab);
    RONDO_TRY(runtime::read_back(device_, logits_, std::uint64_t{4} * skipped * n_vocab, std::as_writable_bytes(std::span(logits).subspan(at))));
    planned_position_ += step.count;
  }
  position_ = planned_position_;
  state_is_stale_ = false;
  stop_ = StopReason::kLength;
  return logits;
}

}  // namespace rondo::models
