#include "models/tokenizers/spm.h"

#include <algorithm>
#include <map>
#include <queue>

namespace rondo::models {

namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
// Positions within a run are 32-bit; longer texts are encoded in runs.
constexpr std::size_t kMaxRunBytes = std::size_t{1} << 30;

struct Symbol {
  std::int32_t prev;
  std::int32_t next;
  std::uint32_t begin;
  std::uint32_t size;  // 0 once it became part of its left neighbour
  std::int32_t token;  // -1 while it isn't one
};

struct Bigram {
  float score;
  std::int32_t left;
  std::int32_t right;
  std::uint32_t size;
  std::int32_t token;
};

/// Whether `a` is merged after `b`.
struct MergedLater {
  bool operator()(const Bigram& a, const Bigram& b) const {
    return a.score < b.score || (a.score == b.score && a.left > b.left);
  }
};

/// Bytes of the UTF-8 sequence that `text` begins with; 1 if it is none.
std::size_t sequence_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  if (size > text.size()) return 1;
  for (std::size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 1;
  }
  return size;
}

std::string with_visible_spaces(std::string_view text, bool prefix) {
  std::string out;
  const auto n_spaces = static_cast<std::size_t>(std::count(text.begin(), text.end(), ' '));
  out.reserve(text.size() + (n_spaces + 1) * kSpace.size());
  if (prefix) out += kSpace;
  for (const char c : text) {
    if (c == ' ') {
      out += kSpace;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view SpmTokenizer::spelling(std::int32_t token) const {
  if (!is_in_vocabulary(token)) return {};
  const auto index = static_cast<std::size_t>(token);
  const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
  return std::string_view(text_).substr(begin, ends_[index] - begin);
}

std::int32_t SpmTokenizer::find_mergeable(std::string_view text) const {
  if (text.size() > max_mergeable_bytes_) return -1;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = std::hash<std::string_view>()(text) & mask; slots_[slot] >= 0; slot = (slot + 1) & mask) {
    if (spelling(slots_[slot]) == text) return slots_[slot];
  }
  return -1;
}

/// The longest of `specials` that `text` begins with, or -1.
std::int32_t SpmTokenizer::find_special(const SpecialTokens& specials, std::string_view text) const {
  std::int32_t longest = -1;
  auto begin = specials.ids.begin();
  auto end = specials.ids.end();
  for (std::size_t depth = 0; depth < text.size() && begin != end; ++depth) {
    const auto byte = static_cast<unsigned char>(text[depth]);
    // Within [begin, end) all spellings share `depth` bytes; one that ends there sorts first.
    const auto before = [&](std::int32_t id, int wanted) {
      const std::string_view candidate = spelling(id);
      return depth >= candidate.size() || static_cast<unsigned char>(candidate[depth]) < wanted;
    };
    begin = std::lower_bound(begin, end, int{byte}, before);
    end = std::lower_bound(begin, end, int{byte} + 1, before);
    if (begin != end && spelling(*begin).size() == depth + 1) longest = *begin;
  }
  return longest;
}

// Longest first over the whole text: a long token wins over a shorter one that begins further left.
void SpmTokenizer::resolve_overlaps(std::string_view text, const SpecialTokens& specials,
                                    std::vector<Fragment>& matches) const {
  const auto later = [](const Fragment& a, const Fragment& b) {
    return a.size < b.size || (a.size == b.size && a.begin > b.begin);
  };
  std::priority_queue<Fragment, std::vector<Fragment>, decltype(later)> queue(later, std::move(matches));
  std::map<std::size_t, Fragment> chosen;
  while (!queue.empty()) {
    Fragment match = queue.top();
    queue.pop();
    const auto next = chosen.upper_bound(match.begin);
    if (next != chosen.begin()) {
      const Fragment& before = std::prev(next)->second;
      if (before.begin + before.size > match.begin) continue;
    }
    if (next == chosen.end() || next->first >= match.begin + match.size) {
      chosen.emplace(match.begin, match);
      continue;
    }
    match.token = find_special(specials, text.substr(match.begin, next->first - match.begin));
    match.size = spelling(match.token).size();
    if (match.token >= 0) queue.push(match);
  }
  matches.clear();
  for (const auto& entry : chosen) matches.push_back(entry.second);
}

std::vector<SpmTokenizer::Fragment> SpmTokenizer::partition(std::string_view text,
                                                            const SpecialTokens& specials) const {
  std::vector<Fragment> fragments;
  std::size_t done = 0;
  std::vector<Fragment> cluster;  // matches that overlap each other
  std::size_t cluster_end = 0;
  const auto flush = [&] {
    if (cluster.size() > 1) resolve_overlaps(text, specials, cluster);
    for (const Fragment& match : cluster) {
      if (match.begin > done) fragments.push_back(Fragment{done, match.begin - done, -1});
      fragments.push_back(match);
      done = match.begin + match.size;
    }
    cluster.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!specials.first_bytes[static_cast<unsigned char>(text[i])]) continue;
    const std::int32_t token = find_special(specials, text.substr(i));
    if (token < 0) continue;
    if (i >= cluster_end) flush();
    const std::size_t size = spelling(token).size();
    cluster.push_back(Fragment{i, size, token});
    cluster_end = std::max(cluster_end, i + size);
  }
  flush();
  if (done < text.size()) fragments.push_back(Fragment{done, text.size() - done, -1});
  return fragments;
}

void SpmTokenizer::encode_character(std::string_view character, std::vector<std::int32_t>& tokens) const {
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::all_of(character.begin(), character.end(), [&](char c) { return byte_token(c) >= 0; })) {
    for (const char c : character) tokens.push_back(byte_token(c));
  } else if (unknown_ >= 0) {
    tokens.push_back(unknown_);
  }
}

