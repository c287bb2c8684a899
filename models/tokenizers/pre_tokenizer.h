// Cuts text into pieces that byte-level BPE merges one by one, as the regular expressions do that tokenizer.ggml.pre
// names.
//
// The published expressions have the same alternatives in the same order, which are written out here; a pre-tokenizer
// is a line of options. It is all constant data, so it may be used from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rondo::models {

/// What sets the expressions apart.
struct SplitRules {
  enum class Numbers : std::uint8_t {
    kRuns,        ///< ` ?\p{N}+`
    kThrees,      ///< `\p{N}{1,3}`
    kSingle,      ///< `\p{N}`
    kSingleFirst  ///< `\p{N}`, before the expression sees what is between them
  };

  bool any_case_contractions;  ///< `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, else without the `?i:`
  bool any_before_letters;     ///< `[^\r\n\p{L}\p{N}]?\p{L}+`, else ` ?\p{L}+`
  bool line_ends_together;     ///< ` ?[^\s\p{L}\p{N}]+[\r\n]*` and `\s*[\r\n]+`, else only ` ?[^\s\p{L}\p{N}]+`
  Numbers numbers;
};

/// A value of tokenizer.ggml.pre and what follows from it.
struct PreTokenizer {
  std::string_view name;
  SplitRules rules;
  /// A piece that is a token becomes that token, whatever the merges say.
  bool whole_tokens_first;
  /// Whether BOS is put first where tokenizer.ggml.add_bos_token is absent.
  bool add_bos;

  /// Bytes of the piece that `text` begins with; 0 only for no text. The pieces of a text are those of what is left
  /// after the one before. A byte that is not part of UTF-8 counts as a symbol. All pieces together take time in
  /// proportion to the text.
  std::size_t first_piece_bytes(std::string_view text) const;
};

/// All there are.
std::span<const PreTokenizer> pre_tokenizers();

}  // namespace rondo::models
