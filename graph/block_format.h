// Weight types: how GGUF stores a row, how a row is repacked into planes of 32-bit words, and what its values are.
//
// On the device a weight of N rows and K columns is one block: a plane of quants (row after row, each `row_words` words),
// then, at `scale_offset_words`, a plane of scales (each row `scale_row_words` words). K is padded with zeros to whole groups
// of 32; every row of quants is a multiple of 16 bytes. The kernels' side is shaders/lib/block_<type>.glsl, which says what
// the words of quants hold. Scales, by type:
//   q8_0, q4_0, iq4_nl  an f16 for each group, two a word
//   q4_1                a word for each group: f16 scale and minimum
//   q5_0, q5_1          as q4_0 and q4_1, each with a word of high bits for each group: three words for two, two for one
//   mxfp4               a byte for each group, four a word
//   q4_K, q5_K          8 groups together in four words
//   q2_K, q3_K, q6_K    8 groups together in five words
// Pure functions, no state. Format: the GGUF specification (ggml-org/ggml, docs/gguf.md) and the types' published layouts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace rondo::graph {

constexpr std::uint32_t kGroupElements = 32;

/// One weight type.
struct BlockFormat {
  Type type;
  std::uint32_t block_elements;  ///< K must be a multiple
  std::uint32_t block_bytes;     ///< in a file
  std::uint32_t group_words;     ///< words of quants per 32 elements
  std::uint32_t scale_groups;    ///< scales come for this many groups together,
  std::uint32_t scale_words;     ///< in this many words
  /// Writes one row of `k` elements: `quants` has row_words words, `scales` scale_row_words. `row` is in file order.
  void (*repack_row)(std::span<const std::byte> row, std::uint32_t k, std::uint32_t* quants, std::uint32_t* scales);
  /// Values of one row of `k` elements.
  void (*dequantize_row)(std::span<const std::byte> row, std::uint32_t k, float* values);
};

/// Columns of a weight of this type that an invocation loads at once (Chunk of shaders/lib/block_bits.glsl): 4, 8, 16 or 32.
std::uint32_t columns_of_chunk(Type type);

/// The format of a weight type; null for types that weights can't have (i32).
const BlockFormat* find_block_format(Type type);

/// The weight type that GGUF files have under this number, if there is one.
std::optional<Type> find_ggml_type(std::uint32_t number);

/// Bytes of a row of `k` elements in a file.
std::uint64_t file_row_bytes(const BlockFormat& format, std::uint64_t k);

/// Where the parts of an (n, k) weight lie inside its block, in 32-bit words.
struct PlaneLayout {
  std::uint32_t groups = 0;  ///< per row, ceil(k / 32)
  std::uint32_t row_words = 0;
  std::uint32_t scale_row_words = 0;
  std::uint64_t scale_offset_words = 0;
  std::uint64_t size_bytes = 0;  ///< a multiple of 256
};
PlaneLayout plane_layout(const BlockFormat& format, std::int64_t n, std::int64_t k);

/// Repacks consecutive rows of `k` elements, which are in file order, into the planes: the first row's quants go to `quants`,
/// its scales to `scales` (not used by types without), the next rows' right behind them.
void pack_rows(const BlockFormat& format, std::uint32_t k, std::span<const std::byte> rows, std::byte* quants, std::byte* scales);

/// All planes of an (n, k) weight whose rows are in file order; what no row fills keeps the words `padding`.
std::vector<std::byte> pack_planes(const BlockFormat& format, std::int64_t n, std::int64_t k, std::span<const std::byte> rows, std::uint32_t padding = 0);

/// What a kernel needs to read rows of a weight tensor that lie in one piece of its storage.
struct WeightPlanes {
  PlaneLayout layout;              ///< of the piece
  std::size_t piece = 0;           ///< of the storage
  std::uint32_t first_row = 0;     ///< in the piece
  std::uint32_t n_rows = 0;
  std::uint32_t tensor_row = 0;    ///< the row of the tensor that `first_row` is
};
/// The rows of a weight tensor, piece by piece; one entry where its storage is whole.
std::vector<WeightPlanes> planes_of(const Graph& graph, const Tensor& weight);

/// Rows [0, n) of a weight with `k` columns in as few runs as keep each within `max_bytes`, about equally long; places
/// unset. Empty if one row alone needs more.
std::vector<StoragePiece> split_rows(const BlockFormat& format, std::int64_t n, std::int64_t k, std::uint64_t max_bytes);

}  // namespace rondo::graph
