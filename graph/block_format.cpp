#include "graph/block_format.h"

#include <algorithm>
#include <cstring>

namespace rondo::graph {

#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) extern const BlockFormat name##_format;
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE

const BlockFormat* find_block_format(Type type) {
  switch (type) {
#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) \
  case Type::enumerator: return &name##_format;
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE
    case Type::kI32: break;
  }
  return nullptr;
}

std::uint32_t columns_of_chunk(Type type) {
  const std::uint32_t words = find_block_format(type)->group_words;
  return words < 8 ? kGroupElements : 4 * kGroupElements / words;
}

std::optional<Type> find_ggml_type(std::uint32_t number) {
  switch (number) {
#define RONDO_WEIGHT_TYPE(enumerator, name, value, text, ggml) \
  case ggml: return Type::enumerator;
#include "lib/weight_types.inc"
#undef RONDO_WEIGHT_TYPE
    default: return std::nullopt;
  }
}

std::uint64_t file_row_bytes(const BlockFormat& format, std::uint64_t k) {
  return k / format.block_elements * format.block_bytes;
}

PlaneLayout plane_layout(const BlockFormat& format, std::int64_t n, std::int64_t k) {
  PlaneLayout layout;
  layout.groups = static_cast<std::uint32_t>((k + kGroupElements - 1) / kGroupElements);
  layout.row_words = layout.groups * format.group_words;
  layout.scale_row_words = (layout.groups + format.scale_groups - 1) / format.scale_groups * format.scale_words;
  layout.scale_offset_words = static_cast<std::uint64_t>(n) * layout.row_words;
  const std::uint64_t words = layout.scale_offset_words + static_cast<std::uint64_t>(n) * layout.scale_row_words;
  layout.size_bytes = (words * 4 + 255) / 256 * 256;
  return layout;
}

void pack_rows(const BlockFormat& format, std::uint32_t k, std::span<const std::byte> rows, std::byte* quants, std::byte* scales) {
  const PlaneLayout layout = plane_layout(format, 1, k);
  const std::size_t row_bytes = file_row_bytes(format, k), n = rows.size() / row_bytes;
  for (std::size_t row = 0; row < n; ++row) {
    std::byte* row_scales = layout.scale_row_words ? scales + row * layout.scale_row_words * 4 : nullptr;
    format.repack_row(rows.subspan(row * row_bytes, row_bytes), k, reinterpret_cast<std::uint32_t*>(quants + row * layout.row_words * 4),
                      reinterpret_cast<std::uint32_t*>(row_scales));
  }
}

std::vector<std::byte> pack_planes(const BlockFormat& format, std::int64_t n, std::int64_t k, std::span<const std::byte> rows, std::uint32_t padding) {
  const PlaneLayout layout = plane_layout(format, n, k);
  std::vector<std::byte> planes(layout.size_bytes);
  for (std::size_t at = 0; padding && at < planes.size(); at += 4) std::memcpy(planes.data() + at, &padding, 4);
  pack_rows(format, static_cast<std::uint32_t>(k), rows, planes.data(), planes.data() + layout.scale_offset_words * 4);
  return planes;
}

std::vector<WeightPlanes> planes_of(const Graph& graph, const Tensor& weight) {
  const Storage& storage = graph.storage(weight.storage);
  const BlockFormat& format = *find_block_format(storage.type);
  const std::int64_t first = weight.offset_elements / storage.matrix[1], end = first + weight.shape[0];
  if (storage.pieces.empty()) {
    return {{plane_layout(format, storage.matrix[0], storage.matrix[1]), 0, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first), 0}};
  }
  std::vector<WeightPlanes> all;
  for (std::size_t i = 0; i < storage.pieces.size(); ++i) {
    const StoragePiece& piece = storage.pieces[i];
    const std::int64_t from = std::max(first, piece.first), to = std::min(end, piece.first + piece.count);
    if (from >= to) continue;
    all.push_back({plane_layout(format, piece.count, storage.matrix[1]), i, static_cast<std::uint32_t>(from - piece.first),
                   static_cast<std::uint32_t>(to - from), static_cast<std::uint32_t>(from - first)});
  }
  return all;
}

std::vector<StoragePiece> split_rows(const BlockFormat& format, std::int64_t n, std::int64_t k, std::uint64_t max_bytes) {
  if (plane_layout(format, n, k).size_bytes <= max_bytes) return {{0, n, {}}};
  const PlaneLayout row = plane_layout(format, 1, k);
  const std::uint64_t row_bytes = 4 * (std::uint64_t{row.row_words} + row.scale_row_words);
  std::int64_t most = static_cast<std::int64_t>(max_bytes / row_bytes);  // planes are padded: a little fewer may fit
  while (most > 0 && plane_layout(format, most, k).size_bytes > max_bytes) --most;
  return split_evenly(n, most);
}

}  // namespace rondo::graph
