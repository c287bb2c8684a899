#include "models/tokenizers/split_expression.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>

#include "models/utf8.h"
#include "unicode_class_table.h"

namespace rondo::models {

namespace {

using Kind = SplitItem::Kind;
using Alternatives = std::vector<std::vector<SplitItem>>;

constexpr std::size_t kNoMatch = std::numeric_limits<std::size_t>::max();
constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kReplacement = 0xfffd;

std::uint32_t class_bit(UnicodeClass which) { return 1U << static_cast<std::uint32_t>(which); }

/// Reads an expression, as the header describes it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Alternatives alternatives() {
    Alternatives all(1);
    while (!text_.empty() && text_[0] != ')') {
      if (take("|")) {
        all.emplace_back();
      } else {
        all.back().push_back(item());
      }
    }
    return all;
  }

 private:
  bool take(std::string_view what) {
    if (!text_.starts_with(what)) return false;
    text_.remove_prefix(what.size());
    return true;
  }

  char next() {
    const char c = text_[0];
    text_.remove_prefix(1);
    return c;
  }

  std::uint32_t number(std::uint32_t base) {
    std::uint32_t value = 0;
    for (; !text_.empty() && text_[0] != '}' && text_[0] != ','; text_.remove_prefix(1)) {
      const char c = text_[0];
      value = value * base + static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    return value;
  }

  SplitItem item() {
    SplitItem out;
    if (take("(?!")) {
      out = item();
      out.kind = Kind::kNotBefore;
      take(")");
    } else if (take("(?:")) {
      out.kind = Kind::kGroup;
      out.group = alternatives();
      take(")");
    } else if (take("(?i:")) {
      any_case_ = true;
      out.kind = Kind::kGroup;
      out.group = alternatives();
      take(")");
      any_case_ = false;
    } else if (take("$")) {
      out.kind = Kind::kEnd;
    } else {
      out.set = set();
    }
    read_count(out);
    return out;
  }

  void read_count(SplitItem& out) {
    if (take("?")) out.min = 0;
    if (take("*")) out.min = 0, out.max = kAny;
    if (take("+")) out.max = kAny;
    if (!take("{")) return;
    out.min = out.max = number(10);
    if (take(",")) out.max = number(10);
    take("}");
  }

  CharacterSet set() {
    CharacterSet out;
    if (take("[")) {
      out.negated = take("^");
      while (!take("]")) add_part(out);
    } else {
      add_part(out);
    }
    finish(out);
    return out;
  }

  /// A character, a class of them or a range.
  void add_part(CharacterSet& out) {
    const bool escaped = take("\\");
    const char c = next();
    if (escaped && (c == 's' || c == 'S' || c == 'p' || c == 'P')) {
      std::uint32_t bit = class_bit(UnicodeClass::kWhiteSpace);
      if (c == 'p' || c == 'P') {
        constexpr std::string_view kLetters = "C LNPSM";  // in the order of UnicodeClass
        take("{");
        bit = 1U << kLetters.find(next());
        take("}");
      }
      out.classes |= c == 's' || c == 'p' ? bit : ~bit;
      return;
    }
    const std::uint32_t first = escaped ? escape(c) : static_cast<unsigned char>(c);
    std::uint32_t last = first;
    if (text_.size() > 1 && text_[0] == '-' && text_[1] != ']') {
      take("-");
      last = take("\\") ? escape(next()) : static_cast<unsigned char>(next());
    }
    out.ranges.emplace_back(first, last);
    const std::uint32_t lower = first | 0x20;
    if (any_case_ && lower >= 'a' && lower <= 'z') out.ranges.emplace_back(first ^ 0x20, first ^ 0x20);
  }

  std::uint32_t escape(char c) {
    if (c == 'r') return '\r';
    if (c == 'n') return '\n';
    if (c == 't') return '\t';
    if (c != 'x') return static_cast<unsigned char>(c);
    take("{");
    const std::uint32_t code = number(16);
    take("}");
    return code;
  }

  static void finish(CharacterSet& out) {
    for (std::uint32_t code = 0; code < out.ascii.size(); ++code) {
      const bool listed = (out.classes & class_bit(unicode_class(code))) != 0 ||
                          std::any_of(out.ranges.begin(), out.ranges.end(), [&](const auto& range) {
                            return code >= range.first && code <= range.second;
                          });
      out.ascii[code] = listed != out.negated;
    }
    std::sort(out.ranges.begin(), out.ranges.end());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> merged;
    for (const auto& range : out.ranges) {
      if (range.second < out.ascii.size()) continue;
      if (!merged.empty() && range.first <= merged.back().second) {
        merged.back().second = std::max(merged.back().second, range.second);
      } else {
        merged.push_back(range);
      }
    }
    out.ranges = std::move(merged);
  }

  std::string_view text_;
  bool any_case_ = false;
};

/// Where the character begins that ends at `end`, in front of which is one.
std::size_t begin_of_character(std::string_view text, std::size_t end) {
  for (std::size_t bytes = 4; bytes > 1; --bytes) {
    if (bytes <= end && utf8_character_bytes(text.substr(end - bytes, bytes)) == bytes) return end - bytes;
  }
  return end - 1;
}

/// Where the match of `alternatives` at `place` ends, or kNoMatch.
std::size_t match_first(const Alternatives& alternatives, std::string_view text, std::size_t place);

/// The same for `items`, one after the other.
std::size_t match_items(std::span<const SplitItem> items, std::string_view text, std::size_t place) {
  for (; !items.empty(); items = items.subspan(1)) {
    const SplitItem& item = items[0];
    if (item.kind == Kind::kEnd) {
      if (place != text.size()) return kNoMatch;
      continue;
    }
    if (item.kind == Kind::kNotBefore) {
      if (place < text.size() && item.set.has(character_at(text, place).code)) return kNoMatch;
      continue;
    }
    std::uint32_t n = 0;
    if (item.kind == Kind::kGroup) {
      for (std::size_t end = place; n < item.max; ++n, place = end) {
        end = match_first(item.group, text, place);
        if (end == kNoMatch) break;
      }
      if (n < item.min) return kNoMatch;
      continue;
    }
    for (; n < item.max && place < text.size(); ++n) {
      const TextCharacter next = character_at(text, place);
      if (!item.set.has(next.code)) break;
      place += next.bytes;
    }
    if (n < item.min) return kNoMatch;
    for (; n > item.min; --n) {
      const std::size_t end = match_items(items.subspan(1), text, place);
      if (end != kNoMatch) return end;
      place = begin_of_character(text, place);
    }
  }
  return place;
}

std::size_t match_first(const Alternatives& alternatives, std::string_view text, std::size_t place) {
  for (const auto& items : alternatives) {
    const std::size_t end = match_items(items, text, place);
    if (end != kNoMatch) return end;
  }
  return kNoMatch;
}

}  // namespace

