// The classes of characters that pre-tokenizers tell apart, and the layout of the generated header that has them all.
//
// unicode_class_table.h is written during the build by cmake/unicode_classes.cpp. Characters come in blocks;
// kUnicodeIndex has the block of each, as far as it reaches, and kUnicodeBlocks what is in it.
#pragma once

#include <cstdint>

namespace rondo::models {

/// General_Category L*, N*, the property White_Space, and everything else.
enum class UnicodeClass : std::uint8_t { kOther, kLetter, kNumber, kWhiteSpace };

constexpr std::uint32_t kUnicodeClassBits = 2;
constexpr std::uint32_t kUnicodeClassesPerByte = 8 / kUnicodeClassBits;  // the first in the lowest bits
constexpr std::uint32_t kUnicodeBlockSize = 128;  // characters; 256 make a table 11 % larger, 64 more than 256 blocks
constexpr std::uint32_t kUnicodeBlockBytes = kUnicodeBlockSize / kUnicodeClassesPerByte;

}  // namespace rondo::models
