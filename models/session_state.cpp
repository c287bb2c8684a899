#include "models/session_state.h"

#include <algorithm>

#include <rondo/text_stream.h>

#include "runtime/fmt.h"
#include "runtime/transfer.h"
#include "shaders/lib/step_state.h"

namespace rondo::models {

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

Status check_ids(std::span<const std::int32_t> ids, std::uint32_t n_vocab, const char* what) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<std::uint32_t>(ids[i]) < n_vocab) continue;
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {} {} is {} but ids go from 0 to {}", what, i, ids[i], n_vocab - 1));
  }
  return {};
}

Status check_options(const SessionOptions& options, std::uint32_t n_vocab) {
  if (options.burst > kMaxCallBatches) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: burst is {} but must be at most {}", options.burst, kMaxCallBatches));
  }
  RONDO_TRY(check_sampling(options.sampling));
  RONDO_TRY(check_ids(options.stop_ids, n_vocab, "stop id"));
  for (const std::string& text : options.stop_texts) {
    if (text.empty()) return Status(StatusCode::kInvalidArgument, "session: a stop text is empty");
  }
  if (!(options.max_segment_us > 0)) return Status(StatusCode::kInvalidArgument, "session: max_segment_us must be positive");
  return {};
}

/// Set while a callback of the caller runs; what the callback does to the session is refused.
class CallbackGuard {
 public:
  explicit CallbackGuard(bool& running) : running_(running) { running_ = true; }
  ~CallbackGuard() { running_ = false; }
  CallbackGuard(const CallbackGuard&) = delete;
  CallbackGuard& operator=(const CallbackGuard&) = delete;

 private:
  bool& running_;
};

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::create(std::shared_ptr<const LoadedModel> model, const SessionOptions& options) {
  const Network& network = model->network();
  if (!network.find(Role::kDecode)) return Status(StatusCode::kUnsupported, fmt::format("session: {} makes no tokens; an Encoder takes its inputs", network.facts.architecture));
  RONDO_TRY(check_options(options, model->info.n_vocab));
  const std::uint32_t n_ctx = options.n_ctx ? options.n_ctx : default_context(network);
  const std::uint32_t n_source = options.n_source ? options.n_source : default_source(network);
  if (network.positions_end > 0 && n_ctx > network.positions_end) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: n_ctx is {} but {} has a table of {} positions", n_ctx, network.facts.architecture, network.positions_end));
  }
  if (n_source > network.facts.source_context) {
    return Status(StatusCode::kInvalidArgument, network.facts.source_context == 0 ? fmt::format("session: n_source is {} but {} takes no source", n_source, network.facts.architecture)
                                                                                  : fmt::format("session: n_source is {} but {} was made for {}", n_source, network.facts.architecture, network.facts.source_context));
  }
  std::vector<std::int32_t> stop_ids = options.stop_ids;
  if (options.use_model_stop_ids) {
    for (std::int32_t id : model->tokenizer.stop_ids()) stop_ids.push_back(id);
  }
  if (stop_ids.size() > RONDO_STATE_MAX_STOP_IDS) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: {} stop ids are given but at most {} can be", stop_ids.size(), RONDO_STATE_MAX_STOP_IDS));
  }
  RONDO_ASSIGN(StepSet made, StepSet::create(model, options, n_ctx, n_source, stop_ids));
  auto steps = std::make_unique<StepSet>(std::move(made));
  RONDO_ASSIGN(StepRunner runner, StepRunner::create(model->device, *steps, options));
  SessionStatistics& statistics = runner.statistics();
  statistics.kv_bytes = steps->kv_bytes();
  statistics.activation_bytes = steps->activation_bytes();
  statistics.dispatches_per_decode_step = steps->decode().recording.n_dispatches();
  statistics.segments_per_decode_step = static_cast<std::uint32_t>(steps->decode().recording.segments().size());
  Sequence sequence(n_ctx, std::move(stop_ids), tokens_to_rewind(model->network().caches, n_ctx));
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), options, std::move(steps), std::move(runner), std::move(sequence)));
}

SessionState::SessionState(std::shared_ptr<const LoadedModel> model, const SessionOptions& options, std::unique_ptr<StepSet> steps, StepRunner runner, Sequence sequence)
    : model_(std::move(model)), options_(options), steps_(std::move(steps)), runner_(std::move(runner)) {
  sequences_.push_back(std::move(sequence));
}

Status SessionState::check_callable(const char* name) const {
  if (!in_callback_) return {};
  return Status(StatusCode::kFailedPrecondition, fmt::format("session: {} within on_text; return from it first, or cancel", name));
}

