// Folders of encoders and encoder-decoders, presented as GGUF files like those of decoders (models/formats/hugging_face.h).
//
// BERT's and T5's become what GGUF has for them; what GGUF has no names for gets names of the same kind, and keys that begin with
// "rondo.": activation, head, head_activation, relative_positions, norms_behind, first_token_id, image_*.
#pragma once

#include <string>
#include <string_view>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/hugging_face_folder.h"

namespace rondo::models {

/// The model_types that are there, in quotation-free text: "bert, roberta, ...".
std::string encoder_model_types();
/// Whether `model_type` is one of them.
bool is_encoder_model_type(std::string_view model_type);

/// As open_hugging_face_folder, of a folder of such a model_type.
Result<ByteSource> open_encoder_folder(const std::string& folder, const FolderConfig& config, std::string_view model_type, ModelHead wanted);

}  // namespace rondo::models
