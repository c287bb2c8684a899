#include "models/tokenizers/nfc.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "models/tokenizers/unicode_classes.h"
#include "models/utf8.h"
#include "unicode_class_table.h"

namespace rondo::models {

namespace {

// Hangul syllables are made of their parts by arithmetic.
constexpr std::uint32_t kSyllables = 0xac00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11a7, kNVowels = 21, kNTrailing = 28, kNSyllables = 19 * kNVowels * kNTrailing, kNLeading = 19;

struct Character {
  std::uint32_t code = 0;
  int combining_class = 0;
};

int combining_class(std::uint32_t code) {
  const auto range = std::upper_bound(std::begin(kCombiningRanges), std::end(kCombiningRanges), code << 8 | 255);
  return static_cast<int>(*(range - 1) & 255);
}

void append_decomposed(std::uint32_t code, std::vector<Character>& to) {
  const auto add = [&](std::uint32_t part) { to.push_back({part, combining_class(part)}); };
  if (code - kSyllables < kNSyllables) {
    const std::uint32_t index = code - kSyllables;
    add(kLeading + index / (kNVowels * kNTrailing));
    add(kVowels + index / kNTrailing % kNVowels);
    if (index % kNTrailing != 0) add(kTrailing + index % kNTrailing);
    return;
  }
  const auto found = std::lower_bound(std::begin(kDecomposed), std::end(kDecomposed), code);
  if (found == std::end(kDecomposed) || *found != code) return add(code);
  const auto i = found - std::begin(kDecomposed);
  std::for_each(kDecompositions + (i == 0 ? 0 : kDecompositionEnds[i - 1]), kDecompositions + kDecompositionEnds[i], add);
}

/// What the two become, or 0.
std::uint32_t composed(std::uint32_t first, std::uint32_t second) {
  if (first - kLeading < kNLeading && second - kVowels < kNVowels) return kSyllables + ((first - kLeading) * kNVowels + second - kVowels) * kNTrailing;
  if (first - kSyllables < kNSyllables && (first - kSyllables) % kNTrailing == 0 && second - kTrailing - 1 < kNTrailing - 1) return first + second - kTrailing;
  const std::uint64_t key = std::uint64_t{first} << 42 | std::uint64_t{second} << 21;
  const auto found = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), key);
  constexpr std::uint64_t kMask = (1U << 21) - 1;
  return found != std::end(kCompositions) && (*found & ~kMask) == key ? static_cast<std::uint32_t>(*found & kMask) : 0;
}

/// Puts marks in order, and together with what they stand behind if `composes`.
void append_normalized(std::vector<Character>& characters, bool composes, std::string& out) {
  for (auto begin = characters.begin(); begin != characters.end();) {
    const auto is_starter = [](const Character& each) { return each.combining_class == 0; };
    const auto marks = std::find_if_not(begin, characters.end(), is_starter), end = std::find_if(marks, characters.end(), is_starter);
    std::stable_sort(marks, end, [](const Character& a, const Character& b) { return a.combining_class < b.combining_class; });
    begin = end;
  }
  std::size_t n = 0, starter = characters.size();
  int last = -1;  // the class of what was kept behind the starter
  for (const Character each : characters) {
    const std::uint32_t both = composes && starter < n && last < each.combining_class ? composed(characters[starter].code, each.code) : 0;
    if (both != 0) {
      characters[starter].code = both;
      continue;
    }
    if (each.combining_class == 0) starter = n;
    last = each.combining_class == 0 ? -1 : each.combining_class;
    characters[n++] = each;
  }
  for (std::size_t i = 0; i < n; ++i) append_utf8(characters[i].code, out);
  characters.clear();
}

/// The character that `bytes` are in UTF-8.
std::uint32_t character_of(std::string_view bytes) {
  std::uint32_t code = static_cast<unsigned char>(bytes[0]) & (bytes.size() == 1 ? 0x7fU : 0xffU >> (bytes.size() + 1));
  for (const char byte : bytes.substr(1)) code = code << 6 | (static_cast<unsigned char>(byte) & 63U);
  return code;
}

std::string normalized(std::string_view text, bool composes) {
  std::string out;
  std::vector<Character> characters;
  while (!text.empty()) {
    const std::size_t size = utf8_character_bytes(text);
    if (size == 0) {
      append_normalized(characters, composes, out);
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    append_decomposed(character_of(text.substr(0, size)), characters);
    text.remove_prefix(size);
  }
  append_normalized(characters, composes, out);
  return out;
}

bool all_bytes_below(std::string_view text, unsigned char limit) {
  return std::all_of(text.begin(), text.end(), [&](char byte) { return static_cast<unsigned char>(byte) < limit; });
}

std::uint32_t trait(std::uint32_t code) {
  const auto range = std::upper_bound(std::begin(kTraitRanges), std::end(kTraitRanges), code << kTraitBits | ((1U << kTraitBits) - 1));
  return *(range - 1) & ((1U << kTraitBits) - 1);
}

}  // namespace

void append_utf8(std::uint32_t code, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 63));
    }
    put(0x80 | (code >> 6 & 63));
  }
  put(0x80 | (code & 63));
}

std::string to_nfc(std::string_view text) {
  // All characters below U+0300, whose first byte is less, are in the form.
  return all_bytes_below(text, 0xcc) ? std::string(text) : normalized(text, true);
}

std::string to_nfd(std::string_view text) { return all_bytes_below(text, 0x80) ? std::string(text) : normalized(text, false); }

std::uint32_t first_decomposed(std::uint32_t code) {
  std::vector<Character> characters;
  append_decomposed(code, characters);
  return characters.front().code;
}

std::uint32_t lower_case(std::uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
  const auto next = std::upper_bound(std::begin(kLowerCaseFirst), std::end(kLowerCaseFirst), code);
  const auto run = next - std::begin(kLowerCaseFirst) - 1;
  if (run < 0 || code > kLowerCaseLast[run]) return code;
  const bool in_run = kLowerCaseStep[run] == 0 || (code - kLowerCaseFirst[run]) % kLowerCaseStep[run] == 0;
  return in_run ? code + static_cast<std::uint32_t>(kLowerCaseDistance[run]) : code;
}

std::string to_lower_case(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = utf8_character_bytes(text);
    std::uint32_t code = 0;
    if (size == 0) {
      out += text[0];
    } else {
      code = character_of(text.substr(0, size));
      append_utf8(lower_case(code), out);
      if (code == 0x130) append_utf8(0x307, out);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

bool is_nonspacing_mark(std::uint32_t code) { return code >= 0x300 && trait(code) == kTraitNonspacing; }

bool is_control(std::uint32_t code) { return code < 0x80 ? code < 0x20 || code == 0x7f : trait(code) == kTraitControl; }

}  // namespace rondo::models
