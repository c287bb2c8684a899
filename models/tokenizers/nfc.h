// Normalization Form C of Unicode (Standard Annex 15): characters that mean the same become the same.
#pragma once

#include <string>
#include <string_view>

namespace rondo::models {

/// `text` with characters taken apart canonically, marks put in order, and put together again. Bytes that are no UTF-8 stay, and
/// nothing is put together across them.
std::string to_nfc(std::string_view text);

}  // namespace rondo::models
