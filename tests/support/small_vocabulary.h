// Vocabularies of tokenizers for small GGUF files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace rondo::testing {

// Values of tokenizer.ggml.token_type.
constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6;

/// A small vocabulary; hostile cases change one of its parts.
struct SmallVocabulary {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  std::int32_t add(const std::string& token, std::int32_t type = kNormal, float score = 0) {
    tokens.push_back(token);
    scores.push_back(score);
    types.push_back(type);
    return static_cast<std::int32_t>(tokens.size()) - 1;
  }
  /// "<0x00>" to "<0xFF>".
  void add_bytes(float score = 0) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) add(std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", kByte, score);
  }
  GgufWriter& write(GgufWriter& writer, const std::string& model = "llama") const {
    writer.string("tokenizer.ggml.model", model).strings("tokenizer.ggml.tokens", tokens);
    return writer.f32s("tokenizer.ggml.scores", scores).i32s("tokenizer.ggml.token_type", types);
  }
};

/// The whole of a SentencePiece tokenizer with `n_tokens` ids: unknown, BOS, EOS, bytes, and words that no text has.
inline void write_byte_tokenizer(GgufWriter& writer, std::size_t n_tokens, std::uint32_t eos = 2) {
  SmallVocabulary vocabulary;
  vocabulary.add("<unk>", kUnknown, -1);
  vocabulary.add("<s>", kControl, -1);
  vocabulary.add("</s>", kControl, -1);
  vocabulary.add_bytes(-1);
  while (vocabulary.tokens.size() < n_tokens) vocabulary.add("word" + std::to_string(vocabulary.tokens.size()), kNormal, -1);
  vocabulary.write(writer);
  writer.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", eos).u32("tokenizer.ggml.unknown_token_id", 0);
}

}  // namespace rondo::testing
