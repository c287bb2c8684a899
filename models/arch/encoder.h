// Encoders: texts and images to hidden states, vectors, and what a head makes of them.
//
// Devlin et al. 2019 (BERT) and its kin; Dosovitskiy et al. 2021 (ViT), Touvron et al. 2021 (DeiT), Radford et al. 2021 (CLIP: one
// of each). Roles: encode, pool, head, attention; of images the same.
#pragma once

#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

/// The architectures that open_encoder knows.
std::span<const char* const> encoder_architectures();

/// The network of such a file. Errors: kUnsupported (a feature that isn't there yet), kCorruptData (missing, wrongly typed or
/// contradictory), naming file and key or tensor.
Result<Network> open_encoder(const GgufFile& file, std::string_view architecture);

}  // namespace rondo::models
