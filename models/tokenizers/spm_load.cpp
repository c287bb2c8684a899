#include <algorithm>
#include <cmath>
#include <span>

#include "models/printable.h"
#include "models/tokenizers/spm.h"
#include "runtime/fmt.h"

namespace rondo::models {

Result<SpmTokenizer> SpmTokenizer::create(const GgufFile& file, const ByteSource* source) {
  SpmTokenizer tokenizer;
  RONDO_ASSIGN(tokenizer.vocabulary_, Vocabulary::read(file, Vocabulary::DefaultIds::kSentencePiece));
  RONDO_ASSIGN(tokenizer.by_rank_, file.boolean_or("rondo.merges_by_rank", false));
  RONDO_TRY(tokenizer.load_pieces(file));
  RONDO_TRY(tokenizer.load_bytes(file));
  RONDO_TRY(tokenizer.vocabulary_.index(file, false));
  if (tokenizer.by_rank_) {
    RONDO_ASSIGN(tokenizer.merges_, MergeTable::read(file, tokenizer.vocabulary_));
  }
  RONDO_ASSIGN(tokenizer.add_bos_, file.boolean_or("tokenizer.ggml.add_bos_token", true));
  RONDO_ASSIGN(tokenizer.add_space_prefix_, file.boolean_or("tokenizer.ggml.add_space_prefix", true));
  tokenizer.has_text_ = PieceText::is_there(file);
  if (tokenizer.has_text_) {
    RONDO_ASSIGN(tokenizer.text_, PieceText::read(file, source, tokenizer.pieces()));
    if (tokenizer.text_.as_sentence_piece() && !tokenizer.has_own_) tokenizer.vocabulary_.leave_user_defined();
  }
  RONDO_ASSIGN(tokenizer.fuses_unknown_, file.boolean_or("rondo.fuse_unknown", false));
  RONDO_ASSIGN(tokenizer.byte_fallback_, file.boolean_or("rondo.byte_fallback", true));
  RONDO_ASSIGN(const std::string_view where, file.string_or("rondo.space_prefix", ""));
  if (where == "section") tokenizer.space_prefix_ = SpacePrefix::kSection;
  if (where == "always") tokenizer.space_prefix_ = SpacePrefix::kAlways;
  if (where == "first") tokenizer.space_prefix_ = SpacePrefix::kFirst;
  return tokenizer;
}

Status SpmTokenizer::load_pieces(const GgufFile& file) {
  has_own_ = OwnPieces::are_there(file);
  if (has_own_) {
    RONDO_ASSIGN(own_, OwnPieces::read(file, vocabulary_));
    scores_ = own_.scores;
    return own_.spellings.index(file, false);
  }
  if (by_rank_) return {};
  RONDO_ASSIGN(scores_, read_scores(file, "rondo.score_bits", vocabulary_.size()));
  return {};
}

Status SpmTokenizer::load_bytes(const GgufFile& file) {
  RONDO_ASSIGN(byte_tokens_, models::byte_tokens(file, vocabulary_));
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
