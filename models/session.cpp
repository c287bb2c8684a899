#include <rondo/session.h>

#include "models/session_state.h"
#include "models/stop_filter.h"
#include "models/utf8.h"

namespace rondo {

Session::Session(std::unique_ptr<models::SessionState> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  RONDO_ASSIGN(std::unique_ptr<models::SessionState> impl, models::SessionState::create(model.internal(), options));
  return Session(std::move(impl));
}

Status Session::append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens) { return impl_->append(tokens, max_new_tokens); }
Status Session::advance() { return impl_->advance(); }
Result<std::size_t> Session::take_tokens(std::span<std::int32_t> out) { return impl_->take_tokens(out); }
void Session::cancel() { impl_->cancel(); }
bool Session::idle() const { return impl_->idle(); }
StopReason Session::stop_reason() const { return impl_->stop_reason(); }
Status Session::rewind(std::uint32_t position) { return impl_->rewind(position); }
std::span<const std::int32_t> Session::tokens() const { return impl_->tokens(); }
std::uint32_t Session::n_ctx() const { return impl_->n_ctx(); }
const SessionStatistics& Session::statistics() const { return impl_->statistics(); }
std::vector<ProfiledStep> Session::take_profile() { return impl_->take_profile(); }

Status Session::wait(std::chrono::nanoseconds timeout) {
  return impl_->wait(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count()));
}

Result<std::vector<float>> Session::wait_logits(std::span<const std::int32_t> tokens) { return impl_->wait_logits(tokens); }

Result<Generation> Session::generate(std::string_view prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text) {
  EncodeOptions encode;
  encode.add_bos = tokens().empty();
  const std::vector<std::int32_t> ids = impl_->model().tokenizer.encode(prompt, encode);
  return generate(std::span<const std::int32_t>(ids), max_new_tokens, on_text);
}

Result<Generation> Session::generate(std::span<const std::int32_t> prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text) {
  Generation generation;
  generation.prompt_tokens.assign(prompt.begin(), prompt.end());
  const Tokenizer& tokenizer = impl_->model().tokenizer;
  models::Utf8Stream utf8;
  models::StopFilter filter(impl_->options().stop_texts);
  bool wants_text = static_cast<bool>(on_text);
  const auto emit = [&](const std::string& text) {
    generation.text += text;
    if (text.empty() || !wants_text || on_text(text)) return;
    wants_text = false;  // what was in flight still comes, but not to a caller who has had enough
    cancel();
  };
  RONDO_TRY(append(prompt, max_new_tokens));
  const std::size_t first = tokens().size();
  while (!idle() && !filter.stopped()) {
    RONDO_TRY(advance());
    const Status waited = wait(std::chrono::milliseconds(100));
    if (!waited.ok() && waited.code() != StatusCode::kTimeout && waited.code() != StatusCode::kCancelled) return waited;
    std::int32_t taken[64];
    RONDO_ASSIGN(const std::size_t n, take_tokens(taken));
    for (std::size_t i = 0; i < n && !filter.stopped(); ++i) {
      generation.tokens.push_back(taken[i]);
      emit(filter.add_token(utf8.add(tokenizer.piece(taken[i]))));
    }
  }
  if (!filter.stopped()) emit(filter.add_token(utf8.finish()));
  if (filter.stopped()) {
    generation.tokens.resize(filter.n_tokens_before());
    RONDO_TRY(rewind(static_cast<std::uint32_t>(first + generation.tokens.size())));
    generation.stop = StopReason::kStopText;
    return generation;
  }
  emit(filter.finish());
  generation.stop = stop_reason();
  return generation;
}

}  // namespace rondo
