// The pieces that SentencePiece's models cut text into, where they are others than the vocabulary's, and what all have: scores and bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/tokenizers/vocabulary.h"

namespace rondo::models {

/// The byte that a token named "<0x0A>" stands for, or -1 for any other name.
int byte_value(std::string_view spelling);

/// The token of type byte for each byte, the first of several, or -1. Errors: kCorruptData (one that isn't named so), naming file and key.
[[gnu::cold]] Result<std::array<std::int32_t, 256>> byte_tokens(const GgufFile& file, const Vocabulary& vocabulary);

/// Appends the text of `token`: its byte, or its spelling with blanks for U+2581.
void append_piece_text(const Vocabulary& vocabulary, std::int32_t token, std::string& out);

/// tokenizer.ggml.scores, floats, or what folders have for them, `bits_key`, their bits. Errors: kNotFound and
/// kCorruptData (not one for each of `n`, or no number), naming file and key.
[[gnu::cold]] Result<std::vector<float>> read_scores(const GgufFile& file, std::string_view bits_key, std::int32_t n);

/// Keys rondo.pieces.tokens, .token_type, .score_bits and .ids: pieces, each with its id in the vocabulary.
struct OwnPieces {
  Vocabulary spellings;
  std::vector<float> scores;
  std::vector<std::int32_t> ids;

  static bool are_there(const GgufFile& file);
  /// Errors: kUnsupported, kNotFound and kCorruptData (another number of them, ids outside `vocabulary`), naming file and key.
  [[gnu::cold]] static Result<OwnPieces> read(const GgufFile& file, const Vocabulary& vocabulary);
};

}  // namespace rondo::models
