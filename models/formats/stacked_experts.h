// How a folder keeps the experts of a layer together, as GGUF has them. What is returned shares its sources, converts what a read
// touches and may be read from several threads as far as the sources may; it reads within what they have, which the caller checks.
#pragma once

#include <cstdint>

#include <rondo/byte_source.h>

namespace rondo::models {

/// The MXFP4 blocks of GGUF, scale and nibbles, of scales and nibbles that lie apart: byte j of a block's 16 has elements 2 j and
/// 2 j + 1 there, j and j + 16 here. From byte `blocks_offset` of `blocks` and `scales_offset` of `scales` on.
ByteSource join_mxfp4(const ByteSource& blocks, std::uint64_t blocks_offset, const ByteSource& scales, std::uint64_t scales_offset, std::uint64_t n_blocks);

/// Every second of `n_rows`, an even number, from row `first` (0 or 1) on.
ByteSource alternate_rows(const ByteSource& rows, std::uint64_t offset_bytes, std::uint64_t n_rows, std::uint64_t row_bytes, std::uint64_t first);

}  // namespace rondo::models