bool SessionState::settled() const {
  return !runner_.awaits(0) && (sequence().ended() || (sequence().history().empty() && !runner_.in_flight()));
}

Status SessionState::begin(std::span<const std::int32_t> tokens, std::uint32_t wanted, bool logits, const char* caller) {
  if (n_source() > 0 && sequence().source().empty()) {
    return Status(StatusCode::kFailedPrecondition, fmt::format("session: {} without a source; {} needs one (set_source)", caller, model_->info.architecture));
  }
  if (!sequence().ended() && (runner_.awaits(0) || runner_.in_flight())) {
    RONDO_TRY(runner_.poll(sequences_, false));  // a pending cancel does not take effect within an append, which forgets it
    if (runner_.awaits(0)) {
      return Status(StatusCode::kFailedPrecondition, fmt::format("session: {} while tokens are still to come; take them, cancel or rewind first", caller));
    }
  }
  RONDO_TRY(check_ids(tokens, model_->info.n_vocab, "token"));
  RONDO_TRY(sequence().append(tokens, wanted, logits, caller));
  said_nothing_ = false;
  return {};
}

Status SessionState::set_source(std::span<const std::int32_t> tokens) {
  if (n_source() == 0) return Status(StatusCode::kFailedPrecondition, fmt::format("session: set_source: {} takes no source", model_->info.architecture));
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "session: set_source: the source has no tokens");
  if (tokens.size() > n_source()) {
    return Status(StatusCode::kInvalidArgument, fmt::format("session: set_source: the source has {} tokens but at most {} fit (SessionOptions::n_source)", tokens.size(), n_source()));
  }
  RONDO_TRY(check_ids(tokens, model_->info.n_vocab, "source token"));
  RONDO_TRY(rewind(0));
  sequence().set_source(tokens);
  return {};
}

Status SessionState::append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens) {
  RONDO_TRY(begin(tokens, max_new_tokens, false, "append"));
  cancelled_ = false;
  return {};
}

Status SessionState::poll() {
  const bool busy = !settled();  // else a cancel is of what comes next
  RONDO_TRY(runner_.poll(sequences_, busy && cancelled_));
  if (busy && sequence().stop() == StopReason::kCancelled) cancelled_ = false;  // it has had its effect
  return {};
}

Status SessionState::advance() {
  if (!just_polled_) RONDO_TRY(poll());
  just_polled_ = false;
  said_nothing_ = false;
  RONDO_TRY(runner_.submit(sequences_, cancelled_));
  return runner_.check_stalled();
}

Result<std::size_t> SessionState::take_tokens(std::span<std::int32_t> out) {
  if (sequence().n_ready() == 0) RONDO_TRY(poll());
  const std::size_t n = sequence().take(out);
  n_announced_ = 0;
  said_nothing_ = false;
  return n;
}

Status SessionState::wait(std::uint64_t timeout_ns) {
  const bool cancelling = cancelled_ && !settled();
  // After a cancel what was made before it is no news: what counts is when the device is done.
  if (!cancelling && sequence().stop() != StopReason::kCancelled && tell_news()) return {};
  if (!runner_.in_flight()) {
    if (cancelling) RONDO_TRY(poll());
    if (sequence().stop() == StopReason::kCancelled) return Status(StatusCode::kCancelled, "session: cancelled");
    if (said_nothing_) return Status(StatusCode::kTimeout, "session: idle");  // short enough to allocate nothing
    said_nothing_ = true;
    return {};
  }
  RONDO_TRY(runner_.wait(timeout_ns));
  RONDO_TRY(poll());
  just_polled_ = true;
  (void)tell_news();
  if (sequence().stop() == StopReason::kCancelled) return Status(StatusCode::kCancelled, "session: cancelled");
  return {};
}

bool SessionState::tell_news() {
  const bool ended = runner_.take_call_ended(), more = sequence().n_ready() > n_announced_;
  n_announced_ = sequence().n_ready();
  return ended || more;
}

Status SessionState::rewind(std::uint32_t position) {
  const bool busy = !settled();
  RONDO_TRY(poll());
  RONDO_TRY(sequence().rewind(position));
  runner_.forget(0);
  if (busy) cancelled_ = false;  // of what is forgotten
  n_announced_ = 0;
  said_nothing_ = false;
  return {};
}

Status SessionState::pretend_depth(std::uint32_t position) {
  if (position >= n_ctx()) return Status(StatusCode::kInvalidArgument, fmt::format("session: a depth of {} does not fit the context of {}", position, n_ctx()));
  RONDO_TRY(rewind(0));
  RONDO_TRY(steps_->fill_history());
  sequence().pretend(position);
  return {};
}

