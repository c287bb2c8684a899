// A SentencePiece model as its own file ("spiece.model", "tokenizer.model", "source.spm"): a message of protocol buffers, of whose
// fields (sentencepiece_model.proto) those are read that say how text becomes pieces.
//
//   message:     fields, each a key, a varint of number << 3 | wire type, and a value: 0 varint, 1 eight bytes, 2 a size and bytes, 5 four bytes
//   ModelProto:  1 pieces, repeated {1 text, 2 score, 3 type}; 2 trainer_spec; 3 normalizer_spec
//   trainer:     3 model_type (1 unigram, 2 BPE, 3 words, 4 characters); 24 white space as a suffix; 35 byte_fallback; 40 to 43 ids of
//                unknown, begin, end and padding
//   normalizer:  2 precompiled_charsmap; 3 add_dummy_prefix; 4 remove_extra_whitespaces; 5 escape_whitespaces
//
// Pure; nothing is trusted: sizes are checked before anything is read, and no field is read twice as long as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rondo/status.h>

#include "models/tokenizers/vocabulary.h"

namespace rondo::models {

struct SentencePieceModel {
  struct Piece {
    std::string text;
    float score = 0;
    TokenType type = TokenType::kNormal;
  };
  enum class Kind : std::uint8_t { kUnigram = 1, kBpe = 2 };

  std::vector<Piece> pieces;
  Kind kind = Kind::kUnigram;
  bool byte_fallback = false;
  std::int32_t unknown = 0, bos = 1, eos = 2, padding = -1;  ///< -1: there is none
  std::string charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;

  /// Reads the file at `path`. Errors: those of open_file, kCorruptData and kUnsupported (another kind, white space as a
  /// suffix, over 64 MB), naming file and field.
  static Result<SentencePieceModel> read(const std::string& path);
};

}  // namespace rondo::models
