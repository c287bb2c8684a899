#include "graph/block_format.h"

#include <algorithm>

#include "graph/block_packing.h"

namespace rondo::graph {

const BlockFormat* find_block_format(Type type) {
  for (const std::span<const BlockFormat> family : {std::span<const BlockFormat>(kDenseFormats), std::span<const BlockFormat>(kBlockFormats), std::span<const BlockFormat>(kSuperBlockFormats)}) {
    for (const BlockFormat& format : family) {
      if (format.type == type) return &format;
    }
  }
  return nullptr;
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
