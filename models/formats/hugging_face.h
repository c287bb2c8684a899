// Folders as Hugging Face's transformers save them, presented as the GGUF file that they would be.
//
// Names of config.json become GGUF's keys, names of tensors GGUF's, and where GGUF lays a weight out otherwise (heads of q, k
// and v together, Conv1D's transposed matrices) the source reads it so: everything behind knows one format. Two keys that GGUF does not
// have say what its files need not: rondo.rope_style ("half") and rondo.norm_weight_offset.
#pragma once

#include <string>

#include <rondo/byte_source.h>
#include <rondo/status.h>

namespace rondo::models {

/// The GGUF file that `folder` stands for: config.json, and model.safetensors or the shards that model.safetensors.index.json lists.
/// Reads headers only, and the tokenizer (models/formats/hugging_face_tokenizer.h). Errors: kNotFound, kIo, kCorruptData (files that contradict each other or themselves), kUnsupported (a
/// model_type, feature or tensor that is not there yet), naming file and field.
/// `wanted`: of several classes in config.json's architectures the first that has this head, if one has; else the first.
Result<ByteSource> open_hugging_face_folder(const std::string& folder, ModelHead wanted = ModelHead::kNone);

}  // namespace rondo::models
