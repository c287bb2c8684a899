#include "models/tokenizers/pieces.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

int byte_value(std::string_view spelling) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  const int high = digit(spelling[3]);
  const int low = digit(spelling[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Result<std::array<std::int32_t, 256>> byte_tokens(const GgufFile& file, const Vocabulary& vocabulary) {
  std::array<std::int32_t, 256> tokens;
  tokens.fill(-1);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) != TokenType::kByte) continue;
    const int value = byte_value(vocabulary.spelling(id));
    if (value < 0) {
      return file.key_error(kTokensKey,
                            fmt::format("holds '{}' at index {}, which is marked as a byte, expected a name "
                                        "from '<0x00>' to '<0xFF>'",
                                        printable(vocabulary.spelling(id)), id));
    }
    std::int32_t& token = tokens[static_cast<std::size_t>(value)];
    if (token < 0) token = id;
  }
  return tokens;
}

void append_piece_text(const Vocabulary& vocabulary, std::int32_t token, std::string& out) {
  constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581
  std::string_view text = vocabulary.spelling(token);
  if (vocabulary.type(token) == TokenType::kByte) {
    out += static_cast<char>(byte_value(text));
    return;
  }
  for (std::size_t space = text.find(kSpace); space != std::string_view::npos; space = text.find(kSpace)) {
    out += text.substr(0, space);
    out += ' ';
    text.remove_prefix(space + kSpace.size());
  }
  out += text;
}

Result<std::vector<float>> read_scores(const GgufFile& file, std::string_view bits_key, std::int32_t n) {
  constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
  const bool as_bits = file.has(bits_key);
  const std::string_view key = as_bits ? bits_key : kScoresKey;
  std::vector<float> scores;
  if (as_bits) {
    RONDO_ASSIGN(const std::span<const std::int32_t> bits, file.i32s(key));
    scores.reserve(bits.size());
    for (const std::int32_t value : bits) scores.push_back(std::bit_cast<float>(value));
  } else {
    RONDO_ASSIGN(const std::span<const float> values, file.f32s(key));
    scores.assign(values.begin(), values.end());
  }
  if (scores.size() != static_cast<std::size_t>(n)) {
    return file.key_error(key, fmt::format("holds {} scores, expected one for each of {} tokens", scores.size(), n));
  }
  const auto nan = std::find_if(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
  if (nan != scores.end()) return file.key_error(key, fmt::format("holds a NaN at index {}, expected a number", nan - scores.begin()));
  return scores;
}

bool OwnPieces::are_there(const GgufFile& file) { return file.has("rondo.pieces.tokens"); }

Result<OwnPieces> OwnPieces::read(const GgufFile& file, const Vocabulary& vocabulary) {
  constexpr std::string_view kIdsKey = "rondo.pieces.ids";
  OwnPieces pieces;
  RONDO_ASSIGN(pieces.spellings, Vocabulary::read_pieces(file, "rondo.pieces.tokens", "rondo.pieces.token_type"));
  RONDO_ASSIGN(pieces.scores, read_scores(file, "rondo.pieces.score_bits", pieces.spellings.size()));
  RONDO_ASSIGN(const std::span<const std::int32_t> ids, file.i32s(kIdsKey));
  if (ids.size() != pieces.scores.size()) return file.key_error(kIdsKey, fmt::format("holds {} ids, expected one for each of {} pieces", ids.size(), pieces.scores.size()));
  for (const std::int32_t id : ids) {
    if (!vocabulary.contains(id)) return file.key_error(kIdsKey, fmt::format("holds {}, expected token ids below {}", id, vocabulary.size()));
  }
  pieces.ids.assign(ids.begin(), ids.end());
  return pieces;
}

}  // namespace rondo::models
