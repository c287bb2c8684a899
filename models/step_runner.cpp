#include "models/step_runner.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include "runtime/fmt.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// A staging list whose submission is not known yet.
constexpr std::uint64_t kNotSubmitted = ~std::uint64_t{0};

}  // namespace

/// The command buffers of a call, batch after batch; fixed size, so that decoding allocates nothing.
struct StepRunner::Commands {
  std::array<VkCommandBuffer, kMaxCallSegments + kMaxCallBatches + 2> buffers;
  std::size_t n = 0;
  std::array<runtime::Batch, kMaxCallBatches> batches;
  std::size_t n_batches = 0, batch_begin = 0;
  void add(VkCommandBuffer commands) { buffers[n++] = commands; }
  void end_batch() {
    batches[n_batches++] = {std::span<const VkCommandBuffer>(buffers).subspan(batch_begin, n - batch_begin)};
    batch_begin = n;
  }
};

StepRunner::StepRunner(runtime::Device& device, const StepSet& steps, const SessionOptions& options)
    : device_(&device), steps_(&steps), stall_(std::uint64_t{options.stall_timeout_ms} * 1'000'000), stall_timeout_s_(1e-3 * options.stall_timeout_ms) {
  policy_.burst = options.burst;
  policy_.one_step = options.profile;
  policy_.max_expected = kMaxExpected;
}

Result<StepRunner> StepRunner::create(runtime::Device& device, const StepSet& steps, const SessionOptions& options) {
  static_assert(kMaxCallBatches <= runtime::Device::kMaxBatches);
  StepRunner runner(device, steps, options);
  runner.list_steps();
  if (device.caps().timestamp_bits > 0) {
    RONDO_ASSIGN(runner.timer_, runtime::CallTimer::create(device, runner.calls_.size()));
  }
  return runner;
}

void StepRunner::list_steps() {
  recorded_.clear();
  facts_.clear();
  const auto add = [this](const RecordedStep& step) {
    recorded_.push_back(&step);
    facts_.push_back({step.kind.role, static_cast<std::uint32_t>(step.kind.rows), steps_->n_sequences(), step.recording.segments()});
  };
  for (const RecordedStep& step : steps_->prefill()) add(step);
  for (const RecordedStep& step : steps_->prefill_and_sample()) add(step);
  add(steps_->decode());
  for (const RecordedStep& step : steps_->encode()) add(step);
  if (steps_->logits_step()) add(*steps_->logits_step());
}

/// The step state of a source, its length, and its tokens.
void StepRunner::stage_source(const Sequence& sequence, const Share& share, runtime::CommandList& list) const {
  const StepPlaces& places = steps_->places();
  const std::int32_t words[] = {0, static_cast<std::int32_t>(share.count), 1};
  const auto at = [&](const runtime::BufferRange& range, std::uint64_t stride_bytes) { return range.offset_bytes + share.sequence * stride_bytes; };
  list.update(steps_->source(), at(places.source_state, RONDO_STATE_WORDS * 4), std::as_bytes(std::span(words)));
  list.update(steps_->source(), at(places.source_lengths, 4), std::as_bytes(std::span(words).subspan(1, 1)));
  // A step's ids lie as its rows do: it is of one sequence.
  list.update(steps_->source(), places.source_tokens.offset_bytes, std::as_bytes(sequence.source().first(share.count)));
}

/// Commands that put the shares of a run into the step state, in queue order before it.
Status StepRunner::stage(std::span<const Sequence> sequences, const StepRun& run, VkCommandBuffer& commands) {
  RONDO_ASSIGN(const std::uint64_t done, device_->completed_value());
  // A list whose submission failed was never in use.
  for (auto& [value, list] : staging_lists_) value = value == kNotSubmitted ? 0 : value;
  auto slot = std::find_if(staging_lists_.begin(), staging_lists_.end(), [done](const auto& entry) { return entry.first <= done; });
  if (slot == staging_lists_.end()) slot = staging_lists_.emplace(staging_lists_.end(), 0, runtime::CommandList(*device_));
  runtime::CommandList& list = slot->second;
  RONDO_TRY(list.begin());
  for (std::uint32_t i = 0; i < run.n_shares; ++i) {
    const Share& share = run.shares[i];
    const Sequence& sequence = sequences[share.sequence];
    if (facts_[run.step].role == Role::kEncode) {
      stage_source(sequence, share, list);
      continue;
    }
    const std::uint32_t begin = sequence.n_staged(), end = share.position + share.count;
    if (end > begin) {
      list.update(steps_->tokens(), (std::uint64_t{share.sequence} * sequence.n_ctx() + begin) * 4, std::as_bytes(sequence.history().subspan(begin, end - begin)));
    }
    const std::int32_t words[] = {static_cast<std::int32_t>(share.position), static_cast<std::int32_t>(share.count), 1};
    static_assert(RONDO_STATE_POSITION == 0 && RONDO_STATE_COUNT == 1 && RONDO_STATE_ACTIVE == 2);
    list.update(steps_->state(), std::uint64_t{share.sequence} * RONDO_STATE_WORDS * 4, std::as_bytes(std::span(words)));
  }
  RONDO_ASSIGN(commands, list.end());
  slot->first = kNotSubmitted;
  return {};
}

