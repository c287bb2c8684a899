// Weight types with a number for each element: f32, f16 and bf16.
#include <bit>

#include "graph/block_packing.h"
#include "graph/float16.h"

namespace rondo::graph {

namespace {

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

/// f16 and bf16.
void repack_halves(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t*) {
  zero_tail(quants, k / 2, padded_words(k, 16));
  std::memcpy(quants, row.data(), std::size_t{k} * 2);
}

void dequantize_f16(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) values[i] = half_to_float(read_u16(row.data() + std::size_t{i} * 2));
}

// bf16: the upper half of an f32.
void dequantize_bf16(std::span<const std::byte> row, std::uint32_t k, float* values) {
  for (std::uint32_t i = 0; i < k; ++i) values[i] = std::bit_cast<float>(std::uint32_t{read_u16(row.data() + std::size_t{i} * 2)} << 16);
}

}  // namespace

extern const BlockFormat f32_format = {Type::kF32, 1, 4, 32, 1, 0, repack_f32, dequantize_f32};
extern const BlockFormat f16_format = {Type::kF16, 1, 2, 16, 1, 0, repack_halves, dequantize_f16};
extern const BlockFormat bf16_format = {Type::kBF16, 1, 2, 16, 1, 0, repack_halves, dequantize_bf16};

}  // namespace rondo::graph
