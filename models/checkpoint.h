// A checkpoint as read from its file: header, tokenizer's keys, and the network that its architecture makes of it. No device.
#pragma once

#include <memory>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

struct Checkpoint {
  ByteSource source;
  GgufFile file;
  Network network;
  std::uint64_t n_parameters = 0;
};

/// Reads and checks the header and the small tensors that graphs need (RoPE factors).
/// Errors name the file and the field.
Result<std::unique_ptr<const Checkpoint>> open_checkpoint(ByteSource source);

}  // namespace rondo::models
