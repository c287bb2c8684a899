#include "models/formats/derived_gguf.h"

#include "models/formats/gguf_writer.h"
#include "runtime/fmt.h"

namespace rondo::models {

Result<ByteSource> derive_gguf(const ByteSource& source, const GgufFile& file, const std::function<bool(std::string_view key)>& is_left_out,
                               std::span<const DerivedTensor> tensors, std::string name) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
  RONDO_ASSIGN(const std::uint32_t alignment, file.u32_or(kAlignment, kUsualAlignment));
  GgufWriter writer(alignment);
  std::vector<std::uint64_t> offsets;
  for (const DerivedTensor& tensor : tensors) {
    if (tensor.size_bytes > kMostBytes || writer.data_bytes() > kMostBytes - tensor.size_bytes) return Status(StatusCode::kCorruptData, fmt::format("{}: its tensors have more than 2^62 bytes together", name));
    offsets.push_back(writer.tensor(tensor.like->name, std::span(tensor.like->dims).first(tensor.like->n_dims), tensor.type, tensor.size_bytes));
  }
  const std::span<const GgufMetadata> metadata = file.metadata();
  std::uint64_t n_keys = 0;
  for (const GgufMetadata& entry : metadata) n_keys += !is_left_out(entry.key);

  StitchedSource derived;
  derived.add_bytes(writer.counts(n_keys));
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    if (!is_left_out(metadata[i].key)) derived.add_run(source, file.metadata_offset(i), file.metadata_offset(i + 1) - file.metadata_offset(i));
  }
  derived.add_bytes(writer.table());
  const std::uint64_t data = writer.padded(derived.size_bytes());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    derived.pad_to(data + offsets[i]);
    tensors[i].add(derived);
  }
  if (!tensors.empty()) derived.pad_to(data + writer.data_bytes());
  return derived.source(std::move(name));
}

}  // namespace rondo::models
