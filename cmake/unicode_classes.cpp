// Writes the header that models/tokenizers/unicode_classes.h describes; runs during the build.
// usage: rondo_unicode_classes FILE
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <vector>

#include <utf8proc.h>

#include "models/tokenizers/unicode_classes.h"

namespace {

using namespace rondo::models;

UnicodeClass class_of(std::uint32_t code) {
  // PropList.txt gives White_Space to the separators and to six controls: tab to carriage return, and next line.
  if ((code >= 0x09 && code <= 0x0d) || code == 0x85) return UnicodeClass::kWhiteSpace;
  const char* category = utf8proc_category_string(static_cast<utf8proc_int32_t>(code));
  switch (category[0]) {
    case 'Z':
      return UnicodeClass::kWhiteSpace;
    case 'L':
      return UnicodeClass::kLetter;
    case 'N':
      return UnicodeClass::kNumber;
    case 'P':
      return UnicodeClass::kPunctuation;
    case 'S':
      return UnicodeClass::kSymbol;
    case 'M':
      return UnicodeClass::kMark;
    default:
      return UnicodeClass::kOther;
  }
}

/// What removes characters from text asks for these two kinds.
std::uint32_t trait_of(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_MN:
      return kTraitNonspacing;
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return kTraitControl;
    default:
      return 0;
  }
}

/// Runs of characters, all or every second, whose lower case is as far from them.
struct LowerCaseRuns {
  std::vector<std::uint32_t> first, last, step;
  std::vector<std::int64_t> distance;

  void add(std::uint32_t code, std::int64_t away) {
    if (!first.empty() && distance.back() == away && (code - last.back() == step.back() || (step.back() == 0 && code - last.back() <= 2))) {
      step.back() = code - last.back();
      last.back() = code;
      return;
    }
    first.push_back(code);
    last.push_back(code);
    step.push_back(0);
    distance.push_back(away);
  }
};

/// Appends `first << bits | value` where the value differs from the one before.
void add_to_ranges(std::vector<std::uint32_t>& ranges, std::uint32_t code, unsigned bits, std::uint32_t value) {
  if (ranges.empty() || (ranges.back() & ((1U << bits) - 1)) != value) ranges.push_back(code << bits | value);
}

using Codes = std::vector<utf8proc_int32_t>;

/// Canonical, and nothing for characters that are not decomposed.
Codes decomposed(std::uint32_t code) {
  Codes codes(32);
  int boundary = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), codes.data(), 32, UTF8PROC_DECOMPOSE, &boundary);
  codes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (codes.size() == 1 && codes[0] == static_cast<utf8proc_int32_t>(code)) codes.clear();
  return codes;
}

Codes composed(Codes codes) {
  const utf8proc_ssize_t n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  codes.resize(static_cast<std::size_t>(n));
  return codes;
}

template <typename T>
void write_table(std::ofstream& out, const char* type, const char* name, const std::vector<T>& values) {
  out << "constexpr " << type << ' ' << name << "[] = {";
  for (std::size_t i = 0; i < values.size(); ++i) out << (i % 16 == 0 ? "\n  " : "") << values[i] << ',';
  out << "\n};\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: rondo_unicode_classes FILE\n", stderr);
    return 2;
  }
  std::vector<std::uint32_t> ranges, combining, decomposed_codes, ends, parts;
  std::vector<std::uint32_t> traits;
  LowerCaseRuns lower;
  std::vector<std::uint64_t> compositions;
  for (std::uint32_t code = 0; code < kEndOfUnicode; ++code) {
    add_to_ranges(ranges, code, kUnicodeClassBits, static_cast<std::uint32_t>(class_of(code)));
    add_to_ranges(combining, code, 8, static_cast<std::uint32_t>(utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class));
    add_to_ranges(traits, code, kTraitBits, trait_of(code));
    const std::int64_t away = std::int64_t{utf8proc_tolower(static_cast<utf8proc_int32_t>(code))} - std::int64_t{code};
    if (away != 0) lower.add(code, away);
    const Codes codes = code >= 0xac00 && code < 0xd7a4 ? Codes() : decomposed(code);
    if (codes.empty()) continue;
    decomposed_codes.push_back(code);
    parts.insert(parts.end(), codes.begin(), codes.end());
    ends.push_back(static_cast<std::uint32_t>(parts.size()));
    if (composed(codes) != Codes{static_cast<utf8proc_int32_t>(code)} || codes.size() < 2) continue;
    const Codes first = composed({codes.begin(), codes.end() - 1});
    if (first.size() == 1) compositions.push_back(static_cast<std::uint64_t>(first[0]) << 42 | static_cast<std::uint64_t>(codes.back()) << 21 | code);
  }
  std::sort(compositions.begin(), compositions.end());

  std::ofstream out(argv[1]);
  out << "// Generated by rondo_unicode_classes: Unicode " << utf8proc_unicode_version() << ".\n#pragma once\n#include <cstdint>\nnamespace rondo::models {\n";
  write_table(out, "std::uint32_t", "kUnicodeRanges", ranges);
  write_table(out, "std::uint32_t", "kCombiningRanges", combining);
  write_table(out, "std::uint32_t", "kDecomposed", decomposed_codes);
  write_table(out, "std::uint16_t", "kDecompositionEnds", ends);
  write_table(out, "std::uint32_t", "kDecompositions", parts);
  write_table(out, "std::uint64_t", "kCompositions", compositions);
  write_table(out, "std::uint32_t", "kTraitRanges", traits);
  write_table(out, "std::uint32_t", "kLowerCaseFirst", lower.first);
  write_table(out, "std::uint32_t", "kLowerCaseLast", lower.last);
  write_table(out, "std::uint8_t", "kLowerCaseStep", lower.step);
  write_table(out, "std::int32_t", "kLowerCaseDistance", lower.distance);
  out << "}  // namespace rondo::models\n";
  out.close();
  if (!out) {
    std::fprintf(stderr, "rondo_unicode_classes: %s: cannot be written\n", argv[1]);
    return 1;
  }
  return 0;
}
