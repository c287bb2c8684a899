#include "models/weights.h"

#include <algorithm>

#include "runtime/fmt.h"

namespace rondo::models {

std::uint64_t WeightBlock::file_bytes() const {
  std::uint64_t bytes = 0;
  for (const WeightPart& part : parts) bytes += part.size_bytes;
  return bytes;
}

std::optional<graph::Type> find_weight_type(GgmlType type) { return graph::find_ggml_type(static_cast<std::uint32_t>(type)); }

namespace {

Status corrupt(const GgufFile& file, std::string message) { return Status(StatusCode::kCorruptData, fmt::format("{}: {}", file.name(), message)); }
Status unsupported(const GgufFile& file, std::string message) { return Status(StatusCode::kUnsupported, fmt::format("{}: {}", file.name(), message)); }

/// The tensor has as many rows (`n_dims` 2) or elements (1) as are wanted, and as many of these are stacked.
bool has_counts(const GgufTensor& tensor, std::uint32_t n_dims, const WantedWeight& wanted) {
  const auto stacked = static_cast<std::uint64_t>(wanted.stacked), each = static_cast<std::uint64_t>(wanted.count) / stacked;
  return tensor.n_dims <= n_dims + (stacked > 1 ? 1u : 0u) && tensor.dims[n_dims - 1] == each && tensor.dims[n_dims] == stacked;
}

/// Its dimensions, rows before columns.
std::string shape_of(const GgufTensor& tensor) {
  std::vector<std::uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims);
  std::reverse(dims.begin(), dims.end());
  return fmt::format("({})", fmt::join(dims, ", "));
}

}  // namespace

Result<WeightPart> WeightFinder::find_matrix(const WantedWeight& wanted, std::int64_t columns) const {
  const GgufTensor* tensor = file_.find_tensor(wanted.tensor);
  if (!tensor) return corrupt(file_, fmt::format("tensor '{}' is missing", wanted.tensor));
  if (tensor->dims[0] != static_cast<std::uint64_t>(columns) || !has_counts(*tensor, 2, wanted)) {
    const std::string stacked = wanted.stacked > 1 ? fmt::format("{}, ", wanted.stacked) : "";
    return corrupt(file_, fmt::format("tensor '{}' is {} but must be ({}{}, {})", wanted.tensor, shape_of(*tensor), stacked, wanted.count / wanted.stacked, columns));
  }
  const std::optional<graph::Type> kept = find_weight_type(tensor->type);
  if (!kept) {
    std::vector<const char*> names;
    for (const graph::Type type : graph::kWeightTypes) names.push_back(graph::type_name(type));
    return unsupported(file_, fmt::format("tensor '{}' is {}, a weight type that is not there yet ({} are)", wanted.tensor, ggml_type_info(tensor->type).name,
                                          fmt::join(names, ", ")));
  }
  return WeightPart{tensor->name, graph::find_block_format(*kept), tensor->offset_bytes, tensor->size_bytes, 0, wanted.count};
}

Result<WeightPart> WeightFinder::find_vector(const WantedWeight& wanted) const {
  const GgufTensor* tensor = file_.find_tensor(wanted.tensor);
  if (!tensor) return corrupt(file_, fmt::format("tensor '{}' is missing", wanted.tensor));
  if (!has_counts(*tensor, 1, wanted)) {
    const std::string stacked = wanted.stacked > 1 ? fmt::format("{}, ", wanted.stacked) : "";
    return corrupt(file_, fmt::format("tensor '{}' is {} but must be ({}{})", wanted.tensor, shape_of(*tensor), stacked, wanted.count / wanted.stacked));
  }
  if (tensor->type != GgmlType::kF32 && tensor->type != GgmlType::kF16 && tensor->type != GgmlType::kBF16) {
    return unsupported(file_, fmt::format("tensor '{}' is {}, which is not there yet for vectors (f32, f16 and bf16 are)", wanted.tensor, ggml_type_info(tensor->type).name));
  }
  return WeightPart{tensor->name, graph::find_block_format(*find_weight_type(tensor->type)), tensor->offset_bytes, tensor->size_bytes, 0, wanted.count};
}

