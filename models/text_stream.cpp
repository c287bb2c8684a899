#include <rondo/text_stream.h>

#include <utility>

#include "models/stop_filter.h"
#include "models/utf8.h"
#include "runtime/fmt.h"

namespace rondo {

struct TextStream::State {
  Tokenizer tokenizer;
  models::StopFilter filter;
  models::Utf8Stream utf8;
  std::size_t n_tokens = 0;
};

TextStream::TextStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

Result<TextStream> TextStream::create(const Tokenizer& tokenizer, std::vector<std::string> stop_texts) {
  for (std::size_t i = 0; i < stop_texts.size(); ++i) {
    if (stop_texts[i].empty()) return Status(StatusCode::kInvalidArgument, fmt::format("text stream: stop text {} is empty", i));
  }
  return TextStream(std::unique_ptr<State>(new State{tokenizer, models::StopFilter(std::move(stop_texts)), {}, 0}));
}

std::string TextStream::add(std::int32_t token) {
  if (!state_ || state_->filter.stopped()) return "";
  ++state_->n_tokens;
  const std::string text = state_->utf8.add(state_->tokenizer.piece(token));
  return state_->filter.add_token(text, state_->utf8.n_pending_bytes());
}

std::string TextStream::finish() {
  if (!state_ || state_->filter.stopped()) return "";
  std::string text = state_->filter.add_token(state_->utf8.finish());
  return text + state_->filter.finish();
}

bool TextStream::stopped() const { return state_ && state_->filter.stopped(); }

std::size_t TextStream::n_tokens_before_stop() const {
  if (!state_) return 0;
  return state_->filter.stopped() ? state_->filter.n_tokens_before() : state_->n_tokens;
}

}  // namespace rondo
