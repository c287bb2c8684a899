#include "graph/block_format.h"

#include <algorithm>
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

/// The low four bits of 256 quants, 32 words: byte b of a group's word j has elements 8 j + b (low half) and 8 j + 4 + b.
void pack_low_bits(const std::uint8_t* quants, std::uint32_t* words) {
  for (std::uint32_t word = 0; word < 32; ++word) {
    const std::uint8_t* q = quants + 8 * word;
    std::uint32_t packed = 0;
    for (std::uint32_t b = 0; b < 4; ++b) packed |= ((q[b] & 15u) | (q[4 + b] & 15u) << 4) << (8 * b);
    words[word] = packed;
  }
}

// Q4_K: f16 d and dmin, 12 bytes of scales and mins, 128 bytes: of each 64 elements the first 32 in the low halves of 32 bytes.
void unpack_q4_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) {
    const auto byte = static_cast<std::uint32_t>(block[16 + i / 64 * 32 + i % 32]);
    quants[i] = static_cast<std::uint8_t>(i / 32 % 2 == 0 ? byte & 15u : byte >> 4);
  }
}

struct ScaleAndMin {
  std::uint32_t scale, min;
};

/// Six bits each of group 0 to 7. Those of the first four are the low bits of bytes 0 to 3 and 4 to 7, whose two high bits
/// continue the halves of bytes 8 to 11, the low halves the scales' and the high ones the mins'.
ScaleAndMin q4_k_scales(const std::byte* block, std::uint32_t group) {
  const auto byte = [block](std::uint32_t i) { return static_cast<std::uint32_t>(block[4 + i]); };
  if (group < 4) return {byte(group) & 63u, byte(group + 4) & 63u};
  const std::uint32_t low = byte(group + 4);
  return {(low & 15u) | byte(group - 4) >> 6 << 4, low >> 4 | byte(group) >> 6 << 4};
}

/// A block's scales are four words: d and dmin, the low four bits of 8 scales, those of 8 mins, and the high two bits of the
/// scales and, above them, of the mins.
void repack_q4_k(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  std::uint8_t q[256];
  for (std::uint32_t block = 0; block < k / 256; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 144;
    unpack_q4_k(at, q);
    pack_low_bits(q, quants + std::size_t{block} * 32);
    std::uint32_t low_scales = 0, low_mins = 0, high = 0;
    for (std::uint32_t group = 0; group < 8; ++group) {
      const ScaleAndMin packed = q4_k_scales(at, group);
      low_scales |= (packed.scale & 15u) << (4 * group);
      low_mins |= (packed.min & 15u) << (4 * group);
      high |= packed.scale >> 4 << (2 * group) | packed.min >> 4 << (16 + 2 * group);
    }
    const std::uint32_t words[4] = {read_u16(at) | static_cast<std::uint32_t>(read_u16(at + 2)) << 16, low_scales, low_mins, high};
    std::memcpy(scales + std::size_t{block} * 4, words, sizeof words);
  }
}

void dequantize_q4_k(std::span<const std::byte> row, std::uint32_t k, float* values) {
  std::uint8_t q[256];
  for (std::uint32_t block = 0; block < k / 256; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 144;
    unpack_q4_k(at, q);
    const float d = half_to_float(read_u16(at)), dmin = half_to_float(read_u16(at + 2));
    for (std::uint32_t group = 0; group < 8; ++group) {  // the products are exact in f32: 11 + 6 + 4 bits
      const ScaleAndMin packed = q4_k_scales(at, group);
      const float scale = d * static_cast<float>(packed.scale), min = dmin * static_cast<float>(packed.min);
      float* to = values + std::size_t{block} * 256 + group * 32;
      for (std::uint32_t i = 0; i < 32; ++i) to[i] = scale * static_cast<float>(q[group * 32 + i]) - min;
    }
  }
}

// Q6_K: 128 bytes of low halves, 64 bytes of high pairs of bits, 16 signed scales, f16 d. Of each 128 elements, 32 at a time:
// the low halves of 64 bytes, then their high ones; the pairs are bits 0-1, 2-3, 4-5, 6-7 of 32 bytes.
void unpack_q6_k(const std::byte* block, std::uint8_t* quants) {
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t half = i / 128, in_half = i % 128;
    const auto low = static_cast<std::uint32_t>(block[half * 64 + in_half % 64]), high = static_cast<std::uint32_t>(block[128 + half * 32 + in_half % 32]);
    quants[i] = static_cast<std::uint8_t>((low >> (in_half / 64 * 4) & 15u) | (high >> (in_half / 32 * 2) & 3u) << 4);
  }
}

/// A block's quants are the low bits of its 8 groups, then two words of high bits for each: bits 2 j and 2 j + 1 of byte b
/// of word h are those of element 16 h + 4 j + b. Its scales are five words: d, and 16 signed bytes.
void repack_q6_k(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales) {
  std::uint8_t q[256];
  for (std::uint32_t block = 0; block < k / 256; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 210;
    unpack_q6_k(at, q);
    std::uint32_t* to = quants + std::size_t{block} * 48;
    pack_low_bits(q, to);
    for (std::uint32_t word = 0; word < 16; ++word) {
      std::uint32_t packed = 0;
      for (std::uint32_t i = 0; i < 16; ++i) packed |= static_cast<std::uint32_t>(q[16 * word + i] >> 4) << (i % 4 * 8 + i / 4 * 2);
      to[32 + word] = packed;
    }
    scales[std::size_t{block} * 5] = read_u16(at + 208);
    std::memcpy(scales + std::size_t{block} * 5 + 1, at + 192, 16);
  }
}

void dequantize_q6_k(std::span<const std::byte> row, std::uint32_t k, float* values) {
  std::uint8_t q[256];
  for (std::uint32_t block = 0; block < k / 256; ++block) {
    const std::byte* at = row.data() + std::size_t{block} * 210;
    unpack_q6_k(at, q);
    const float d = half_to_float(read_u16(at + 208));
    for (std::uint32_t part = 0; part < 16; ++part) {  // exact in f32: 11 bits and two magnitudes of 7 and 5, or powers of two
      const float scale = d * static_cast<float>(static_cast<std::int8_t>(at[192 + part]));
      float* to = values + std::size_t{block} * 256 + part * 16;
      for (std::uint32_t i = 0; i < 16; ++i) to[i] = scale * (static_cast<float>(q[part * 16 + i]) - 32.0f);
    }
  }
}

constexpr std::array<BlockFormat, 6> kFormats = {{
    {Type::kF32, 1, 4, 32, 1, 0, repack_f32, dequantize_f32},
    {Type::kF16, 1, 2, 16, 1, 0, repack_f16, dequantize_f16},
    {Type::kQ8_0, 32, 34, 8, 2, 1, repack_q8_0, dequantize_q8_0},
    {Type::kQ4_0, 32, 18, 4, 2, 1, repack_q4_0, dequantize_q4_0},
    {Type::kQ4_K, 256, 144, 4, 8, 4, repack_q4_k, dequantize_q4_k},
    {Type::kQ6_K, 256, 210, 6, 8, 5, repack_q6_k, dequantize_q6_k},
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
  std::vector<StoragePiece> pieces;
  if (most == 0) return pieces;
  const std::int64_t n_pieces = (n + most - 1) / most;
  for (std::int64_t i = 0; i < n_pieces; ++i) {
    const std::int64_t first = n * i / n_pieces;
    pieces.push_back({first, n * (i + 1) / n_pieces - first, {}});
  }
  return pieces;
}

}  // namespace rondo::graph
