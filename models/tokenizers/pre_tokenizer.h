// Cuts text into pieces that byte-level BPE merges one by one, as the regular expressions do that tokenizer.ggml.pre
// names. The first cuts the text, each other one the pieces that there are by then.
//
// It is all constant data, so it may be used from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizers/split_expression.h"

namespace rondo::models {

/// A value of tokenizer.ggml.pre and what follows from it.
struct PreTokenizer {
  std::string_view name;
  std::span<const std::string_view> expressions;
  /// A piece that is a token becomes that token, whatever the merges say.
  bool whole_tokens_first = false;
  /// Whether BOS is put first where tokenizer.ggml.add_bos_token is absent.
  bool add_bos = false;
};

/// All there are.
std::span<const PreTokenizer> pre_tokenizers();

/// GPT-2's, which the tokenizers library has for its ByteLevel.
constexpr std::string_view kByteLevelExpression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// CLIP's, which llama.cpp does not know: for words that end with rondo.end_of_word, white space between them left out.
constexpr std::string_view kClipName = "clip";
extern const PreTokenizer kClipPreTokenizer;
/// The first of them with these expressions, as tokenizer.json spells them, or null. Flags are another matter.
const PreTokenizer* find_pre_tokenizer(std::span<const std::string> expressions);

/// The expressions of a pre-tokenizer, read.
class TextSplitter {
 public:
  /// What cuts digits into threes from the right, as no SplitExpression can.
  enum class Threes : std::uint8_t {
    kNone,
    kOfDigits,  ///< 0 to 9; the first of them, one or two, stay with what is in front
    kOfNumbers  ///< all numbers; the first of them, one to three, stay with what is in front
  };

  TextSplitter() = default;
  explicit TextSplitter(const PreTokenizer& pre_tokenizer);

  /// Where the pieces of `text` end, in order, in time in proportion to the text. Without expressions it is one piece.
  std::vector<std::size_t> piece_ends(std::string_view text) const;

 private:
  struct Pass {
    SplitExpression expression;  ///< of kNone
    Threes threes;
  };
  std::vector<Pass> passes_;
};

}  // namespace rondo::models
