#include "models/tokenizers/pre_tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "models/tokenizers/unicode_classes.h"
#include "models/utf8.h"
#include "unicode_class_table.h"

namespace rondo::models {

namespace {

using Numbers = SplitRules::Numbers;

// As published: GPT-2's in its encoder.py, the others in the tokenizer.json of the models they are named after.

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr SplitRules kGpt2 = {false, false, false, Numbers::kRuns};
// \p{N}, and GPT-2's on what is between
constexpr SplitRules kSmolLm = {false, false, false, Numbers::kSingleFirst};
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr SplitRules kLlama3 = {true, true, true, Numbers::kThrees};
// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
constexpr SplitRules kQwen2 = {true, true, true, Numbers::kSingle};

// Names and flags are llama.cpp's (src/llama-vocab.cpp); those of models with other parts of their own are left out.
constexpr PreTokenizer kPreTokenizers[] = {
    {"gpt-2", kGpt2, false, false},
    {"phi-2", kGpt2, false, false},
    {"olmo", kGpt2, false, false},
    {"trillion", kGpt2, false, false},
    {"exaone4", kGpt2, false, false},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"smaug-bpe", kLlama3, false, false},
    {"dbrx", kLlama3, false, false},
    {"smollm", kSmolLm, false, false},
    {"starcoder", kSmolLm, false, false},
    {"refact", kSmolLm, false, false},
    {"command-r", kSmolLm, false, false},
    {"exaone", kSmolLm, false, false},
    {"minerva-7b", kSmolLm, false, false},
    {"qwen2", kQwen2, false, false},
    {"deepseek-r1-qwen", kQwen2, false, false},
    {"megrez", kQwen2, false, false},
    {"stablelm2", kQwen2, false, false},
    {"hunyuan", kQwen2, false, false},
};

UnicodeClass unicode_class(std::uint32_t code) {
  const std::uint32_t block = code / kUnicodeBlockSize;
  if (block >= std::size(kUnicodeIndex)) return UnicodeClass::kOther;
  const std::uint32_t place = code % kUnicodeBlockSize;
  const std::uint32_t classes = kUnicodeBlocks[kUnicodeIndex[block]][place / kUnicodeClassesPerByte];
  constexpr std::uint32_t kMask = (1U << kUnicodeClassBits) - 1;
  return static_cast<UnicodeClass>(classes >> place % kUnicodeClassesPerByte * kUnicodeClassBits & kMask);
}

/// The character at a place in a text.
struct Character {
  std::uint32_t bytes;  ///< 0 at the end
  UnicodeClass kind;

  bool is(UnicodeClass which) const { return bytes > 0 && kind == which; }
};

/// A text and the end of what one expression sees of it.
struct Reader {
  std::string_view text;
  bool ends_at_numbers;  ///< but for one at the front

  Character at(std::size_t place) const {
    if (place >= text.size()) return {0, UnicodeClass::kOther};
    std::uint32_t code = static_cast<unsigned char>(text[place]);
    std::size_t bytes = 1;
    if (code >= 0x80) {
      bytes = utf8_character_bytes(text.substr(place));
      if (bytes == 0) return {1, UnicodeClass::kOther};
      code &= 0x7fU >> bytes;
      for (std::size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<unsigned char>(text[place + i]) & 0x3fU);
    }
    const UnicodeClass kind = unicode_class(code);
    if (ends_at_numbers && kind == UnicodeClass::kNumber && place > 0) return {0, kind};
    return {static_cast<std::uint32_t>(bytes), kind};
  }

  bool is_line_end(std::size_t place) const {
    return place < text.size() && (text[place] == '\r' || text[place] == '\n');
  }

  /// Where the characters of class `kind` end that begin at `place`, of which `most` count.
  std::size_t end_of(UnicodeClass kind, std::size_t place, std::size_t most) const {
    for (; most > 0; --most) {
      const Character next = at(place);
      if (!next.is(kind)) break;
      place += next.bytes;
    }
    return place;
  }
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

/// Bytes of the contraction that `text` begins with, or 0.
std::size_t contraction_bytes(std::string_view text, bool any_case) {
  if (text[0] != '\'') return 0;
  const auto letter = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return 2;
    case 'r':
    case 'v':
      return letter(2) == 'e' ? 3 : 0;
    case 'l':
      return letter(2) == 'l' ? 3 : 0;
    default:
      break;
  }
  // U+017F, the long s, is the only other character that is one of these letters but for case (CaseFolding.txt).
  return any_case && text.substr(1, 2) == "\xc5\xbf" ? 3 : 0;
}

/// Bytes of the piece that `text` begins with where that is white space; `\s*[\r\n]+|\s+(?!\S)|\s+`.
std::size_t white_space_bytes(const Reader& reader, bool line_ends_together) {
  std::size_t end = 0, last = 0, behind_line_end = 0;
  for (Character next = reader.at(0); next.is(UnicodeClass::kWhiteSpace); next = reader.at(end)) {
    last = end;
    end += next.bytes;
    if (reader.is_line_end(last)) behind_line_end = end;
  }
  if (line_ends_together && behind_line_end > 0) return behind_line_end;
  // The last one is left to what follows, unless it is all there is.
  return reader.at(end).bytes > 0 && last > 0 ? last : end;
}

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

std::size_t PreTokenizer::first_piece_bytes(std::string_view text) const {
  if (text.empty()) return 0;
  if (const std::size_t bytes = contraction_bytes(text, rules.any_case_contractions); bytes > 0) return bytes;
  const Reader reader{text, rules.numbers == Numbers::kSingleFirst};
  const Character first = reader.at(0);
  const Character second = reader.at(first.bytes);
  const bool space = text[0] == ' ';

  const bool may_lead = rules.any_before_letters ? !first.is(UnicodeClass::kNumber) && !reader.is_line_end(0) : space;
  if (first.is(UnicodeClass::kLetter) || (may_lead && second.is(UnicodeClass::kLetter))) {
    return reader.end_of(UnicodeClass::kLetter, first.bytes, kAny);
  }
  if (first.is(UnicodeClass::kNumber)) {
    const std::size_t most = rules.numbers == Numbers::kRuns ? kAny : rules.numbers == Numbers::kThrees ? 3 : 1;
    return reader.end_of(UnicodeClass::kNumber, 0, most);
  }
  if (space && rules.numbers == Numbers::kRuns && second.is(UnicodeClass::kNumber)) {
    return reader.end_of(UnicodeClass::kNumber, first.bytes, kAny);
  }
  if (first.is(UnicodeClass::kOther) || (space && second.is(UnicodeClass::kOther))) {
    std::size_t end = reader.end_of(UnicodeClass::kOther, first.bytes, kAny);
    while (rules.line_ends_together && reader.is_line_end(end)) ++end;
    return end;
  }
  return white_space_bytes(reader, rules.line_ends_together);
}

}  // namespace rondo::models
