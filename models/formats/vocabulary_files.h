// Folders without tokenizer.json: the tokenizer that transformers makes of the other files that its tokenizers have.
//
// vocab.txt is WordPiece's (BERT, DistilBERT); vocab.json and merges.txt are byte-level BPE's (GPT-2, RoBERTa, BART) and CLIP's: of these a
// document is made as tokenizer.json would be. spiece.model, sentencepiece.bpe.model, tokenizer.model and source.spm are SentencePiece's:
// of T5, ids as they are and then <extra_id_N>; of XLM-RoBERTa, ids one further, behind <s>, <pad>, </s> and <unk>; of Marian and M2M-100,
// ids by vocab.json; of Llama, ids as they are. Which one it is says tokenizer_config.json's tokenizer_class, or config.json's model_type.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/status.h>

#include "models/formats/gguf_writer.h"
#include "models/formats/json_file.h"
#include "models/json.h"

namespace rondo::models {

/// The document of `folder`, named as the file that it was made of; null where neither vocab.txt nor vocab.json and merges.txt are there.
/// Errors: kIo, kCorruptData and kUnsupported, naming file and field.
Result<JsonDocument> tokenizer_of_vocabulary_files(const std::string& folder, const JsonDocument& settings, const nlohmann::json& config);

/// Writes the keys of a folder with SentencePiece's files, for a network of `n_vocab` tokens; false if there are none.
/// Errors: kIo, kCorruptData and kUnsupported, naming file and field.
Result<bool> write_sentence_piece_tokenizer(const std::string& folder, const JsonDocument& settings, const nlohmann::json& config, std::uint32_t n_vocab, GgufWriter& writer);

}  // namespace rondo::models
