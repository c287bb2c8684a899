// The tokenizer of a folder as Hugging Face's transformers save it (tokenizer.json, as the tokenizers library writes it, with
// tokenizer_config.json and generation_config.json), as keys of GGUF.
//
// Byte-level BPE whose text is split by expressions that pre-tokenizers have, or by CLIP's; BPE over characters; WordPiece as BERT has it;
// Unigram. Of decoders' special tokens lstrip and rstrip are left out, as llama.cpp does. Without tokenizer.json: vocabulary_files.h.
#pragma once

#include <cstdint>
#include <string>

#include <rondo/status.h>

#include "models/formats/gguf_writer.h"
#include "models/json.h"

namespace rondo::models {

/// Writes the keys for `folder`, whose config.json is `config`, and whose network has `n_vocab` tokens; ids without a token
/// become unused ones. Without files of a tokenizer, or with those of a kind that is not there yet, tokenizer.ggml.model is "none" and
/// rondo.tokenizer_refusal says why. Keys that GGUF does not have: rondo.stop_ids, rondo.nfc, and those of SpmTokenizer and BpeTokenizer.
/// Errors: kIo, kCorruptData (a file that contradicts itself or the network), naming file and field.
Status write_hugging_face_tokenizer(const std::string& folder, const nlohmann::json& config, std::uint32_t n_vocab, GgufWriter& writer);

}  // namespace rondo::models
