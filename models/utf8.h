// What is UTF-8 and what isn't; text that arrives in pieces of bytes, passed on as valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rondo::models {

/// Bytes of the character that `text`, which is not empty, begins with; 0 if no UTF-8 begins there.
std::size_t utf8_character_bytes(std::string_view text);

/// Collects bytes; gives out what is complete. Bytes that can't be UTF-8 become U+FFFD. Not thread-safe.
class Utf8Stream {
 public:
  /// Adds bytes and returns the text that became complete.
  std::string add(std::string_view bytes);
  /// What is left at the end: an unfinished sequence becomes U+FFFD.
  std::string finish();
  /// Bytes of an unfinished sequence.
  std::size_t n_pending_bytes() const { return pending_.size(); }

 private:
  std::string pending_;
};

}  // namespace rondo::models
