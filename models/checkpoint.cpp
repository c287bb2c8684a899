#include "models/checkpoint.h"

#include <cmath>
#include <memory>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

Result<std::vector<float>> read_rope_factors(const ByteSource& source, const GgufFile& file, const LlamaConfig& config) {
  const GgufTensor* tensor = file.find_tensor("rope_freqs.weight");
  std::vector<float> factors;
  if (!tensor) return factors;
  const auto expected = static_cast<std::uint64_t>(config.rope.dimensions / 2);
  if (tensor->type != GgmlType::kF32 || tensor->n_dims != 1 || tensor->dims[0] != expected) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'rope_freqs.weight' must be {} values of f32", file.name(), expected));
  }
  factors.resize(expected);
  RONDO_TRY(source.read(tensor->offset_bytes, std::as_writable_bytes(std::span(factors))));
  for (float factor : factors) {
    if (!(factor > 0 && std::isfinite(factor))) {
      return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'rope_freqs.weight' holds {} but must be positive", file.name(), factor));
    }
  }
  return factors;
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> open_checkpoint(ByteSource source) {
  RONDO_ASSIGN(GgufFile file, GgufFile::parse(source));
  RONDO_ASSIGN(LlamaConfig config, read_llama_config(file));
  RONDO_ASSIGN(const std::vector<float> rope_factors, read_rope_factors(source, file, config));
  auto checkpoint = std::make_unique<Checkpoint>(Checkpoint{std::move(source), std::move(file), std::move(config), {}, {}, 0});
  RONDO_TRY(find_llama_weights(checkpoint->file, checkpoint->config, rope_factors, checkpoint->blocks, checkpoint->weights));
  for (const WeightBlock& block : checkpoint->blocks) checkpoint->n_parameters += static_cast<std::uint64_t>(block.matrix.n_elements());
  return checkpoint;
}

// find_llama_weights refused tensors of other types.
const graph::BlockFormat& file_format(const WeightBlock::Part& part) { return *graph::find_block_format(*find_weight_type(part.tensor->type)); }

Status read_rows(const Checkpoint& checkpoint, const WeightBlock::Part& part, std::int64_t first, std::int64_t n, std::vector<std::byte>& bytes) {
  const std::uint64_t row_bytes = graph::file_row_bytes(file_format(part), part.tensor->dims[0]);
  bytes.resize(static_cast<std::size_t>(row_bytes * static_cast<std::uint64_t>(n)));
  const Status status = checkpoint.source.read(part.tensor->offset_bytes + row_bytes * static_cast<std::uint64_t>(first), bytes);
  return status.ok() ? status : status.with_prefix(fmt::format("tensor '{}'", part.tensor->name));
}

Result<std::vector<float>> read_block_values(const Checkpoint& checkpoint, const WeightBlock& block) {
  const auto k = static_cast<std::uint32_t>(block.matrix[1]);
  std::vector<float> values(static_cast<std::size_t>(block.matrix.n_elements()));
  std::vector<std::byte> bytes;
  for (const WeightBlock::Part& part : block.parts) {
    const graph::BlockFormat& format = file_format(part);
    const std::uint64_t row_bytes = graph::file_row_bytes(format, k);
    const auto n = static_cast<std::int64_t>(part.tensor->dims[1]);
    RONDO_TRY(read_rows(checkpoint, part, 0, n, bytes));
    for (std::int64_t row = 0; row < n; ++row) {
      const std::span<const std::byte> from(bytes.data() + static_cast<std::uint64_t>(row) * row_bytes, row_bytes);
      format.dequantize_row(from, k, values.data() + static_cast<std::size_t>((part.first_row + row) * block.matrix[1]));
    }
  }
  return values;
}

}  // namespace rondo::models
