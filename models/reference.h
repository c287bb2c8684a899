// A whole model on the CPU, with the operators' references: slow, plain, the oracle of the device.
#pragma once

#include <span>
#include <vector>

#include <rondo/status.h>

#include "models/checkpoint.h"

namespace rondo::models {

/// Logits (tokens, n_vocab) of one forward pass over `tokens`, with a cache of `kv_type`. Needs no Vulkan.
/// Errors: kInvalidArgument (no tokens, ids outside the vocabulary), or the file's.
Result<std::vector<float>> reference_logits(const Checkpoint& checkpoint, std::span<const std::int32_t> tokens, graph::Type kv_type);

}  // namespace rondo::models
