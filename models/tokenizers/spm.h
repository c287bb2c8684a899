// The tokenizer of GGUF files with tokenizer.ggml.model = "llama": SentencePiece BPE with byte fallback.
// Kudo and Richardson, "SentencePiece", EMNLP 2018; where files leave a choice, llama.cpp's behaviour is followed.
//
// Owns its vocabulary; immutable after create(), so it may be used from several threads. Implements rondo::Tokenizer,
// whose header says what encode and decode promise.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>
#include <rondo/tokenizer.h>

#include "models/formats/gguf.h"

namespace rondo::models {

class SpmTokenizer {
 public:
  /// Copies the vocabulary out of `file`.
  /// Errors: kUnsupported (another kind of tokenizer, or a vocabulary beyond 1,048,576 tokens or 32 MiB of text),
  /// kNotFound and kCorruptData (missing or wrong keys), naming file and key.
  static Result<SpmTokenizer> create(const GgufFile& file);

  /// See rondo::Tokenizer. Ties between merges go to the leftmost. Special tokens are found longest first; a space is
  /// put before the text and before text that follows a control token. Text never becomes a control, unknown or byte
  /// token by merging.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options) const;
  /// See rondo::Tokenizer.
  std::string decode(std::span<const std::int32_t> tokens) const;
  /// See rondo::Tokenizer.
  std::string piece(std::int32_t token) const;
  /// See rondo::Tokenizer.
  std::string_view spelling(std::int32_t token) const;

  std::int32_t n_vocab() const { return static_cast<std::int32_t>(types_.size()); }
  std::int32_t bos() const { return bos_; }
  std::int32_t eos() const { return eos_; }
  std::int32_t unknown() const { return unknown_; }
  std::span<const std::int32_t> stop_ids() const { return stop_ids_; }
  bool add_bos() const { return add_bos_; }
  bool add_space_prefix() const { return add_space_prefix_; }

 private:
  // Values of tokenizer.ggml.token_type.
  enum class TokenType : std::uint8_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

  /// Tokens that are found in the text before anything is merged, by spelling.
  struct SpecialTokens {
    std::vector<std::int32_t> ids;
    std::bitset<256> first_bytes;
  };

  /// A piece of the text: a special token, or bytes to merge where `token` is -1.
  struct Fragment {
    std::size_t begin;
    std::size_t size;
    std::int32_t token;
  };

  /// The byte that a token named "<0x0A>" stands for, or -1 for any other name.
  static int byte_value(std::string_view spelling);

  Status load_vocabulary(const GgufFile& file);
  Status load_types(const GgufFile& file);
  Status load_bytes(const GgufFile& file);
  Status load_ids(const GgufFile& file);
  Status index_merges(const GgufFile& file);
  Status index_specials(const GgufFile& file);

  bool is_in_vocabulary(std::int32_t token) const { return token >= 0 && token < n_vocab(); }
  TokenType type(std::int32_t token) const { return types_[static_cast<std::size_t>(token)]; }
  std::int32_t find_mergeable(std::string_view text) const;
  std::int32_t find_special(const SpecialTokens& specials, std::string_view text) const;
  std::vector<Fragment> partition(std::string_view text, const SpecialTokens& specials) const;
  void resolve_overlaps(std::string_view text, const SpecialTokens& specials, std::vector<Fragment>& matches) const;
  void encode_run(std::string_view text, std::vector<std::int32_t>& tokens) const;
  void encode_character(std::string_view character, std::vector<std::int32_t>& tokens) const;
  void append_piece(std::int32_t token, std::string& out) const;

  std::string text_;                 // all spellings
  std::vector<std::uint32_t> ends_;  // of each spelling in text_
  std::vector<float> scores_;
  std::vector<TokenType> types_;
  std::vector<std::int32_t> slots_;  // open addressing by spelling; -1 is empty
  std::size_t max_mergeable_bytes_ = 0;
  std::array<std::int32_t, 256> byte_tokens_ = {};  // -1 where there is none
  SpecialTokens user_defined_;
  SpecialTokens all_specials_;
  std::int32_t bos_ = -1;
  std::int32_t eos_ = -1;
  std::int32_t unknown_ = -1;
  std::vector<std::int32_t> stop_ids_;
  bool add_bos_ = true;
  bool add_space_prefix_ = true;
};

}  // namespace rondo::models
