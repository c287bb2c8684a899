// What preprocessor_config.json of a folder says of images (the image processors of transformers), as keys of GGUF.
//
// ViTImageProcessor, DeiTImageProcessor and CLIPImageProcessor, their fast forms and the feature extractors that they come from. What
// a field leaves out is as the processor has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rondo/status.h>

#include "models/formats/gguf_writer.h"

namespace rondo::models {

/// Writes the rondo.image_* keys for `folder`, whose network is of `model_type` and takes images of `channels`; none without the
/// file. A processor or a size of a kind that is not there yet is no error: rondo.image_refusal says why images are not taken.
/// Errors: kIo, kCorruptData, kUnsupported, naming file and field.
Status write_image_preprocessing(const std::string& folder, std::string_view model_type, std::uint32_t channels, GgufWriter& writer);

}  // namespace rondo::models
