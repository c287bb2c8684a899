#include "models/tokenizers/piece_text.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "models/printable.h"
#include "models/tokenizers/split_expression.h"
#include "models/utf8.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kSpacesKey = "rondo.spaces";

bool is_white_space(std::uint32_t code) { return unicode_class(code) == UnicodeClass::kWhiteSpace; }

/// `text` without the white space of all kinds at its end.
std::string_view without_blanks_behind(std::string_view text) {
  std::size_t end = 0;
  for (std::size_t place = 0; place < text.size();) {
    const TextCharacter character = character_at(text, place);
    place += character.bytes;
    if (!is_white_space(character.code)) end = place;
  }
  return text.substr(0, end);
}

}  // namespace

bool PieceText::is_there(const GgufFile& file) {
  return file.has(kSpacesKey);
}

Result<PieceText> PieceText::read(const GgufFile& file, const ByteSource* source, const Vocabulary& vocabulary) {
  constexpr std::array<std::pair<std::string_view, Spaces>, 4> kNames = {
      {{"", Spaces::kLlama}, {"sentencepiece", Spaces::kSentencePiece}, {"metaspace", Spaces::kMetaspace}, {"words", Spaces::kWords}}};
  PieceText text;
  RONDO_ASSIGN(const std::string_view name, file.string_or(kSpacesKey, ""));
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const auto& known) { return known.first == name; });
  if (found == kNames.end()) return file.key_error(kSpacesKey, fmt::format("is '{}', expected 'sentencepiece', 'metaspace' or 'words'", printable(name)));
  text.spaces_ = found->second;
  RONDO_ASSIGN(text.charsmap_, Charsmap::read(file, source));
  RONDO_ASSIGN(text.prefix_, file.boolean_or("tokenizer.ggml.add_space_prefix", false));
  RONDO_ASSIGN(text.collapses_, file.boolean_or("tokenizer.ggml.remove_extra_whitespaces", false));
  RONDO_ASSIGN(text.visible_, file.boolean_or("rondo.visible_spaces", true));
  RONDO_ASSIGN(text.strips_end_, file.boolean_or("rondo.strip_end", false));
  RONDO_ASSIGN(text.splits_, file.boolean_or("rondo.splits_at_spaces", false));
  if (!text.as_sentence_piece()) return text;
  std::vector<PieceTrie::Piece> whole;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view spelling = vocabulary.spelling(id);
    if (vocabulary.type(id) != TokenType::kUserDefined || spelling.empty()) continue;
    if (spelling.size() > PieceTrie::kMaxPieceBytes) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}' holds a user-defined token of {} bytes at index {}, expected at most {}", file.name(), kTokensKey,
                                                          spelling.size(), id, PieceTrie::kMaxPieceBytes));
    }
    whole.push_back({spelling, id});
  }
  text.whole_tokens_ = PieceTrie(std::move(whole));
  return text;
}

PieceText::Part PieceText::first_part(std::string_view text) const {
  if (const std::size_t size = whole_tokens_.longest(text).size) return {text.substr(0, size), size};
  if (const Charsmap::Match match = charsmap_.find(text); match.size > 0) return {match.replacement, match.size};
  const std::size_t size = utf8_character_bytes(text);
  return size == 0 ? Part{kReplacement, 1} : Part{text.substr(0, size), size};
}

std::string PieceText::made_visible(std::string_view text, bool begins) const {
  if (spaces_ == Spaces::kLlama) return as_llama(text);
  return spaces_ == Spaces::kSentencePiece ? in_sentence_piece(text, begins) : as_metaspace(text, begins);
}

std::string PieceText::as_llama(std::string_view text) const {
  std::string out;
  bool in_word = false, has_prefix = false;
  while (!text.empty()) {
    const Part part = first_part(text);
    for (const char byte : part.text) {
      if (byte == ' ') {
        in_word = false;
        if (!collapses_) out += kSpace;
        continue;
      }
      if (!in_word && ((prefix_ && !has_prefix) || collapses_)) {
        out += kSpace;
        has_prefix = true;
      }
      in_word = true;
      out += byte;
    }
    text.remove_prefix(part.size);
  }
  return out;
}

std::string PieceText::in_sentence_piece(std::string_view text, bool begins) const {
  const std::string_view space = visible_ ? kSpace : std::string_view(" ");
  std::string out;
  while (collapses_ && !text.empty() && first_part(text).text == " ") text.remove_prefix(first_part(text).size);
  if (text.empty()) return out;
  if (prefix_ && begins) out += space;
  bool behind_space = collapses_;
  while (!text.empty()) {
    Part part = first_part(text);
    while (behind_space && part.text.starts_with(' ')) part.text.remove_prefix(1);
    for (const char byte : part.text) {
      if (byte == ' ') out += space;
      else out += byte;
    }
    if (!part.text.empty()) behind_space = collapses_ && part.text.ends_with(' ');
    text.remove_prefix(part.size);
  }
  while (collapses_ && out.ends_with(space)) out.resize(out.size() - space.size());
  return out;
}

std::string PieceText::as_metaspace(std::string_view text, bool begins) const {
  std::string mapped, out;
  while (!text.empty()) {
    const Part part = first_part(text);
    mapped += part.text;
    text.remove_prefix(part.size);
  }
  std::string_view rest = strips_end_ ? without_blanks_behind(mapped) : std::string_view(mapped);
  if (spaces_ == Spaces::kWords) {
    bool in_word = false;
    for (std::size_t place = 0; place < rest.size();) {
      const TextCharacter character = character_at(rest, place);
      const std::string_view bytes = rest.substr(place, character.bytes);
      place += character.bytes;
      const bool blank = is_white_space(character.code);
      if (!blank && !in_word && bytes != kSpace) out += kSpace;
      if (!blank) out += bytes;
      in_word = !blank;
    }
    return out;
  }
  if (rest.empty()) return out;
  if (prefix_ && begins && !rest.starts_with(' ') && !rest.starts_with(kSpace)) out += kSpace;
  for (std::size_t place = 0; place < rest.size(); ++place) {
    if (rest[place] != ' ') out += rest[place];
    else if (!collapses_ || place == 0 || rest[place - 1] != ' ') out += kSpace;
  }
  return out;
}

}  // namespace rondo::models