WeightBlock& WeightFinder::add_block(const std::string& name, graph::Type type, std::int64_t columns) {
  WeightBlock& block = blocks_.emplace_back();
  block.name = name;
  block.type = type;
  block.matrix = {0, columns};
  return block;
}

Status WeightFinder::matrix(const WantedWeight& wanted, std::int64_t columns) { return matrices({&wanted, 1}, columns); }

Status WeightFinder::matrices(std::span<const WantedWeight> wanted, std::int64_t columns) {
  bool first = true;
  for (const WantedWeight& weight : wanted) {
    RONDO_ASSIGN(WeightPart part, find_matrix(weight, columns));
    const graph::Type type = part.stored->type;
    if (first || blocks_.back().type != type) add_block(weight.tensor, type, columns);
    first = false;
    WeightBlock& block = blocks_.back();
    part.first = block.matrix[0];
    block.matrix[0] += part.count;
    *weight.slice = {static_cast<std::int32_t>(blocks_.size() - 1), part.first, part.count};
    found_.insert(part.tensor);
    block.parts.push_back(std::move(part));
  }
  return {};
}

Status WeightFinder::vectors(std::span<const WantedWeight> wanted) {
  WeightBlock& block = add_block(wanted.front().tensor, graph::Type::kF32, 0);
  block.matrix[0] = 1;
  block.is_vector = true;
  for (const WantedWeight& weight : wanted) {
    RONDO_ASSIGN(WeightPart part, find_vector(weight));
    part.first = block.matrix[1];
    block.matrix[1] += part.count;
    *weight.slice = {static_cast<std::int32_t>(blocks_.size() - 1), part.first, part.count};
    found_.insert(part.tensor);
    block.parts.push_back(std::move(part));
  }
  return {};
}

std::uint64_t count_parameters(std::span<const WeightBlock> blocks) {
  std::uint64_t n = 0;
  for (const WeightBlock& block : blocks) n += static_cast<std::uint64_t>(block.matrix.n_elements());
  return n;
}

std::uint64_t weight_bytes(std::span<const WeightBlock> blocks) {
  std::uint64_t bytes = 0;
  for (const WeightBlock& block : blocks) bytes += graph::plane_layout(*graph::find_block_format(block.type), block.matrix[0], block.matrix[1]).size_bytes;
  return bytes;
}

Status read_rows(const ByteSource& source, const WeightBlock& block, const WeightPart& part, std::int64_t first, std::int64_t n, std::vector<std::byte>& bytes) {
  const std::uint64_t row_bytes = graph::file_row_bytes(*part.stored, static_cast<std::uint64_t>(block.matrix[1]));
  bytes.resize(static_cast<std::size_t>(row_bytes * static_cast<std::uint64_t>(n)));
  const Status status = source.read(part.offset_bytes + row_bytes * static_cast<std::uint64_t>(first), bytes);
  return status.ok() ? status : status.with_prefix(fmt::format("tensor '{}'", part.tensor));
}

Result<std::vector<float>> read_values(const ByteSource& source, const WeightBlock& block) {
  std::vector<float> values(static_cast<std::size_t>(block.matrix.n_elements()));
  std::vector<std::byte> bytes;
  for (const WeightPart& part : block.parts) {
    const std::int64_t rows = block.is_vector ? 1 : part.count, columns = block.is_vector ? part.count : block.matrix[1];
    const std::size_t row_bytes = graph::file_row_bytes(*part.stored, static_cast<std::uint64_t>(columns));
    bytes.resize(row_bytes * static_cast<std::size_t>(rows));
    if (Status status = source.read(part.offset_bytes, bytes); !status.ok()) return status.with_prefix(fmt::format("tensor '{}'", part.tensor));
    float* to = values.data() + part.first * (block.is_vector ? 1 : columns);
    for (std::int64_t row = 0; row < rows; ++row) {
      part.stored->dequantize_row(std::span(bytes).subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes), static_cast<std::uint32_t>(columns), to + row * columns);
    }
  }
  return values;
}

}  // namespace rondo::models