UnicodeClass unicode_class(std::uint32_t code) {
  if (code >= kEndOfUnicode) return UnicodeClass::kOther;
  const std::uint32_t* range =
      std::upper_bound(std::begin(kUnicodeRanges), std::end(kUnicodeRanges), code,
                       [](std::uint32_t wanted, std::uint32_t entry) { return wanted < entry >> kUnicodeClassBits; });
  return static_cast<UnicodeClass>(range[-1] & ((1U << kUnicodeClassBits) - 1));
}

TextCharacter character_at(std::string_view text, std::size_t place) {
  const std::uint32_t lead = static_cast<unsigned char>(text[place]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = utf8_character_bytes(text.substr(place, 4));
  if (bytes == 0) return {kReplacement, 1};
  std::uint32_t code = lead & 0x7fU >> bytes;
  for (std::size_t i = 1; i < bytes; ++i) code = code << 6 | (static_cast<unsigned char>(text[place + i]) & 0x3fU);
  return {code, static_cast<std::uint32_t>(bytes)};
}

bool CharacterSet::has(std::uint32_t code) const {
  if (code < ascii.size()) return ascii[code];
  const UnicodeClass kind = unicode_class(code);
  if (kind == UnicodeClass::kWhiteSpace) return ascii['\v'];
  if ((classes & class_bit(kind)) != 0) return !negated;
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), code,
                                       [](std::uint32_t wanted, const auto& range) { return wanted < range.first; });
  return (behind != ranges.begin() && code <= behind[-1].second) != negated;
}

SplitExpression::SplitExpression(std::string_view expression) : alternatives_(Parser(expression).alternatives()) {}

void SplitExpression::split(std::string_view text, std::size_t begin, std::vector<std::size_t>& ends) const {
  // An alternative that begins with a run of a set and did not match at one character of the run matches at none of the
  // others: they would take the same end. Such runs are read once, which keeps the time in proportion.
  std::vector<std::size_t> hopeless_until(alternatives_.size(), 0);
  std::size_t unmatched = 0;
  for (std::size_t place = 0; place < text.size();) {
    std::size_t end = kNoMatch;
    for (std::size_t i = 0; i < alternatives_.size() && end == kNoMatch; ++i) {
      const auto& items = alternatives_[i];
      if (place < hopeless_until[i]) continue;
      end = match_items(items, text, place);
      if (end == kNoMatch && items[0].kind == Kind::kSet && items[0].max == kAny) {
        hopeless_until[i] = match_items(std::span(items).first(1), text, place);
        if (hopeless_until[i] == kNoMatch) hopeless_until[i] = 0;
      }
    }
    if (end == kNoMatch) {
      place += character_at(text, place).bytes;
      continue;
    }
    if (place > unmatched) ends.push_back(begin + place);
    ends.push_back(begin + end);
    place = unmatched = end;
  }
  if (text.size() > unmatched) ends.push_back(begin + text.size());
}

}  // namespace rondo::models