template <typename Look>
Status SessionState::run_to_end(const Look& look) {
  constexpr std::uint64_t kMostNs = 100'000'000;
  bool wants_more = true;
  while (wants_more && !settled()) {
    RONDO_TRY(advance());
    const Status waited = runner_.in_flight() ? wait(kMostNs) : poll();
    if (!waited.ok() && waited.code() != StatusCode::kTimeout && waited.code() != StatusCode::kCancelled) return waited;
    RONDO_ASSIGN(wants_more, look());
  }
  return {};
}

Status SessionState::read_logits() {
  const Share* results = runner_.results();
  if (!results) return {};
  // A token that was pending before comes first in the chunk; its logits were not asked for.
  const Share share = *results;
  const std::uint64_t n_vocab = model_->info.n_vocab;
  const std::uint32_t skipped = share.position < request_.first ? std::min(request_.first - share.position, share.count) : 0;
  const std::size_t at = request_.logits.size();
  request_.logits.resize(at + (share.count - skipped) * n_vocab);
  RONDO_TRY(runtime::read_back(model_->device, steps_->logits(), 4 * skipped * n_vocab, std::as_writable_bytes(std::span(request_.logits).subspan(at))));
  runner_.drop_results();
  return {};
}

Result<std::vector<float>> SessionState::wait_logits(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) return Status(StatusCode::kInvalidArgument, "session: there are no tokens to compute logits of");
  if (settled() && cancelled_.exchange(false)) return Status(StatusCode::kCancelled, "session: wait_logits was cancelled before it began");
  RONDO_TRY(steps_->record_logits_step());
  RONDO_TRY(begin(tokens, 0, true, "wait_logits"));
  request_ = {sequence().input_begin(), {}};
  const Status done = run_to_end([this]() -> Result<bool> {
    RONDO_TRY(read_logits());
    return true;
  });
  cancelled_ = false;
  if (!done.ok()) {  // nobody will read the rest
    sequence().abandon();
    runner_.forget(0);
    return done;
  }
  if (sequence().stop() == StopReason::kCancelled) return Status(StatusCode::kCancelled, "session: wait_logits was cancelled");
  return std::move(request_.logits);
}

Result<Generation> SessionState::generate(std::span<const std::int32_t> prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text,
                                          const std::function<bool()>& is_wanted) {
  Generation generation;
  generation.prompt_tokens.assign(prompt.begin(), prompt.end());
  // A cancel that came before: of this generation, unless another one is still going on.
  if (settled() && cancelled_.exchange(false)) {
    sequence().drop_ready();
    generation.stop = StopReason::kCancelled;
    return generation;
  }
  RONDO_ASSIGN(TextStream text_stream, TextStream::create(model_->tokenizer, options_.stop_texts));
  bool wants_text = static_cast<bool>(on_text);
  const auto emit = [&](const std::string& text) {
    generation.text += text;
    if (text.empty() || !wants_text) return;
    {
      const CallbackGuard guard(in_callback_);
      wants_text = on_text(text);
    }
    if (is_wanted && !is_wanted()) wants_text = false;
    if (!wants_text) cancel();  // what was in flight still comes, but not to a caller who has had enough
  };
  if (n_source() > 0) {
    RONDO_TRY(set_source(prompt));
    prompt = model_->network().start_tokens;
  }
  RONDO_TRY(begin(prompt, max_new_tokens, false, "generate"));
  const auto first = static_cast<std::uint32_t>(sequence().history().size());
  sequence().drop_ready();  // of an earlier generation
  const auto take_text = [&]() -> Result<bool> {
    while (sequence().n_ready() > 0 && !text_stream.stopped()) {
      std::int32_t token = 0;
      RONDO_TRY(take_tokens({&token, 1}).status());
      generation.tokens.push_back(token);
      emit(text_stream.add(token));
    }
    return !text_stream.stopped();
  };
  RONDO_TRY(run_to_end(take_text));
  emit(text_stream.finish());
  if (text_stream.stopped()) {
    generation.tokens.resize(text_stream.n_tokens_before_stop());
    RONDO_TRY(rewind(first + static_cast<std::uint32_t>(generation.tokens.size())));
    cancelled_ = false;
    generation.stop = StopReason::kStopText;
    return generation;
  }
  cancelled_ = false;
  generation.stop = stop_reason();
  return generation;
}

}  // namespace rondo::models
