// Finds stop texts in a text that comes token by token, and holds back what may be the beginning of one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::models {

class StopFilter {
 public:
  /// None of `stop_texts` is empty.
  explicit StopFilter(std::vector<std::string> stop_texts) : stop_texts_(std::move(stop_texts)) {}

  /// Takes the text of one more token, of which `n_pending_bytes` are still to come with a later one; what can be shown of the
  /// text so far. "" once a stop text has been found.
  std::string add_token(std::string_view text, std::size_t n_pending_bytes = 0);
  /// What was held back, when no more tokens come.
  std::string finish();

  /// Whether a stop text has been found: the first of them, by where it begins.
  bool stopped() const { return stopped_; }
  /// Tokens that lie wholly before the stop text.
  std::size_t n_tokens_before() const { return n_tokens_before_; }

 private:
  std::vector<std::string> stop_texts_;
  std::string held_;                    // the end of the text, not yet shown
  std::size_t held_at_ = 0;             // bytes of text before it
  std::vector<std::size_t> token_ends_; // in bytes of text
  std::size_t n_tokens_before_ = 0;
  bool stopped_ = false;
};

}  // namespace rondo::models
