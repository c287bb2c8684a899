// The tokenizer of GGUF files with tokenizer.ggml.model = "gpt2": byte-level BPE, whose tokens are bytes and what they
// merge into. Radford et al., "Language Models are Unsupervised Multitask Learners", 2019; Sennrich et al., "Neural Machine
// Translation of Rare Words with Subword Units", ACL 2016. Where files leave a choice, llama.cpp's behaviour is followed.
//
// Implements rondo::Tokenizer, whose header says what encode and decode promise. Merges apply by rank, of equals the
// leftmost first, within the pieces of models/tokenizers/pre_tokenizer.h. Any bytes come back from decode if the vocabulary
// has a token for each byte, as it should; bytes without a token are left out. Text is not normalised.
//
// Keys of its own, of folders: rondo.whole_tokens_first, as PreTokenizer has it; rondo.end_of_word ("</w>"), what the last
// letter of a piece has behind it, where pieces of white space are left out, as in CLIP (Radford et al., 2021); rondo.lower_case.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/status.h>

#include "models/tokenizers/merge_table.h"
#include "models/tokenizers/pre_tokenizer.h"
#include "models/tokenizers/tokenizer_model.h"

namespace rondo::models {

class BpeTokenizer final : public TokenizerModel {
 public:
  /// Copies vocabulary and merges out of `file`, which must be of this kind. Errors: those of TokenizerModel::create();
  /// those of MergeTable; kUnsupported
  /// also for a pre-tokenizer that isn't there.
  [[gnu::cold]] static Result<BpeTokenizer> create(const GgufFile& file);

 private:
  struct Symbol;
  struct Workspace;

  Status load_pre_tokenizer(const GgufFile& file);
  Status check_spellings(const GgufFile& file) const;

  void encode_text(std::string_view text, bool begins_text, std::vector<std::int32_t>& tokens) const override;
  void encode_piece(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& tokens) const;
  void merge_symbols(Workspace& workspace) const;
  void append_text(std::int32_t token, std::string& out) const override;

  TextSplitter splitter_;
  bool whole_tokens_first_ = false;  // see PreTokenizer
  std::string end_of_word_;  // "" where words have none
  bool lower_case_ = false;
  MergeTable merges_;
  std::array<std::int32_t, 256> last_byte_tokens_ = {};  // with end_of_word_
  std::array<std::int32_t, 256> byte_tokens_ = {};  // -1 where there is none
};

}  // namespace rondo::models
