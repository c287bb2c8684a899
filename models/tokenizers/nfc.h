// Normalization of Unicode (Standard Annex 15): characters that mean the same become the same. Cases, and what text is cleaned of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rondo::models {

/// `text` with characters taken apart canonically, marks put in order, and put together again. Bytes that are no UTF-8 stay, and
/// nothing is put together across them.
std::string to_nfc(std::string_view text);

/// The same, left apart: Normalization Form D.
std::string to_nfd(std::string_view text);

/// The first character of what `code` is taken apart into; itself where it is not.
std::uint32_t first_decomposed(std::uint32_t code);

/// The one character that is the lower case of `code`, or itself.
std::uint32_t lower_case(std::uint32_t code);
/// Each character of `text` in lower case, the one for U+0130 two; bytes that are no UTF-8 stay.
std::string to_lower_case(std::string_view text);
/// General_Category Mn.
bool is_nonspacing_mark(std::uint32_t code);
/// General_Category Cc, Cf, Cs or Co: none that isn't assigned.
bool is_control(std::uint32_t code);

void append_utf8(std::uint32_t code, std::string& out);

}  // namespace rondo::models
