// Llama 1, 2 and 3, and all that is like them: SmolLM, TinyLlama, Mistral without windows. Touvron et al. 2023.
#include "models/arch/architecture.h"
#include "models/arch/decoder.h"

namespace rondo::models {

namespace {

Result<Network> open(const GgufFile& file, const ByteSource& source) {
  RONDO_ASSIGN(DecoderConfig config, read_decoder_config(file, source));
  config.rope.style = graph::RopeStyle::kInterleaved;  // GGUF's llama files hold q and k permuted for it
  return open_decoder(file, std::move(config));
}

}  // namespace

extern const Architecture llama_architecture = {"llama", open};

}  // namespace rondo::models
