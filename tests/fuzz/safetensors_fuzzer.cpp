// Any bytes as a safetensors file: its header, and the elements of all its tensors.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "models/formats/safetensors.h"

namespace {

using rondo::models::SafetensorsEntry;
using rondo::models::SafetensorsFile;

// Each tensor is read on its own, and a header may name very many.
constexpr std::size_t kMostRead = 64;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const rondo::ByteSource source = rondo::memory_source(std::as_bytes(std::span(data, size)), "in.safetensors");
  const auto file = SafetensorsFile::parse(source);
  if (!file.ok()) return 0;
  std::size_t n_read = 0;
  for (const SafetensorsEntry& entry : file->entries()) {
    // What parse() lets through is what everyone relies on.
    if (entry.offset_bytes > size || entry.size_bytes > size - entry.offset_bytes || file->find(entry.name) != &entry) std::abort();
    if (n_read++ == kMostRead) break;
    const bool floats = file->read_f32(source, entry.name).ok(), integers = file->read_i64(source, entry.name).ok();
    if (floats && integers) std::abort();
  }
  return 0;
}
