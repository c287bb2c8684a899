// Any bytes as a GGUF file: metadata, tensors, the network and a step of it, and the tokenizer, which then reads a text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include <rondo/tokenizer.h>

#include "models/arch/architecture.h"
#include "models/formats/gguf.h"

namespace {

constexpr const char* kText = "The quick  brown fox, 12345 \xe2\x96\x81\xf0\x9f\xa6\x8a <s></s> \xff\xc0 and\n\nagain";

void read_tokenizer(const rondo::ByteSource& source) {
  const auto tokenizer = rondo::Tokenizer::create(source);
  if (!tokenizer.ok()) return;
  for (const bool special : {false, true}) {
    const std::vector<std::int32_t> tokens = tokenizer->encode(kText, {.add_bos = true, .parse_special = special});
    for (const std::int32_t token : tokens) {
      if (token < 0 || token >= tokenizer->n_vocab()) std::abort();
      (void)tokenizer->piece(token);
    }
    (void)tokenizer->decode(tokens);
  }
  for (const std::int32_t token : {-1, 0, tokenizer->bos(), tokenizer->eos(), tokenizer->n_vocab() - 1, tokenizer->n_vocab()}) (void)tokenizer->spelling(token);
}

/// Whatever architecture the file names, and the graph of a step of it.
void read_network(const rondo::models::GgufFile& file, const rondo::ByteSource& source) {
  const auto network = rondo::models::open_network(file, source);
  if (!network.ok()) return;
  (void)rondo::models::count_parameters(network->blocks);
  (void)rondo::models::weight_bytes(network->blocks);
  (void)rondo::models::kv_bytes_per_token(network->caches, rondo::graph::Type::kQ8_0);
  rondo::models::StepPlaces places;
  places.n_ctx = 16;
  for (const rondo::models::CacheSpec& spec : network->caches) places.caches.push_back({rondo::models::cache_positions(spec, places.n_ctx, 16), {}, {}});
  places.n_source = 16;
  if (network->facts.n_layers > 64) return;
  for (const rondo::models::RoleSpec& spec : network->roles) {
    const std::int64_t rows = spec.role == rondo::models::Role::kDecode ? 1 : rondo::models::takes_images(spec.role) ? network->facts.image_rows : 4;
    (void)network->build(spec.role, rows, places);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rondo::ByteSource source = rondo::memory_source(std::as_bytes(std::span(data, size)), "model.gguf");
  const auto file = rondo::models::GgufFile::parse(source);
  if (!file.ok()) return 0;
  for (const rondo::models::GgufTensor& tensor : file->tensors()) {
    if (tensor.offset_bytes > size || tensor.size_bytes > size - tensor.offset_bytes) std::abort();
  }
  for (const rondo::models::GgufMetadata& entry : file->metadata()) (void)entry.value.text();
  read_network(*file, source);
  read_tokenizer(source);
  return 0;
}
