// How the repackers of weight types put bits into words. For block_format_*.cpp, which define a <name>_format for each type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "graph/block_format.h"

namespace rondo::graph {

/// A little-endian 16-bit number.
inline std::uint16_t read_u16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Two little-endian 16-bit numbers as a word, the first in its low half.
inline std::uint32_t read_u32(const std::byte* at) {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Bits [kFirst, kFirst + kWidth) of `n` quants. A word has those of 32 / kWidth elements, of its element e at bit
/// 8 (e % 4) + kWidth (e / 4): one shift and one mask bring four neighbours into the four bytes of a word.
template <std::uint32_t kFirst, std::uint32_t kWidth>
void pack_bits(const std::uint8_t* quants, std::uint32_t n, std::uint32_t* words) {
  constexpr std::uint32_t kEach = 32 / kWidth, kMask = (1u << kWidth) - 1;
  for (std::uint32_t word = 0; word < n / kEach; ++word) {
    std::uint32_t packed = 0;
    for (std::uint32_t e = 0; e < kEach; ++e) packed |= (std::uint32_t{quants[kEach * word + e]} >> kFirst & kMask) << (8 * (e % 4) + kWidth * (e / 4));
    words[word] = packed;
  }
}

}  // namespace rondo::graph
