// Encoder-decoders: a source is encoded once, into caches of every decoder layer, and a decoder makes tokens of it.
//
// Vaswani et al. 2017; Marian (Junczys-Dowmunt et al. 2018), BART (Lewis et al. 2020), mBART, M2M-100 and NLLB (Fan et al. 2021), T5
// (Raffel et al. 2020). Roles: encode, pool, and those of decoders.
#pragma once

#include <span>
#include <string_view>

#include <rondo/status.h>

#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

/// The architectures that open_seq2seq knows.
std::span<const std::string_view> seq2seq_architectures();

/// The network of such a file. Errors: kUnsupported (a feature that isn't there yet), kCorruptData (missing, wrongly typed or
/// contradictory), naming file and key or tensor.
Result<Network> open_seq2seq(const GgufFile& file, std::string_view architecture);

}  // namespace rondo::models
