#include "models/tokenizers/word_piece.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "models/tokenizers/nfc.h"
#include "models/tokenizers/split_expression.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kWordBegin = "\xe2\x96\x81";  // U+2581
constexpr std::uint32_t kReplacement = 0xfffd;

/// Whether a character is an ideograph, by Hugging Face's ranges, which llama.cpp has too: the fifth should begin at 0x2b820.
bool is_ideograph(std::uint32_t code) {
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 8> kRanges = {{{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x2a6df},
                                                                               {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}}};
  return code >= kRanges[0].first && std::any_of(kRanges.begin(), kRanges.end(), [&](const auto& range) { return code >= range.first && code <= range.second; });
}

/// Calls `visit` with each character; bytes that are no UTF-8 are U+FFFD.
template <typename Visit>
void for_each_character(std::string_view text, Visit&& visit) {
  for (std::size_t place = 0; place < text.size();) {
    const TextCharacter character = character_at(text, place);
    visit(character.code);
    place += character.bytes;
  }
}

bool is_white_space(std::uint32_t code) { return unicode_class(code) == UnicodeClass::kWhiteSpace; }

/// Punctuation, which for words is all of ASCII that is visible and neither letter nor digit.
bool stands_alone(std::uint32_t code) {
  const UnicodeClass kind = unicode_class(code);
  return kind == UnicodeClass::kPunctuation || (code < 0x80 && kind == UnicodeClass::kSymbol);
}

void append_apart(std::uint32_t code, std::string& out) {
  out += ' ';
  append_utf8(code, out);
  out += ' ';
}

}  // namespace

Result<WordPieceTokenizer> WordPieceTokenizer::create(const GgufFile& file) {
  WordPieceTokenizer tokenizer;
  RONDO_ASSIGN(tokenizer.vocabulary_, Vocabulary::read(file, Vocabulary::DefaultIds::kNone));
  RONDO_ASSIGN(tokenizer.lower_case_, file.boolean_or("tokenizer.ggml.normalizer.lowercase", true));
  RONDO_ASSIGN(tokenizer.strip_accents_, file.boolean_or("tokenizer.ggml.normalizer.strip_accents", tokenizer.lower_case_));
  RONDO_ASSIGN(const std::string_view continuation, file.string_or("rondo.continuation", ""));
  tokenizer.continuation_ = continuation;
  tokenizer.as_hugging_face_ = file.has("rondo.continuation");
  RONDO_ASSIGN(tokenizer.max_word_characters_, file.u32_or("rondo.max_word_characters", tokenizer.max_word_characters_));
  RONDO_ASSIGN(tokenizer.clean_text_, file.boolean_or("rondo.clean_text", true));
  RONDO_ASSIGN(tokenizer.ideographs_apart_, file.boolean_or("rondo.ideographs_apart", true));
  tokenizer.add_space_prefix_ = true;  // as decode sees it
  RONDO_TRY(tokenizer.load_pieces(file));
  RONDO_TRY(tokenizer.vocabulary_.index(file, false));
  RONDO_TRY(tokenizer.load_ids(file));
  return tokenizer;
}

Status WordPieceTokenizer::load_pieces(const GgufFile& file) {
  std::vector<PieceTrie::Piece> beginnings, continuations;
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
    std::string_view text = vocabulary_.spelling(id);
    if (text.empty() || vocabulary_.type(id) == TokenType::kUnused) continue;
    if (text.size() > PieceTrie::kMaxPieceBytes) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}' holds a token of {} bytes at index {}, expected at most {}", file.name(), kTokensKey, text.size(), id,
                                                          PieceTrie::kMaxPieceBytes));
    }
    if (!as_hugging_face_) {
      continuations.push_back({text, id});
      continue;
    }
    beginnings.push_back({text, id});
    if (!text.starts_with(continuation_) || text.size() == continuation_.size()) continue;
    text.remove_prefix(continuation_.size());
    continuations.push_back({text, id});
  }
  beginnings_ = PieceTrie(std::move(beginnings));
  continuations_ = PieceTrie(std::move(continuations));
  return {};
}

