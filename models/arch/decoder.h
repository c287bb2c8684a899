// Decoders: one builder for all families of them, from a plain table of hyper-parameters and flags.
//
// Vaswani et al. 2017 in the form of Touvron et al. 2023 (Llama): norms before attention and before the gated feed-forward
// network, rotary positions, grouped-query attention (Ainslie et al. 2023). A family's page in models/arch/ reads the common
// keys with read_decoder_config, changes what is its own, and hands the config to open_decoder.
#pragma once

#include <vector>

#include <rondo/byte_source.h>
#include <rondo/status.h>

#include "graph/graph.h"
#include "models/formats/gguf.h"
#include "models/network.h"

namespace rondo::models {

/// What a family's tensors may or must have.
enum class Presence : std::uint8_t { kIfInFile, kAlways };

/// Hyper-parameters and flags of a decoder.
struct DecoderConfig {
  NetworkFacts facts;
  double epsilon = 1e-5;               ///< of the norms
  graph::RopeAttributes rope;          ///< max_position follows the context
  std::vector<float> rope_factors;     ///< rope.dimensions / 2, or none
  Presence query_key_value_bias = Presence::kIfInFile;
};

/// Reads and checks the keys that all decoders have, below the architecture's name, and the file's RoPE factors.
/// Errors: kUnsupported (a feature that isn't there yet), kCorruptData (missing, wrongly typed or contradictory), kIo, naming
/// file and key.
Result<DecoderConfig> read_decoder_config(const GgufFile& file, const ByteSource& source);

/// Finds the weights by GGUF's names and makes the network. Errors: those of WeightFinder, kUnsupported (biases where the
/// builder takes none).
Result<Network> open_decoder(const GgufFile& file, DecoderConfig config);

/// Where a decoder's weights are among its blocks.
struct DecoderWeights {
  struct Layer {
    WeightSlice attention_norm, query, key, value, query_bias, key_bias, value_bias, output, output_bias, ffn_norm, gate, up, down;
  };
  WeightSlice embedding, output_norm, output;
  std::vector<Layer> layers;
};

/// The network of a decoder whose weights are known, wherever they are from. Roles: prefill, prefill and sample, decode, logits.
Network make_decoder(DecoderConfig config, DecoderWeights weights, std::vector<WeightBlock> blocks);

}  // namespace rondo::models
