// How SentencePiece's models see a text: characters replaced by a map, white space made visible as U+2581, one put in front.
// Kudo and Richardson, "SentencePiece", EMNLP 2018.
//
// Three ways of doing so, by key rondo.spaces:
// - absent: llama.cpp's for tokenizer.ggml.model = "t5". With tokenizer.ggml.remove_extra_whitespaces blanks are one in
//   front of what follows, and none behind the last; with tokenizer.ggml.add_space_prefix one is in front of the first;
// - "sentencepiece": SentencePiece's, by the same two keys: U+2581 of the text itself goes with blanks at the end. rondo.visible_spaces
//   false leaves blanks as they are;
// - "metaspace" and "words": Hugging Face's Metaspace, and what is done in front of it: blanks behind the text removed
//   (rondo.strip_end), two or more blanks one (tokenizer.ggml.remove_extra_whitespaces), words cut at
//   white space of all kinds, which is left out ("words"). rondo.splits_at_spaces: pieces do not reach over U+2581.
// Bytes that are no UTF-8 become U+FFFD. The map is tokenizer.ggml.precompiled_charsmap, or as a string, rondo.charsmap. Of its keys the
// longest counts, as in SentencePiece; Hugging Face takes the shortest within what is seen as one character, if that has up to five
// bytes, and so loses accents behind letters of full width.
//
// Owns what it needs; constant, so it may be used from several threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/tokenizers/charsmap.h"
#include "models/tokenizers/piece_trie.h"
#include "models/tokenizers/vocabulary.h"

namespace rondo::models {

class PieceText {
 public:
  /// Whether `file` has any key of this.
  static bool is_there(const GgufFile& file);
  /// Reads the keys; user-defined tokens of `vocabulary` are left as they are ("sentencepiece"). Errors: those of
  /// Charsmap::read(), and kCorruptData and kUnsupported naming file and key.
  [[gnu::cold]] static Result<PieceText> read(const GgufFile& file, const ByteSource* source, const Vocabulary& vocabulary);

  /// `text` as pieces are spelt; `begins` where one may be put in front.
  std::string made_visible(std::string_view text, bool begins) const;
  /// Whether pieces begin anew at each U+2581.
  bool splits() const { return splits_; }
  /// The token that `text` begins with and that stays whole, and its size.
  PieceTrie::Match whole_token(std::string_view text) const { return whole_tokens_.longest(text); }
  bool has_whole_tokens() const { return !whole_tokens_.empty(); }
  bool adds_prefix() const { return prefix_; }
  /// Whether user-defined tokens are this one's to find.
  bool as_sentence_piece() const { return spaces_ == Spaces::kSentencePiece; }

 private:
  enum class Spaces : std::uint8_t { kLlama, kSentencePiece, kMetaspace, kWords };
  struct Part {
    std::string_view text;
    std::size_t size;  ///< bytes of the text that it stands for
  };

  Part first_part(std::string_view text) const;
  std::string as_llama(std::string_view text) const;
  std::string in_sentence_piece(std::string_view text, bool begins) const;
  std::string as_metaspace(std::string_view text, bool begins) const;

  Charsmap charsmap_;
  PieceTrie whole_tokens_;
  Spaces spaces_ = Spaces::kLlama;
  bool prefix_ = false, collapses_ = false, visible_ = true, strips_end_ = false, splits_ = false;
};

}  // namespace rondo::models
