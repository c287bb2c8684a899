// The tokenizer of GGUF files with tokenizer.ggml.model = "t5": SentencePiece's unigram model, which takes the pieces whose
// scores, logarithms of probabilities, add up to the most. Kudo, "Subword Regularization", ACL 2018 (the search is
// Viterbi's, in time in proportion to the text and the longest piece).
//
// Implements rondo::Tokenizer, whose header says what encode and decode promise; models/tokenizers/piece_text.h says what a text is
// before it is cut. A character that no piece begins with alone is unknown, at 10 below the least score; neighbours
// become one unknown token. Where files leave a choice, llama.cpp's behaviour is followed, but that it
// leaves characters alone that a user-defined token begins with.
//
// Keys of its own, of folders: rondo.score_bits, the scores where GGUF has tokenizer.ggml.scores, as the bits of floats; rondo.byte_fallback writes
// unknown characters in tokens of bytes; those of OwnPieces, where other pieces than the vocabulary's occur
// in texts. With rondo.spaces "sentencepiece" scores are added as there, in float, and user-defined tokens are pieces that always win.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/tokenizers/piece_text.h"
#include "models/tokenizers/piece_trie.h"
#include "models/tokenizers/pieces.h"
#include "models/tokenizers/tokenizer_model.h"

namespace rondo::models {

class UnigramTokenizer final : public TokenizerModel {
 public:
  /// Copies the vocabulary out of `file`, which must be of this kind; see Charsmap::read() for `source`. Errors: those of TokenizerModel::create().
  [[gnu::cold]] static Result<UnigramTokenizer> create(const GgufFile& file, const ByteSource* source);

 private:
  struct Piece {
    float score;
    std::int32_t id;
    bool user_defined;
  };

  [[gnu::cold]] Status load_pieces(const GgufFile& file, const ByteSource* source);
  [[gnu::cold]] Status add_pieces(const GgufFile& file, const Vocabulary& from, const std::vector<float>& scores, const std::vector<std::int32_t>& ids);

  void encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const override;
  void append_text(std::int32_t token, std::string& out) const override;
  void encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const;
  void append_unknown(std::string_view text, std::vector<std::int32_t>& tokens) const;

  PieceText text_;
  PieceTrie trie_;
  std::vector<Piece> pieces_;  // by trie_'s values
  double unknown_score_ = 0;
  float best_score_ = 0;  // of a normal piece
  bool in_sentence_piece_ = false, byte_fallback_ = false;
  std::array<std::int32_t, 256> byte_tokens_ = {};  // -1 where there is none
};

}  // namespace rondo::models