std::uint32_t StepRunner::list_demands(std::span<const Sequence> sequences, bool cancelled, std::span<Demand> demands) const {
  assert(sequences.size() <= demands.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) demands[i] = sequences[i].demand(cancelled);
  return static_cast<std::uint32_t>(sequences.size());
}

Status StepRunner::submit(std::span<Sequence> sequences, bool cancelled) {
  if (steps_->logits_step() && facts_.back().role != Role::kLogits) list_steps();
  call_ended_ = false;
  while (true) {
    std::array<Demand, kMaxSequences> demands;
    const std::uint32_t n = list_demands(sequences, cancelled, demands);
    const InFlight in_flight{static_cast<std::uint32_t>(n_calls_), n_expected_, results_state_ != ResultsState::kNone};
    const PlannedCall call = plan_call(policy_, facts_, std::span(demands).first(n), schedule_, in_flight, pacing_.ratio());
    if (call.n_batches == 0) {
      schedule_ = call.after;
      return {};
    }
    RONDO_TRY(submit_call(sequences, call));
  }
}

Status StepRunner::submit_call(std::span<Sequence> sequences, const PlannedCall& call) {
  Commands commands;
  if (!timer_.empty()) commands.add(timer_.begin_commands(next_slot_));
  for (std::size_t i = 0; i < call.n_batches; ++i) {
    const PlannedBatch& batch = call.batches[i];
    if (batch.stages) {
      VkCommandBuffer staged = VK_NULL_HANDLE;
      RONDO_TRY(stage(sequences, batch.run, staged));
      commands.add(staged);
    }
    const std::span<const VkCommandBuffer> recorded = recorded_[batch.run.step]->recording.command_buffers();
    for (const VkCommandBuffer segment : recorded.subspan(batch.first_segment, batch.n_segments)) commands.add(segment);
    if (i + 1 == call.n_batches && !timer_.empty()) commands.add(timer_.end_commands(next_slot_));
    commands.end_batch();
  }
  const std::uint64_t submitted_ns = now_ns();  // before: some drivers do the work within the call
  RONDO_ASSIGN(const std::uint64_t last, device_->submit({commands.batches.data(), commands.n_batches}));
  ++statistics_.n_submissions;
  for (auto& [value, list] : staging_lists_) value = value == kNotSubmitted ? last : value;
  Call& made = calls_[n_calls_++];
  made = {last + 1 - call.n_batches, last, call.cost_ns, submitted_ns, next_slot_, nullptr};
  next_slot_ = (next_slot_ + 1) % static_cast<std::uint32_t>(calls_.size());
  for (std::size_t i = 0; i < call.n_batches; ++i) {
    note_submitted(sequences, call.batches[i], made.first + i);
    if (policy_.one_step && call.batches[i].completes) made.profiled = recorded_[call.batches[i].run.step];
  }
  schedule_ = call.after;
  return {};
}

void StepRunner::note_submitted(std::span<Sequence> sequences, const PlannedBatch& batch, std::uint64_t value) {
  const Role role = facts_[batch.run.step].role;
  for (std::uint32_t i = 0; i < batch.run.n_shares; ++i) {
    const Share& share = batch.run.shares[i];
    busy_until_[share.sequence] = value;
    if (role == Role::kEncode) {
      if (batch.completes) sequences[share.sequence].source_submitted();
      continue;
    }
    if (batch.stages) sequences[share.sequence].staged(share);
    if (batch.completes && sequences[share.sequence].submitted(share, samples(role))) {
      expected_[(expected_head_ + n_expected_++) % expected_.size()] = {value, share.sequence, share.position + share.count};
    }
  }
  if (!batch.completes) return;
  ++statistics_.n_steps;
  statistics_.n_dispatches += recorded_[batch.run.step]->recording.n_dispatches();
  if (role == Role::kLogits) {
    results_state_ = ResultsState::kSubmitted;
    results_ = batch.run.shares[0];
    results_value_ = value;
  }
}

Status StepRunner::poll(std::span<Sequence> sequences, bool cancelled) {
  const bool all_ended = std::all_of(sequences.begin(), sequences.end(), [](const Sequence& sequence) { return sequence.ended(); });
  if (n_calls_ == 0 && all_ended) return device_->check_lost();
  RONDO_ASSIGN(const std::uint64_t done, device_->completed_value());
  done_ = done;
  while (n_calls_ > 0 && calls_[0].last <= done) {
    const Call call = calls_[0];
    calls_[0] = calls_[1];
    --n_calls_;
    RONDO_TRY(end_call(call));
  }
  RONDO_TRY(read_tokens(sequences, done));
  if (results_state_ == ResultsState::kSubmitted && results_value_ <= done) results_state_ = ResultsState::kReady;
  for (std::uint32_t i = 0; i < sequences.size(); ++i) {
    Sequence& sequence = sequences[i];
    if (sequence.ended() || busy_until_[i] > done || results_state_ == ResultsState::kReady || (awaits(i) && !cancelled)) continue;
    sequence.settle(cancelled);
    if (sequence.ended()) forget(i);
  }
  return {};
}

