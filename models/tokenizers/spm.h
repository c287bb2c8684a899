// The tokenizer of GGUF files with tokenizer.ggml.model = "llama": SentencePiece BPE with byte fallback.
// Kudo and Richardson, "SentencePiece", EMNLP 2018; where files leave a choice, llama.cpp's behaviour is followed.
//
// Implements rondo::Tokenizer, whose header says what encode and decode promise. Ties between merges go to the leftmost.
// A space is put before the text and before text that follows a control token. Text never becomes a control, unknown or
// byte token by merging.
//
// Keys of its own, of folders with tokenizer.json: rondo.merges_by_rank merges what tokenizer.ggml.merges lists, whatever the
// scores, and rondo.space_prefix ("section", "always", "first") says which texts get a space, as SpacePrefix has it.
// rondo.spaces: see models/tokenizers/piece_text.h, whose text it is then. rondo.fuse_unknown makes unknown neighbours one token, rondo.byte_fallback false leaves
// tokens of bytes alone; rondo.score_bits and rondo.pieces.* as models/tokenizers/pieces.h has them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/tokenizers/merge_table.h"
#include "models/tokenizers/piece_text.h"
#include "models/tokenizers/pieces.h"
#include "models/tokenizers/tokenizer_model.h"

namespace rondo::models {

class SpmTokenizer final : public TokenizerModel {
 public:
  /// Copies the vocabulary out of `file`, which must be of this kind. Errors: those of TokenizerModel::create().
  [[gnu::cold]] static Result<SpmTokenizer> create(const GgufFile& file, const ByteSource* source);

 private:
  struct Symbol;

  [[gnu::cold]] Status load_pieces(const GgufFile& file);
  [[gnu::cold]] Status load_bytes(const GgufFile& file);

  void encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const override;
  void append_text(std::int32_t token, std::string& out) const override;
  void encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const;
  void encode_character(std::string_view character, std::vector<std::int32_t>& tokens) const;

  const Vocabulary& pieces() const { return has_own_ ? own_.spellings : vocabulary_; }
  std::vector<Symbol> symbols_of(std::string_view text) const;

  bool has_text_ = false;     // text_ says what a text is, and not this kind's own habit
  PieceText text_;
  bool has_own_ = false;      // own_ are the pieces
  OwnPieces own_;
  bool fuses_unknown_ = false, byte_fallback_ = true;
  bool by_rank_ = false;      // tokens merge as merges_ has it, not by scores_
  std::vector<float> scores_;
  MergeTable merges_;
  std::array<std::int32_t, 256> byte_tokens_ = {};  // -1 where there is none
};

}  // namespace rondo::models
