// The classes of characters that pre-tokenizers tell apart, and the layout of the generated header that has them all.
//
// unicode_class_table.h is written during the build by cmake/unicode_classes.cpp. kUnicodeRanges holds, in order, the
// first character of each range of one class and that class: first << kUnicodeClassBits | class. kCombiningRanges: likewise the
// canonical combining classes, first << 8 | class. Canonical decompositions but Hangul's: of kDecomposed[i], in order, the
// characters of kDecompositions from kDecompositionEnds[i - 1] to kDecompositionEnds[i]. kCompositions, in order:
// first << 42 | second << 21 | the character that the two become. kTraitRanges: first << 2 | kTraitNonspacing or kTraitControl. Of run i
// of characters with a lower case, kLowerCaseFirst[i], every kLowerCaseStep[i]th to kLowerCaseLast[i] (0: alone) has it
// kLowerCaseDistance[i] from itself.
#pragma once

#include <cstdint>

namespace rondo::models {

/// The property White_Space, and of the other characters the General_Category L*, N*, P*, S*, M*, and the rest.
enum class UnicodeClass : std::uint8_t { kOther, kWhiteSpace, kLetter, kNumber, kPunctuation, kSymbol, kMark };

constexpr std::uint32_t kUnicodeClassBits = 3;
/// General_Category Mn; and Cc, Cf, Cs, Co.
constexpr std::uint32_t kTraitNonspacing = 1, kTraitControl = 2, kTraitBits = 2;
constexpr std::uint32_t kEndOfUnicode = 0x110000;

}  // namespace rondo::models
