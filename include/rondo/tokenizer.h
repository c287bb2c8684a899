// Text to token ids and back, as the checkpoint's own tokenizer defines it. Pure CPU code: no Vulkan is touched.
//
// A Tokenizer is immutable after creation and may be used from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/byte_source.h>
#include <rondo/export.h>
#include <rondo/status.h>

namespace rondo {

namespace models {
class TokenizerModel;
}

/// How `encode` treats the text.
struct EncodeOptions {
  bool add_bos = true;         ///< put BOS first if the file asks for it (`tokenizer.ggml.add_bos_token`; absent: yes for `llama`, and for `gpt2` as the pre-tokenizer has it)
  bool parse_special = false;  ///< true: "</s>" and the like become their control token; false: they are text
  /// put behind the text, and between two, what the model wants there: SEP or EOS of encoders and of what folders say so of; of a
  /// GGUF file of kind `llama` or `gpt2` nothing, so that a text can be continued
  bool add_eos = true;
};

/// Two texts as one sequence, as encoders compare them.
struct EncodedPair {
  std::vector<std::int32_t> tokens;
  std::size_t n_first = 0;  ///< how many belong to the first text, what is between the two included; the others are of the second
};

class RONDO_API Tokenizer {
 public:
  /// Reads the tokenizer of a GGUF file; files that hold nothing else are fine.
  /// Errors: kNotFound, kCorruptData and kUnsupported (a kind of tokenizer or pre-tokenizer that isn't there yet), naming
  /// file and field.
  static Result<Tokenizer> create(const ByteSource& source);
  /// Of null, a tokenizer without a vocabulary: it gives nothing.
  explicit Tokenizer(std::shared_ptr<const models::TokenizerModel> impl);

  /// Token ids of UTF-8 `text`; bytes that are not UTF-8 become the vocabulary's tokens for single bytes, or merge from
  /// them, so `decode` gives any bytes back, but for kinds that clean text first. The empty text gives what is put around or nothing.
  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Two texts as the model wants to be asked of them, as `[CLS] first [SEP] second [SEP]`; one after the other where it wants nothing.
  EncodedPair encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;

  /// Text of `tokens`; control tokens give nothing; the one leading space that `encode` adds is removed again.
  /// Ids outside the vocabulary give nothing. May end inside a UTF-8 sequence if the tokens do.
  std::string decode(std::span<const std::int32_t> tokens) const;

  /// The bytes that `token` contributes to a text in the middle ("" for control tokens and ids outside the vocabulary).
  std::string piece(std::int32_t token) const;
  /// The token as the vocabulary spells it ("▁the", "<0x0A>", "</s>"); "" outside the vocabulary.
  std::string_view spelling(std::int32_t token) const;

  std::int32_t n_vocab() const;
  std::int32_t bos() const;  ///< -1 where there is none
  std::int32_t eos() const;  ///< -1 where there is none
  /// What stands for a word that an encoder is to guess, such as "[MASK]"; encode finds it in a text with `parse_special`. -1 where
  /// there is none.
  std::int32_t mask() const;
  /// Ids that end a generation: EOS and, where present, EOT and EOM.
  std::span<const std::int32_t> stop_ids() const;
  /// Whether `encode` puts a space before a text that is not empty, which `decode` takes away again.
  bool add_space_prefix() const;

 private:
  std::shared_ptr<const models::TokenizerModel> impl_;
};

}  // namespace rondo
