#include <algorithm>
#include <cmath>
#include <span>

#include "models/printable.h"
#include "models/tokenizers/spm.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";

}  // namespace

int SpmTokenizer::byte_value(std::string_view spelling) {
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

Result<SpmTokenizer> SpmTokenizer::create(const GgufFile& file) {
  SpmTokenizer tokenizer;
  RONDO_ASSIGN(tokenizer.vocabulary_, Vocabulary::read(file, Vocabulary::DefaultIds::kSentencePiece));
  RONDO_ASSIGN(tokenizer.by_rank_, file.boolean_or("rondo.merges_by_rank", false));
  if (!tokenizer.by_rank_) RONDO_TRY(tokenizer.load_scores(file));
  RONDO_TRY(tokenizer.load_bytes(file));
  RONDO_TRY(tokenizer.vocabulary_.index(file, false));
  if (tokenizer.by_rank_) {
    RONDO_ASSIGN(tokenizer.merges_, MergeTable::read(file, tokenizer.vocabulary_));
  }
  RONDO_ASSIGN(tokenizer.add_bos_, file.boolean_or("tokenizer.ggml.add_bos_token", true));
  RONDO_ASSIGN(tokenizer.add_space_prefix_, file.boolean_or("tokenizer.ggml.add_space_prefix", true));
  RONDO_ASSIGN(const std::string_view where, file.string_or("rondo.space_prefix", ""));
  if (where == "section") tokenizer.space_prefix_ = SpacePrefix::kSection;
  if (where == "always") tokenizer.space_prefix_ = SpacePrefix::kAlways;
  if (where == "first") tokenizer.space_prefix_ = SpacePrefix::kFirst;
  return tokenizer;
}

Status SpmTokenizer::load_scores(const GgufFile& file) {
  const auto n_tokens = static_cast<std::size_t>(vocabulary_.size());
  RONDO_ASSIGN(const std::span<const float> scores, file.f32s(kScoresKey));
  if (scores.size() != n_tokens) {
    return file.key_error(kScoresKey,
                          fmt::format("holds {} scores, expected one for each of {} tokens", scores.size(), n_tokens));
  }
  const auto nan = std::find_if(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
  if (nan != scores.end()) {
    return file.key_error(kScoresKey, fmt::format("holds a NaN at index {}, expected a number", nan - scores.begin()));
  }
  scores_.assign(scores.begin(), scores.end());
  return Status();
}

Status SpmTokenizer::load_bytes(const GgufFile& file) {
  byte_tokens_.fill(-1);
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.type(id) != TokenType::kByte) continue;
    const int value = byte_value(vocabulary_.spelling(id));
    if (value < 0) {
      return file.key_error(kTokensKey,
                            fmt::format("holds '{}' at index {}, which is marked as a byte, expected a name "
                                        "from '<0x00>' to '<0xFF>'",
                                        printable(vocabulary_.spelling(id)), id));
    }
    std::int32_t& token = byte_tokens_[static_cast<std::size_t>(value)];
    if (token < 0) token = id;
  }
  // Files without types, or with bytes marked as normal tokens.
  for (std::int32_t id = 0; id < vocabulary_.size(); ++id) {
    const int value = byte_value(vocabulary_.spelling(id));
    if (vocabulary_.type(id) != TokenType::kNormal || value < 0) continue;
    std::int32_t& token = byte_tokens_[static_cast<std::size_t>(value)];
    if (token >= 0) continue;
    token = id;
    vocabulary_.set_type(id, TokenType::kByte);
  }
  return Status();
}

}  // namespace rondo::models
