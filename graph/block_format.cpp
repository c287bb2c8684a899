#include "graph/block_format.h"

#include <array>
#include <cstring>

#include "graph/float16.h"

namespace rondo::graph {

namespace {

std::uint16_t read_u16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Stores f16 number `index` of a plane of packed pairs; the first of a pair clears its partner.
void put_scale(std::uint32_t* scales, std::uint32_t index, std::uint16_t half) {
  if (index % 2 == 0) scales[index / 2] = half;
  else scales[index / 2] |= static_cast<std::uint32_t>(half) << 16;
}

void zero_tail(std::uint32_t* words, std::size_t used, std::size_t total) {
  if (used < total) std::memset(words + used, 0, (total - used) * 4);
}

std::size_t padded_words(std::uint32_t k, std::uint32_t group_words) {
  return static_cast<std::size_t>((k + kGroupElements - 1) / kGroupElements) * group_words;
}

void repack_f32(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t*) {
  std::memcpy(quants, row.data(), std::size_t{k} * 4);
  zero_tail(quants, k, padded_words(k, 32));
}

void dequantize_f32(std::span<const std::byte> row, std::uint32_t k, float* values) {
  std::memcpy(values, row.data(), std::size_t{k} * 4);
}

void repack_f16(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t*) {
  zero_tail(quants, k / 2, padded_words(k, 16));
  std::memcpy(quants, row.data(), std::size_t{k} * 2);
}

void dequantize_f16(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) values[i] = half_to_float(read_u16(row.data() + std::size_t{i} * 2));
}

// Q8_0: f16 scale, 32 signed bytes.
void repack_q8_0(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 34;
    put_scale(scales, block, read_u16(at));
    std::memcpy(quants + std::size_t{block} * 8, at + 2, 32);
  }
}

void dequantize_q8_0(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 34;
    values[i] = half_to_float(read_u16(at)) * static_cast<float>(static_cast<std::int8_t>(at[2 + i % 32]));
  }
}

// Q4_0: f16 scale, 16 bytes: element i in the low half of byte i, element i + 16 in its high half; value - 8.
std::uint32_t q4_0_nibble(const std::byte* block, std::uint32_t i) {
  const auto byte = static_cast<std::uint32_t>(block[2 + i % 16]);
  return i < 16 ? byte & 15u : byte >> 4;
}

void repack_q4_0(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  for (std::uint32_t block = 0; block < k / 32; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 18;
    put_scale(scales, block, read_u16(at));
    for (std::uint32_t word = 0; word < 4; ++word) {
      std::uint32_t packed = 0;
      for (std::uint32_t n = 0; n < 8; ++n) packed |= q4_0_nibble(at, 8 * word + n) << (4 * n);
      quants[block * 4 + word] = packed;
    }
  }
}

void dequantize_q4_0(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) {
    const std::byte* at = row.data() + std::size_t{i / 32} * 18;
    values[i] = half_to_float(read_u16(at)) * (static_cast<float>(q4_0_nibble(at, i % 32)) - 8.0f);
  }
}

constexpr std::array<BlockFormat, 4> kFormats = {{
    {Type::kF32, 1, 4, 32, false, repack_f32, dequantize_f32},
    {Type::kF16, 1, 2, 16, false, repack_f16, dequantize_f16},
    {Type::kQ8_0, 32, 34, 8, true, repack_q8_0, dequantize_q8_0},
    {Type::kQ4_0, 32, 18, 4, true, repack_q4_0, dequantize_q4_0},
}};

}  // namespace

const BlockFormat* find_block_format(Type type) {
  for (const BlockFormat& format : kFormats) {
    if (format.type == type) return &format;
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
  layout.scale_row_words = format.has_scales ? (layout.groups + 1) / 2 : 0;
  layout.scale_offset_words = static_cast<std::uint64_t>(n) * layout.row_words;
  const std::uint64_t words = layout.scale_offset_words + static_cast<std::uint64_t>(n) * layout.scale_row_words;
  layout.size_bytes = (words * 4 + 255) / 256 * 256;
  return layout;
}

WeightPlanes planes_of(const Graph& graph, const Tensor& weight) {
  const Storage& storage = graph.storage(weight.storage);
  const BlockFormat* format = find_block_format(storage.type);
  return {plane_layout(*format, storage.matrix[0], storage.matrix[1]),
          static_cast<std::uint32_t>(weight.offset_elements / storage.matrix[1])};
}

}  // namespace rondo::graph
