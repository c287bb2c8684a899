// Keys, values and caches of q8_0 between files, which have them in blocks, and memory, which has planes.
//
// In a file a row of D elements is whole blocks of 32 in GGUF's order, 34 bytes each: the scale as f16, then the quants. Where
// D is no multiple of 32 the last block is filled up; what fills it is not read, and written as zeros. Planes are as
// graph/cache_layout.h says. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rondo::models {

/// Bytes of a row of `width` elements in a file.
std::uint64_t cache_row_file_bytes(std::int64_t width);

/// The planes of `n_rows` rows of `width` elements out of their blocks, n_rows * cache_row_file_bytes(width) bytes.
std::vector<std::byte> planes_of_blocks(std::span<const std::byte> blocks, std::int64_t n_rows, std::int64_t width);

/// The other way round; `planes` has the size that graph::cache_layout says.
std::vector<std::byte> blocks_of_planes(std::span<const std::byte> planes, std::int64_t n_rows, std::int64_t width);

}  // namespace rondo::models
