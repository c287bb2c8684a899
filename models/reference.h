// A whole model on the CPU, with the operators' references: slow, plain, the oracle of the device.
#pragma once

#include <span>
#include <vector>

#include <rondo/encoder.h>
#include <rondo/status.h>

#include "models/checkpoint.h"

namespace rondo::models {

/// Logits (tokens, n_vocab) of one forward pass over `tokens`, with a cache of `kv_type`; of an encoder-decoder, of `source`. Needs
/// no Vulkan. Errors: kInvalidArgument (no tokens, ids outside the vocabulary), or the file's.
Result<std::vector<float>> reference_logits(const Checkpoint& checkpoint, std::span<const std::int32_t> tokens, graph::Type kv_type, std::span<const std::int32_t> source = {});

/// One input of an encoder: a text's tokens and types (none: 0 for all), or an image's pixels.
struct ReferenceInput {
  std::span<const std::int32_t> tokens, types;
  std::span<const float> pixels;
};
/// What a role that encodes leaves of it: (rows, width). Errors: as reference_logits.
Result<std::vector<float>> reference_encoding(const Checkpoint& checkpoint, Role role, const ReferenceInput& input, Pooling pooling = Pooling::kModel, bool normalize = false);

}  // namespace rondo::models
