#include <rondo/session.h>

#include "models/model_loader.h"
#include "models/session_state.h"

namespace rondo {

namespace {

Status moved_from(const char* name) { return Status(StatusCode::kFailedPrecondition, std::string("session: ") + name + " of a session that was moved from"); }

}  // namespace

Session::Session(std::shared_ptr<models::SessionState> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Model& model, const SessionOptions& options) {
  if (!model.internal()) return Status(StatusCode::kFailedPrecondition, "session: its Model is empty; it was moved from");
  RONDO_ASSIGN(std::shared_ptr<const models::LoadedModel> loaded, model.internal()->loaded());
  RONDO_ASSIGN(std::unique_ptr<models::SessionState> impl, models::SessionState::create(std::move(loaded), options));
  return Session(std::move(impl));
}

Status Session::check(const char* name) const { return impl_ ? impl_->check_callable(name) : moved_from(name); }

Status Session::set_source(std::span<const std::int32_t> tokens) {
  RONDO_TRY(check("set_source"));
  return impl_->set_source(tokens);
}

Status Session::append(std::span<const std::int32_t> tokens, std::uint32_t max_new_tokens) {
  RONDO_TRY(check("append"));
  return impl_->append(tokens, max_new_tokens);
}

Status Session::advance() {
  RONDO_TRY(check("advance"));
  return impl_->advance();
}

Result<std::size_t> Session::take_tokens(std::span<std::int32_t> out) {
  RONDO_TRY(check("take_tokens"));
  return impl_->take_tokens(out);
}

Status Session::wait(std::chrono::nanoseconds timeout) {
  RONDO_TRY(check("wait"));
  return impl_->wait(timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count()));
}

Status Session::rewind(std::uint32_t position) {
  RONDO_TRY(check("rewind"));
  return impl_->rewind(position);
}

Result<std::vector<float>> Session::wait_logits(std::span<const std::int32_t> tokens) {
  RONDO_TRY(check("wait_logits"));
  return impl_->wait_logits(tokens);
}

void Session::cancel() {
  if (impl_) impl_->cancel();
}

bool Session::idle() const { return !impl_ || impl_->idle(); }
StopReason Session::stop_reason() const { return impl_ ? impl_->stop_reason() : StopReason::kNone; }
std::span<const std::int32_t> Session::tokens() const { return impl_ ? impl_->tokens() : std::span<const std::int32_t>(); }
std::uint32_t Session::n_ctx() const { return impl_ ? impl_->n_ctx() : 0; }
std::uint32_t Session::n_source() const { return impl_ ? impl_->n_source() : 0; }

const SessionStatistics& Session::statistics() const {
  static const SessionStatistics kNone;
  return impl_ ? impl_->statistics() : kNone;
}

std::vector<ProfiledStep> Session::take_profile() { return impl_ && impl_->check_callable("take_profile").ok() ? impl_->take_profile() : std::vector<ProfiledStep>(); }

Result<Generation> Session::generate(std::string_view prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text) {
  RONDO_TRY(check("generate"));
  EncodeOptions encode;
  encode.add_bos = tokens().empty() || n_source() > 0;
  const std::vector<std::int32_t> ids = impl_->model().tokenizer.encode(prompt, encode);
  return generate(std::span<const std::int32_t>(ids), max_new_tokens, on_text);
}

Result<Generation> Session::generate(std::span<const std::int32_t> prompt, std::uint32_t max_new_tokens, const std::function<bool(std::string_view)>& on_text) {
  RONDO_TRY(check("generate"));
  // on_text may destroy this very object: what runs is kept here, and ended when nobody else has it.
  const std::shared_ptr<models::SessionState> running = impl_;
  return running->generate(prompt, max_new_tokens, on_text, [&running] { return running.use_count() > 1; });
}

}  // namespace rondo
