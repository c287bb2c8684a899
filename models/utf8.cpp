#include "models/utf8.h"

#include <cstdint>

namespace rondo::models {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// What the bytes at the front of a text are (Unicode 15, table 3-7).
struct Front {
  std::size_t size;  ///< bytes of the character, or of the maximal part that can't become one
  bool valid;
  bool unfinished;   ///< more bytes could make it valid
};

Front look(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, false, false};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {i, false, true};
    std::uint8_t low = 0x80, high = 0xBF;
    if (i == 1) {
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    }
    if (byte(i) < low || byte(i) > high) return {i, false, false};
  }
  return {size, true, false};
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view text) {
  const Front front = look(text);
  return front.valid ? front.size : 0;
}

std::string Utf8Stream::add(std::string_view bytes) {
  pending_ += bytes;
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Front front = look(rest);
    if (front.unfinished) break;
    text += front.valid ? rest.substr(0, front.size) : kReplacement;
    rest.remove_prefix(front.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string Utf8Stream::finish() {
  const bool unfinished = !pending_.empty();
  pending_.clear();
  return unfinished ? std::string(kReplacement) : std::string();
}

}  // namespace rondo::models