void SpmTokenizer::encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const {
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t size = sequence_bytes(text.substr(begin));
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back(Symbol{index - 1, index + 1, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size),
                             find_mergeable(text.substr(begin, size))});
    begin += size;
  }
  if (symbols.empty()) return;
  symbols.back().next = -1;

  const auto at = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };
  const auto make_bigram = [&](std::int32_t left, std::int32_t right, Bigram& bigram) {
    if (left < 0 || right < 0) return false;
    const std::uint32_t size = at(left).size + at(right).size;
    const std::int32_t token = find_mergeable(text.substr(at(left).begin, size));
    if (token < 0) return false;
    bigram = Bigram{scores_[static_cast<std::size_t>(token)], left, right, size, token};
    return true;
  };

  std::vector<Bigram> first;
  first.reserve(symbols.size());
  Bigram bigram = {};
  for (std::int32_t left = 0; at(left).next >= 0; ++left) {
    if (make_bigram(left, left + 1, bigram)) first.push_back(bigram);
  }
  std::priority_queue<Bigram, std::vector<Bigram>, MergedLater> queue(MergedLater(), std::move(first));
  while (!queue.empty()) {
    const Bigram best = queue.top();
    queue.pop();
    Symbol& left = at(best.left);
    Symbol& right = at(best.right);
    // One of the two has been merged with something else since.
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    left.token = best.token;
    right.size = 0;
    left.next = right.next;
    if (right.next >= 0) at(right.next).prev = best.left;
    if (make_bigram(left.prev, best.left, bigram)) queue.push(bigram);
    if (make_bigram(best.left, left.next, bigram)) queue.push(bigram);
  }

  for (std::int32_t index = 0; index >= 0; index = at(index).next) {
    const Symbol& symbol = at(index);
    if (symbol.token >= 0) {
      tokens.push_back(symbol.token);
    } else {
      encode_character(text.substr(symbol.begin, symbol.size), tokens);
    }
  }
}

std::vector<std::int32_t> SpmTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::int32_t> tokens;
  if (options.add_bos && add_bos_ && bos_ >= 0) tokens.push_back(bos_);
  bool after_special = true;
  for (const Fragment& fragment : partition(text, options.parse_special ? all_specials_ : user_defined_)) {
    if (fragment.token >= 0) {
      tokens.push_back(fragment.token);
      // As SentencePiece does, and unlike llama.cpp: a user-defined symbol is text, so what follows it begins no new text.
      after_special = type(fragment.token) != TokenType::kUserDefined;
      continue;
    }
    const std::string visible =
        with_visible_spaces(text.substr(fragment.begin, fragment.size), add_space_prefix_ && after_special);
    for (std::size_t begin = 0; begin < visible.size(); begin += kMaxRunBytes) {
      encode_run(std::string_view(visible).substr(begin, kMaxRunBytes), tokens);
    }
    after_special = false;
  }
  return tokens;
}

void SpmTokenizer::append_piece(std::int32_t token, std::string& out) const {
  if (!is_in_vocabulary(token)) return;
  std::string_view text = spelling(token);
  switch (type(token)) {
    case TokenType::kUndefined:
    case TokenType::kNormal:
      for (std::size_t space = text.find(kSpace); space != std::string_view::npos; space = text.find(kSpace)) {
        out += text.substr(0, space);
        out += ' ';
        text.remove_prefix(space + kSpace.size());
      }
      out += text;
      break;
    case TokenType::kUserDefined:
      out += text;
      break;
    case TokenType::kByte:
      out += static_cast<char>(byte_value(text));
      break;
    case TokenType::kUnknown:
    case TokenType::kControl:
    case TokenType::kUnused:
      break;
  }
}

std::string SpmTokenizer::piece(std::int32_t token) const {
  std::string out;
  append_piece(token, out);
  return out;
}

std::string SpmTokenizer::decode(std::span<const std::int32_t> tokens) const {
  std::string out;
  bool strip = add_space_prefix_;
  for (const std::int32_t token : tokens) {
    append_piece(token, out);
    if (!strip || out.empty()) continue;
    // encode puts its space before text, not before a user-defined token.
    if (out[0] == ' ' && type(token) != TokenType::kUserDefined) out.erase(0, 1);
    strip = false;
  }
  return out;
}

}  // namespace rondo::models