Status StepRunner::end_call(const Call& call) {
  call_ended_ = true;
  const std::uint64_t now = now_ns();
  const bool blocked = blocked_for_ == call.last;
  const CompletionClock::Duration host = clock_.complete(call.submitted_ns, blocked ? blocked_until_ns_ : now, blocked);
  const std::optional<double> device_ns = timer_.empty() ? std::nullopt : timer_.read_ns(call.slot);
  pacing_.observe(call.cost_ns, device_ns ? *device_ns : host.took_ns, device_ns.has_value() || host.exact);
  return call.profiled ? read_profile(*call.profiled) : Status();
}

Status StepRunner::read_tokens(std::span<Sequence> sequences, std::uint64_t done) {
  while (n_expected_ > 0 && expected_[expected_head_].value <= done) {
    const ExpectedToken token = expected_[expected_head_];
    Sequence& sequence = sequences[token.sequence];
    const std::uint64_t offset = (std::uint64_t{token.sequence} * sequence.n_ctx() + token.position) * 4;
    RONDO_TRY(steps_->mirror().invalidate(offset, 4));
    expected_head_ = (expected_head_ + 1) % expected_.size();
    --n_expected_;
    std::int32_t id = 0;
    std::memcpy(&id, steps_->mirror().mapped() + offset, 4);
    sequence.add_token(token.position, id);
    if (sequence.ended()) forget(token.sequence);
  }
  return {};
}

Status StepRunner::read_profile(const RecordedStep& recorded) {
  RONDO_ASSIGN(const std::vector<double> times, recorded.timestamps.read());
  ProfiledStep step{recorded.program->name, {}};
  for (std::size_t i = 0; i + 1 < times.size(); ++i) step.dispatches.push_back({recorded.program->dispatches[i].label, 1e-3 * times[i], 1e-3 * times[i + 1]});
  profile_.push_back(std::move(step));
  return {};
}

std::uint64_t StepRunner::next_value() const { return n_expected_ > 0 ? std::min(calls_[0].last, expected_[expected_head_].value) : calls_[0].last; }

Status StepRunner::wait(std::uint64_t timeout_ns) {
  const std::uint64_t value = next_value(), begin = now_ns();
  while (true) {
    RONDO_ASSIGN(done_, device_->completed_value());
    if (done_ >= value) return {};
    const std::uint64_t now = now_ns();
    const std::uint64_t left = timeout_ns - std::min(now - begin, timeout_ns);
    const std::uint64_t until_stalled = until_stalled_ns(now);
    if (until_stalled == 0) return check_stalled();
    const std::uint64_t nap = std::min({left, until_stalled, runtime::Device::kMostStillNs / 2});
    const Status waited = device_->wait(value, nap);
    if (waited.ok()) {
      blocked_for_ = value;
      blocked_until_ns_ = now_ns();
      return {};
    }
    if (waited.code() != StatusCode::kTimeout || nap == left) return waited;
  }
}

std::uint64_t StepRunner::until_stalled_ns(std::uint64_t now) {
  // Work before ours that a wait has ended for is done, whatever the timeline says.
  return stall_.left_ns(std::max(done_, std::min(device_->waited_value(), calls_[0].first - 1)), calls_[0].first, calls_[0].submitted_ns, now);
}

Status StepRunner::check_stalled() {
  if (n_calls_ == 0 || until_stalled_ns(now_ns()) > 0) return {};
  return Status(StatusCode::kInternal, fmt::format("session: device {} has finished nothing for {} s; its driver hangs or does no work (SessionOptions::stall_timeout_ms)",
                                                   device_->caps().name, stall_timeout_s_));
}

void StepRunner::forget(std::uint32_t sequence) {
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < n_expected_; ++i) {
    const ExpectedToken token = expected_[(expected_head_ + i) % expected_.size()];
    if (token.sequence != sequence) expected_[(expected_head_ + n_kept++) % expected_.size()] = token;
  }
  n_expected_ = n_kept;
  if (results_.sequence == sequence) results_state_ = ResultsState::kNone;
  for (std::uint32_t i = 0; schedule_.unfinished && i < schedule_.run.n_shares; ++i) {
    if (schedule_.run.shares[i].sequence == sequence) schedule_.unfinished = false;
  }
}

bool StepRunner::awaits(std::uint32_t sequence) const {
  for (std::size_t i = 0; i < n_expected_; ++i) {
    if (expected_[(expected_head_ + i) % expected_.size()].sequence == sequence) return true;
  }
  for (std::uint32_t i = 0; schedule_.unfinished && i < schedule_.run.n_shares; ++i) {
    if (schedule_.run.shares[i].sequence == sequence) return true;
  }
  return false;
}

}  // namespace rondo::models
