// Cuts text into pieces that byte-level BPE merges one by one, by the regular expressions that tokenizer.ggml.pre names.
//
// Owns its compiled expressions (PCRE2); immutable after create(), so it may be used from several threads.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

struct pcre2_real_code_8;

namespace rondo::models {

/// A value of tokenizer.ggml.pre and what follows from it.
struct PreTokenizerKind {
  std::string_view name;
  /// Each cuts what the ones before it left; "" for none.
  std::array<std::string_view, 2> patterns;
  /// A piece that is a token becomes that token, whatever the merges say.
  bool whole_tokens_first;
  /// Whether BOS is put first where tokenizer.ggml.add_bos_token is absent.
  bool add_bos;
};

/// All kinds there are.
std::span<const PreTokenizerKind> pre_tokenizer_kinds();

class PreTokenizer {
 public:
  /// Compiles `patterns`, in PCRE2's syntax except that \s and \S mean Unicode's White_Space; empty ones are left out.
  /// Errors: kInternal where PCRE2 refuses one.
  static Result<PreTokenizer> create(std::span<const std::string_view> patterns);

  /// Calls `piece` for every part of `text`, in order; together they are the text. What a pattern does not match is a
  /// piece of its own. A byte that is not part of UTF-8 counts as a symbol, like U+001A. Where a pattern reaches its limit
  /// of steps, which grows with the text, the rest is one piece. At most 4 GiB of text.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  struct CodeDeleter {
    void operator()(pcre2_real_code_8* code) const;
  };
  std::vector<std::unique_ptr<pcre2_real_code_8, CodeDeleter>> patterns_;
};

}  // namespace rondo::models
