// What stands behind rondo::Tokenizer: one class for each kind that tokenizer.ggml.model names. The base finds special
// tokens and puts what belongs around a text; a kind says how the text between them becomes tokens and what one token means as text.
//
// Keys of all kinds, of folders: rondo.tokens_before, .tokens_between and .tokens_after, ids that are put in front of a text (instead
// of BOS), between two and behind; rondo.strips_left and .strips_right, special tokens that take white space with them.
//
// What is marked cold runs once for a file, and is compiled for size.
//
// Owns its vocabulary; immutable after creation, so it may be used from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>
#include <rondo/tokenizer.h>

#include "models/formats/gguf.h"
#include "models/tokenizers/vocabulary.h"

namespace rondo::models {

class TokenizerModel {
 public:
  /// Whether the file has a tokenizer, or says that there is none (tokenizer.ggml.model is "none" or "no_vocab").
  static bool is_there(const GgufFile& file);
  /// The tokenizer of `file`, of the kind that it names; `source` is where the file was read, for keys that `file` does not keep.
  /// Errors: kUnsupported (another kind, or beyond a limit), kNotFound and kCorruptData (missing or wrong keys), naming
  /// file and key.
  [[gnu::cold]] static Result<std::shared_ptr<const TokenizerModel>> create(const GgufFile& file, const ByteSource* source = nullptr);
  virtual ~TokenizerModel() = default;

  /// See rondo::Tokenizer.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options) const;
  /// See rondo::Tokenizer.
  EncodedPair encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const;
  /// See rondo::Tokenizer.
  std::string decode(std::span<const std::int32_t> tokens) const;
  /// See rondo::Tokenizer.
  std::string piece(std::int32_t token) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  bool add_space_prefix() const { return add_space_prefix_; }

 protected:
  TokenizerModel() = default;
  TokenizerModel(TokenizerModel&&) = default;
  TokenizerModel& operator=(TokenizerModel&&) = default;

  /// Appends the tokens of `text`, which holds no special ones; `begins_text` where nothing or a control token is before.
  virtual void encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const = 0;
  /// Appends what `token`, of type normal, undefined or byte, means.
  virtual void append_text(std::int32_t token, std::string& out) const = 0;

  Vocabulary vocabulary_;
  bool add_bos_ = true;
  std::vector<std::int32_t> before_;   ///< of a text; where it is empty, BOS if add_bos_
  std::vector<std::int32_t> between_;  ///< of two texts
  std::vector<std::int32_t> after_;    ///< of a text, or of two
  bool add_space_prefix_ = false;
  bool to_nfc_ = false;  ///< text is brought into that form first (key rondo.nfc)

  /// Which texts are those that begin: the first and those behind special tokens, and of these
  enum class SpacePrefix : std::uint8_t {
    kText,     ///< all but those behind user-defined tokens
    kSection,  ///< all
    kAlways,   ///< all, unless they begin with a space
    kFirst     ///< none; the first if it does not begin with a space
  };
  SpacePrefix space_prefix_ = SpacePrefix::kText;

 private:
  [[gnu::cold]] Status read_around(const GgufFile& file);
  /// Appends the tokens of `text` without what belongs around it.
  void encode_parts(std::string_view text, bool parse_special, std::vector<std::int32_t>& tokens) const;
  void append_piece(std::int32_t token, std::string& out) const;

  std::vector<std::int32_t> strips_left_, strips_right_;  // in order
};

}  // namespace rondo::models
