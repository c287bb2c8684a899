#include "models/tokenizers/spm.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace rondo::models {

namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
// Positions within a run are 32-bit; longer texts are encoded in runs.
constexpr std::size_t kMaxRunBytes = std::size_t{1} << 30;

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

struct SpmTokenizer::Symbol {
  std::int32_t prev;
  std::int32_t next;
  std::uint32_t begin;
  std::uint32_t size;  // 0 once it became part of its left neighbour
  std::int32_t token;  // of pieces(), -1 while it isn't one
  bool whole;          // and merges with nothing
};

void SpmTokenizer::encode_character(std::string_view character, std::vector<std::int32_t>& tokens) const {
  const auto byte_token = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (byte_fallback_ && std::all_of(character.begin(), character.end(), [&](char c) { return byte_token(c) >= 0; })) {
    for (const char c : character) tokens.push_back(byte_token(c));
  } else if (vocabulary_.unknown() >= 0) {
    tokens.push_back(vocabulary_.unknown());
  }
}

std::vector<SpmTokenizer::Symbol> SpmTokenizer::symbols_of(std::string_view text) const {
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const PieceTrie::Match whole = text_.has_whole_tokens() ? text_.whole_token(text.substr(begin)) : PieceTrie::Match();
    const std::size_t size = whole.value >= 0 ? whole.size : sequence_bytes(text.substr(begin));
    const auto index = static_cast<std::int32_t>(symbols.size());
    symbols.push_back(Symbol{index - 1, index + 1, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size),
                             whole.value >= 0 ? whole.value : pieces().find(text.substr(begin, size)), whole.value >= 0});
    begin += size;
  }
  if (!symbols.empty()) symbols.back().next = -1;
  return symbols;
}

void SpmTokenizer::encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const {
  std::vector<Symbol> symbols = symbols_of(text);
  if (symbols.empty()) return;

  const auto at = [&](std::int32_t index) -> Symbol& { return symbols[static_cast<std::size_t>(index)]; };
  const auto make_bigram = [&](std::int32_t left, std::int32_t right, Bigram& bigram) {
    if (left < 0 || right < 0 || at(left).whole || at(right).whole) return false;
    const std::uint32_t size = at(left).size + at(right).size;
    if (by_rank_) {
      const std::int32_t rank = merges_.find(at(left).token, at(right).token);
      if (rank < 0) return false;
      // Ranks are below 2^24: floats have them all.
      bigram = Bigram{-static_cast<float>(rank), left, right, size, merges_[static_cast<std::size_t>(rank)].token};
      return true;
    }
    const std::int32_t token = pieces().find(text.substr(at(left).begin, size));
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

  bool behind_unknown = false;
  for (std::int32_t index = 0; index >= 0; index = at(index).next) {
    const Symbol& symbol = at(index);
    if (symbol.token >= 0) {
      tokens.push_back(has_own_ ? own_.ids[static_cast<std::size_t>(symbol.token)] : symbol.token);
      behind_unknown = false;
    } else if (!behind_unknown) {
      const std::size_t n_before = tokens.size();
      encode_character(text.substr(symbol.begin, symbol.size), tokens);
      behind_unknown = fuses_unknown_ && tokens.size() == n_before + 1 && tokens.back() == vocabulary_.unknown();
    }
  }
}

void SpmTokenizer::encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const {
  const bool as_metaspace = space_prefix_ == SpacePrefix::kAlways || space_prefix_ == SpacePrefix::kFirst;
  const bool has_space = as_metaspace && (text.starts_with(' ') || text.starts_with(kSpace));
  const std::string whole = has_text_ ? text_.made_visible(text, begins_text) : with_visible_spaces(text, add_space_prefix_ && begins_text && !has_space);
  const std::string_view visible = whole;
  for (std::size_t begin = 0, end = 0; begin < visible.size(); begin = end) {
    end = text_.splits() ? std::min(visible.find(kSpace, begin + 1), visible.size()) : visible.size();
    end = std::min(end, begin + kMaxRunBytes);
    encode_run(visible.substr(begin, end - begin), tokens);
  }
}

void SpmTokenizer::append_text(std::int32_t token, std::string& out) const { append_piece_text(vocabulary_, token, out); }

}  // namespace rondo::models
