// What an architecture is: a function that reads a file's header and gives a Network. One table of them, in the order of
// architectures.inc.
#pragma once

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

struct Architecture {
  const char* name;
  /// Reads hyper-parameters, finds the weights, and reads the small tensors that graphs are built with (RoPE factors).
  /// Errors: kUnsupported (a feature that isn't there yet), kCorruptData (something missing, wrongly typed or contradictory),
  /// kIo, naming file and key or tensor.
  Result<Network> (*open)(const GgufFile& file, const ByteSource& source);
};

/// The network of the architecture that the file names. Errors: kUnsupported (another one), and those of its open().
Result<Network> open_network(const GgufFile& file, const ByteSource& source);

}  // namespace rondo::models
