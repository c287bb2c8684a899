// Qwen 1.5, 2 and 2.5: a Llama with biases on q, k and v, rotated in halves. Yang et al. 2024.
#include "models/arch/architecture.h"
#include "models/arch/decoder.h"

namespace rondo::models {

namespace {

Result<Network> open(const GgufFile& file, const ByteSource& source) {
  RONDO_ASSIGN(DecoderConfig config, read_decoder_config(file, source));
  config.rope.style = graph::RopeStyle::kHalf;
  config.query_key_value_bias = Presence::kAlways;
  return open_decoder(file, std::move(config));
}

}  // namespace

extern const Architecture qwen2_architecture = {"qwen2", open};

}  // namespace rondo::models
