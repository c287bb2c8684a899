// Regular expressions that cut text into pieces, as far as pre-tokenizers need them, in time in proportion to the text.
//
//   expression:  alternatives between `|`, of which the first that matches counts
//   alternative: items, each with `?`, `*`, `+`, `{n}`, `{m,n}` behind it or nothing
//   item:        a character, `\r`, `\n`, `\t`, `\s`, `\p{L}`, `[...]` or `[^...]` of those and ranges, also `\P{L}`,
//                `\x{CODE}` and `\p{N}`, `\p{P}`, `\p{S}`, `\p{M}`, `\p{C}`; `(?:...)`, `(?i:...)`, `(?!...)`; `$`
//
// Items take as much as they can and give back what the rest needs, but groups give nothing back. `(?i:` is for ASCII
// letters only, `\p{C}` for all that is none of the other classes. White space beyond ASCII counts as `\v`, so that `\s` has
// it and ranges have not, as in llama.cpp; a byte that is not part of UTF-8 counts as U+FFFD.
// Constant after parsing, so it may be used from several threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "models/tokenizers/unicode_classes.h"

namespace rondo::models {

/// A set of characters.
struct CharacterSet {
  std::array<bool, 128> ascii = {};
  // The others: those of the classes, of which each has a bit, and of the ranges from first to last, which are in order and
  // do not overlap; or all but those.
  std::uint32_t classes = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
  bool negated = false;

  bool has(std::uint32_t code) const;
};

/// Part of an expression.
struct SplitItem {
  enum class Kind : std::uint8_t { kSet, kGroup, kNotBefore, kEnd };
  Kind kind = Kind::kSet;
  std::uint32_t min = 1;
  std::uint32_t max = 1;
  CharacterSet set;                           ///< of kSet and of kNotBefore
  std::vector<std::vector<SplitItem>> group;  ///< the alternatives of kGroup
};

class SplitExpression {
 public:
  /// Reads `expression`, which is one of this program's own: what cannot be read is a bug.
  explicit SplitExpression(std::string_view expression);

  /// Appends where the pieces of `text` end: each match is one, and so is what lies between matches. `begin` is added.
  void split(std::string_view text, std::size_t begin, std::vector<std::size_t>& ends) const;

 private:
  std::vector<std::vector<SplitItem>> alternatives_;
};

/// The class of a character; of what is none, kOther.
UnicodeClass unicode_class(std::uint32_t code);

/// The character at a place in a text.
struct TextCharacter {
  std::uint32_t code;
  std::uint32_t bytes;
};
/// The character at `place`, which is within `text`: a byte that is not part of UTF-8 is U+FFFD.
TextCharacter character_at(std::string_view text, std::size_t place);

}  // namespace rondo::models