Status WordPieceTokenizer::load_ids(const GgufFile& file) {
  // BERT's, for files that do not say.
  std::uint32_t cls = vocabulary_.bos() >= 0 ? static_cast<std::uint32_t>(vocabulary_.bos()) : 101, separator = 102;
  RONDO_ASSIGN(cls, file.u32_or("tokenizer.ggml.cls_token_id", cls));
  RONDO_ASSIGN(separator, file.u32_or("tokenizer.ggml.seperator_token_id", separator));  // spelt so there
  RONDO_ASSIGN(add_bos_, file.boolean_or("tokenizer.ggml.add_bos_token", true));
  RONDO_ASSIGN(const bool adds_separator, file.boolean_or("tokenizer.ggml.add_sep_token", true));
  const auto put = [&](std::string_view key, bool wanted, std::uint32_t id, std::vector<std::int32_t>& ids) -> Status {
    if (!wanted) return {};
    if (id >= static_cast<std::uint32_t>(vocabulary_.size())) return file.key_error(key, fmt::format("is {}, expected a token id below {}", id, vocabulary_.size()));
    ids = {static_cast<std::int32_t>(id)};
    return {};
  };
  if (file.has("rondo.tokens_before")) return {};  // the base reads them
  RONDO_TRY(put("tokenizer.ggml.cls_token_id", add_bos_, cls, before_));
  RONDO_TRY(put("tokenizer.ggml.seperator_token_id", adds_separator, separator, after_));
  between_ = after_;
  return {};
}

std::string WordPieceTokenizer::words_as_llama(std::string_view text) const {
  std::string out;
  for_each_character(text, [&](std::uint32_t code) {
    if (strip_accents_) code = first_decomposed(code);
    if (is_white_space(code)) {
      out += ' ';
      return;
    }
    if (code == 0 || code == kReplacement || is_control(code)) return;
    if (strip_accents_ && unicode_class(code) == UnicodeClass::kMark) return;
    const std::uint32_t written = lower_case_ ? lower_case(code) : code;
    if (stands_alone(code) || is_ideograph(code)) return append_apart(written, out);
    append_utf8(written, out);
  });
  return out;
}

std::string WordPieceTokenizer::words_as_hugging_face(std::string_view text) const {
  std::string clean, out;
  for_each_character(text, [&](std::uint32_t code) {
    if (clean_text_) {
      const bool is_blank = code == '\t' || code == '\n' || code == '\r';
      if (code == 0 || code == kReplacement || (is_control(code) && !is_blank)) return;
      if (is_blank || is_white_space(code)) code = ' ';
    }
    if (ideographs_apart_ && is_ideograph(code)) return append_apart(code, clean);
    append_utf8(code, clean);
  });
  if (strip_accents_) clean = to_nfd(clean);
  for_each_character(clean, [&](std::uint32_t code) {
    if (strip_accents_ && is_nonspacing_mark(code)) return;
    if (is_white_space(code)) {
      out += ' ';
      return;
    }
    const std::uint32_t written = lower_case_ ? lower_case(code) : code;
    if (stands_alone(written)) return append_apart(written, out);
    append_utf8(written, out);
    // The one character whose lower case is two.
    if (lower_case_ && code == 0x130) append_utf8(0x307, out);
  });
  return out;
}

void WordPieceTokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& tokens) const {
  const std::size_t n_before = tokens.size();
  // Words have no more characters than bytes.
  bool known = word.size() <= max_word_characters_ ||
               static_cast<std::size_t>(std::count_if(word.begin(), word.end(), [](char byte) { return (byte & 0xc0) != 0x80; })) <= max_word_characters_;
  const PieceTrie* pieces = as_hugging_face_ ? &beginnings_ : &continuations_;
  while (known && !word.empty()) {
    const PieceTrie::Match match = pieces->longest(word);
    known = match.value >= 0;
    word.remove_prefix(match.size);
    tokens.push_back(match.value);
    pieces = &continuations_;
  }
  if (known) return;
  tokens.resize(n_before);
  if (vocabulary_.unknown() >= 0) tokens.push_back(vocabulary_.unknown());
}

void WordPieceTokenizer::encode_text(std::string_view text, bool /*begins_text*/, std::vector<std::int32_t>& tokens) const {
  const std::string words = as_hugging_face_ ? words_as_hugging_face(text) : words_as_llama(text);
  std::string marked;
  for (std::size_t begin = 0, end = 0; begin < words.size(); begin = end + 1) {
    end = std::min(words.find(' ', begin), words.size());
    if (begin == end) continue;
    const std::string_view word = std::string_view(words).substr(begin, end - begin);
    if (as_hugging_face_) {
      encode_word(word, tokens);
      continue;
    }
    marked = kWordBegin;
    marked += word;
    encode_word(marked, tokens);
  }
}

void WordPieceTokenizer::append_text(std::int32_t token, std::string& out) const {
  std::string_view text = vocabulary_.spelling(token);
  const std::string_view mark = as_hugging_face_ ? std::string_view(continuation_) : kWordBegin;
  const bool marked = !mark.empty() && text.starts_with(mark);
  if (marked) text.remove_prefix(mark.size());
  if (marked != as_hugging_face_) out += ' ';
  out += text;
}

}  // namespace rondo::models
