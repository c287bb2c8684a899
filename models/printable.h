// How names that come from files appear in messages: one line, bounded, printable.
#pragma once

#include <string>
#include <string_view>

namespace rondo::models {

/// `text` with control characters as `\xNN`, cut after 80 bytes with "..."; no quotation marks are added.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kMaxBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (text.size() > kMaxBytes) out += "...";
  return out;
}

}  // namespace rondo::models
