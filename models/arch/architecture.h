// From a file to a network: which family it names, and who builds it.
#pragma once

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

/// The network of the family that the file names. Errors: kUnsupported (another one, with a list of those that are there), and
/// those of read_decoder_config and open_decoder.
Result<Network> open_network(const GgufFile& file, const ByteSource& source);

}  // namespace rondo::models
