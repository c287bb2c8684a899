#include "models/formats/cache_blocks.h"

#include <algorithm>
#include <cstring>

#include "graph/cache_layout.h"

namespace rondo::models {

namespace {

constexpr std::size_t kGroup = graph::kCacheGroup, kScaleBytes = 2, kBlockBytes = kScaleBytes + kGroup;

/// Calls visit(place in the file, place of the scale, place of the quants, how many quants count) for each block.
template <typename Visit>
void for_each_block(std::int64_t n_rows, std::int64_t width, Visit&& visit) {
  const graph::CacheLayout layout = graph::cache_layout(graph::Type::kQ8_0, n_rows, width);
  const auto columns = static_cast<std::size_t>(width), row_elements = static_cast<std::size_t>(layout.row_elements);
  std::size_t block = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(n_rows); ++row) {
    const std::size_t scales = 4 * (layout.scales_offset_words + row * layout.scale_row_words);
    for (std::size_t group = 0; group * kGroup < columns; ++group, ++block) {
      visit(block * kBlockBytes, scales + group * kScaleBytes, row * row_elements + group * kGroup, std::min(kGroup, columns - group * kGroup));
    }
  }
}

}  // namespace

std::uint64_t cache_row_file_bytes(std::int64_t width) { return (static_cast<std::uint64_t>(width) + kGroup - 1) / kGroup * kBlockBytes; }

std::vector<std::byte> planes_of_blocks(std::span<const std::byte> blocks, std::int64_t n_rows, std::int64_t width) {
  std::vector<std::byte> planes(graph::cache_layout(graph::Type::kQ8_0, n_rows, width).size_bytes);
  for_each_block(n_rows, width, [&](std::size_t block, std::size_t scale, std::size_t quants, std::size_t count) {
    std::memcpy(planes.data() + scale, blocks.data() + block, kScaleBytes);
    std::memcpy(planes.data() + quants, blocks.data() + block + kScaleBytes, count);
  });
  return planes;
}

std::vector<std::byte> blocks_of_planes(std::span<const std::byte> planes, std::int64_t n_rows, std::int64_t width) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(n_rows) * cache_row_file_bytes(width));
  for_each_block(n_rows, width, [&](std::size_t block, std::size_t scale, std::size_t quants, std::size_t count) {
    std::memcpy(blocks.data() + block, planes.data() + scale, kScaleBytes);
    std::memcpy(blocks.data() + block + kScaleBytes, planes.data() + quants, count);
  });
  return blocks;
}

}  // namespace rondo::models
