// The tokenizer of GGUF files with tokenizer.ggml.model = "bert": WordPiece. Schuster and Nakajima, "Japanese and Korean Voice
// Search", ICASSP 2012; Devlin et al., "BERT", NAACL 2019. Text is cleaned and cut into words; of each word the longest token
// that it begins with is taken, then the longest that the rest begins with. A word of which something is left is the unknown
// token alone.
//
// Implements rondo::Tokenizer, whose header says what encode and decode promise, but what is cleaned away does not come back.
// Where files leave a choice, llama.cpp's behaviour is followed: a token that begins a word begins with U+2581, one that goes on
// has nothing in front; of an accented letter only the first character of its decomposition stays, and so of a Korean syllable, and of marks nothing;
// words have any length. tokenizer.ggml.normalizer.lowercase and .strip_accents are read; CLS and SEP are
// put around unless tokenizer.ggml.add_bos_token and .add_sep_token say otherwise.
//
// Keys of its own, of folders, where Hugging Face's BertNormalizer, BertPreTokenizer and WordPiece are followed:
// rondo.continuation, what a token that goes on begins with ("##"); rondo.max_word_characters, beyond which a word is unknown;
// rondo.clean_text (controls out, white space to blanks) and rondo.ideographs_apart (a word each). Accents are
// taken apart and the marks removed. These tables are of one Unicode version, Hugging Face's of several older ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "models/tokenizers/piece_trie.h"
#include "models/tokenizers/tokenizer_model.h"

namespace rondo::models {

class WordPieceTokenizer final : public TokenizerModel {
 public:
  /// Copies the vocabulary out of `file`, which must be of this kind. Errors: those of TokenizerModel::create().
  [[gnu::cold]] static Result<WordPieceTokenizer> create(const GgufFile& file);

 private:
  [[gnu::cold]] Status load_pieces(const GgufFile& file);
  [[gnu::cold]] Status load_ids(const GgufFile& file);

  void encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const override;
  void append_text(std::int32_t token, std::string& out) const override;
  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens) const;
  /// The words of `text`, one after the other, with a blank or more around each.
  std::string words_as_llama(std::string_view text) const;
  std::string words_as_hugging_face(std::string_view text) const;

  PieceTrie beginnings_, continuations_;  // by what the word has: without U+2581 and without "##"
  std::string continuation_;
  bool as_hugging_face_ = false, clean_text_ = true, ideographs_apart_ = true, lower_case_ = true, strip_accents_ = true;
  std::uint32_t max_word_characters_ = 0xffffffff;
};

}  // namespace rondo::models
