// What every tokenizer of a GGUF file has: spellings, types, the ids that mean something, and the search for tokens by
// spelling, both of whole strings and of special tokens within a text.
//
// Owns copies of all it needs; immutable once index() has succeeded, so it may be used from several threads.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "models/formats/gguf.h"

namespace rondo::models {

/// Values of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t { kUndefined, kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

/// Keys whose contents the tokenizers check further.
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";

/// Hash tables half full need a few probes; more than this takes keys made to collide, and quadratic time.
constexpr std::size_t kMaxProbes = 256;

class Vocabulary {
 public:
  /// Which ids BOS, EOS and the unknown token have where the file does not say.
  enum class DefaultIds { kNone, kSentencePiece, kT5 };

  /// A piece of a text: a special token, or other bytes where `token` is -1.
  struct Fragment {
    std::size_t begin;
    std::size_t size;
    std::int32_t token;
  };

  /// Copies spellings, types and ids out of `file`; nothing is found by spelling before index().
  /// Errors: kUnsupported (more than 1,048,576 tokens or 32 MiB of text), kNotFound and kCorruptData (missing or wrong
  /// keys), naming file and key.
  static Result<Vocabulary> read(const GgufFile& file, DefaultIds defaults);

  /// The same from other keys, without ids that mean something.
  static Result<Vocabulary> read_pieces(const GgufFile& file, std::string_view tokens_key, std::string_view types_key);

  /// Makes user-defined tokens part of the text for partition(): for kinds that find these themselves.
  void leave_user_defined();
  /// Changes what `token` is; for kinds of tokenizer that know better than the file.
  void set_type(std::int32_t token, TokenType type) { types_[static_cast<std::size_t>(token)] = type; }
  /// Makes spellings searchable. With `own_alphabet` normal tokens are spelt in an alphabet that shares only ASCII with
  /// text, as which user-defined ones are spelt, so find() takes these only if they are ASCII.
  /// Errors: kCorruptData naming file and key (special tokens beyond 1024 bytes, spellings made to collide).
  Status index(const GgufFile& file, bool own_alphabet);

  std::int32_t size() const { return static_cast<std::int32_t>(types_.size()); }
  bool contains(std::int32_t token) const { return token >= 0 && token < size(); }
  /// `token` must be in the vocabulary.
  TokenType type(std::int32_t token) const { return types_[static_cast<std::size_t>(token)]; }
  /// "" outside the vocabulary.
  std::string_view spelling(std::int32_t token) const;

  /// The token that text spelt so may become, or -1: no control, unknown, byte or unused one; of equals the last.
  std::int32_t find(std::string_view spelling) const;
  /// No token that find() returns is spelt with more bytes.
  std::size_t max_findable_bytes() const { return max_findable_bytes_; }
  /// `text` cut at its special tokens: user-defined ones, and control and unknown ones if `all_specials`. The longest
  /// win, over whatever begins further left.
  std::vector<Fragment> partition(std::string_view text, bool all_specials) const;

  std::int32_t bos() const { return bos_; }          ///< -1 where there is none
  std::int32_t mask() const { return mask_; }        ///< -1 where there is none
  std::int32_t eos() const { return eos_; }          ///< -1 where there is none
  std::int32_t unknown() const { return unknown_; }  ///< -1 where there is none
  /// EOS, EOT and EOM, as far as the file names them, and those of rondo.stop_ids.
  std::span<const std::int32_t> stop_ids() const { return stop_ids_; }

 private:
  /// Tokens that are found in the text before anything is merged, by spelling.
  struct SpecialTokens {
    std::vector<std::int32_t> ids;
    std::bitset<256> first_bytes;
  };

  Status read_spellings(const GgufFile& file, std::string_view key);
  Status read_types(const GgufFile& file, std::string_view key);
  Status read_ids(const GgufFile& file, DefaultIds defaults);
  Status index_findable(const GgufFile& file, bool own_alphabet);
  Status index_specials(const GgufFile& file);
  std::int32_t find_special(const SpecialTokens& specials, std::string_view text) const;
  void resolve_overlaps(std::string_view text, const SpecialTokens& specials, std::vector<Fragment>& matches) const;

  std::string text_;                 // all spellings
  std::vector<std::uint32_t> ends_;  // of each spelling in text_
  std::vector<TokenType> types_;
  std::vector<std::int32_t> slots_;  // open addressing by spelling; -1 is empty
  std::size_t max_findable_bytes_ = 0;
  SpecialTokens user_defined_;
  SpecialTokens all_specials_;
  std::int32_t bos_ = -1;
  std::int32_t mask_ = -1;
  std::int32_t eos_ = -1;
  std::int32_t unknown_ = -1;
  std::vector<std::int32_t> stop_ids_;
};

}  // namespace rondo::models
