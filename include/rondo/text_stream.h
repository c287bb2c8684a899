// Tokens in, text out: valid UTF-8 as it becomes complete, up to a stop text.
//
// Pure CPU code without a session: for frame loops, logs, or tokens from elsewhere; Session::generate uses it too. Not
// thread-safe. A moved-from stream gives no text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <rondo/export.h>
#include <rondo/status.h>
#include <rondo/tokenizer.h>

namespace rondo {

/// The text of one generation, token by token. A piece of a token may end inside a UTF-8 sequence, and a stop text may begin in
/// one token and end in another: both are held back until it is clear what they are.
class RONDO_API TextStream {
 public:
  /// `stop_texts`: the stream ends before the first of them, by where it begins; none: it never does.
  /// Errors: kInvalidArgument (an empty stop text).
  static Result<TextStream> create(const Tokenizer& tokenizer, std::vector<std::string> stop_texts = {});
  TextStream(TextStream&&) noexcept;
  TextStream& operator=(TextStream&&) noexcept;
  ~TextStream();

  /// Takes one more token. The text that can be shown now: whole characters, U+FFFD for bytes that are none; often "", and
  /// always after a stop text.
  std::string add(std::int32_t token);
  /// What was held back, when no more tokens come: an unfinished character becomes U+FFFD. It may turn out to complete a stop
  /// text. To be called once, and no `add` after it.
  std::string finish();

  /// Whether a stop text was found: nothing more needs to be generated.
  bool stopped() const;
  /// With a stop text: how many of the tokens lie wholly before it. A session that is to forget the rest is rewound to the
  /// position of the first token of this stream plus this number. Without: how many tokens there were.
  std::size_t n_tokens_before_stop() const;

 private:
  struct State;
  explicit TextStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rondo
