// What operators that touch a KV cache share.
#pragma once

#include "graph/cache_layout.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

/// The type is one that caches, keys and values have.
inline Status check_cache_type(const Tensor& tensor, const char* role) {
  if (is_cache_type(tensor.type)) return {};
  return refuse(fmt::format("{} is {} but must be f32, f16 or q8_0", role, type_name(tensor.type)));
}

/// Cache (B, G, S, D), f32, f16 or q8_0, with the rows of cache_layout and nothing else between them, from the begin of its
/// storage; of q8_0 the whole storage, whose size says where the scales are.
inline Status check_cache(const Graph& graph, TensorId id, const char* role) {
  if (id == kNone) return refuse(fmt::format("{} is missing", role));
  const Tensor& cache = graph.tensor(id);
  RONDO_TRY(check_cache_type(cache, role));
  if (cache.shape.rank != 4) return refuse(fmt::format("{} is {} but must be (B, G, S, D)", role, to_string(cache.shape)));
  const bool dense = cache.strides == cache_strides(cache.type, cache.shape) && cache.offset_elements == 0;
  if (cache.type == Type::kQ8_0) {
    const std::uint64_t size_bytes = cache_layout(cache.type, cache.shape.n_rows(), cache.shape[3]).size_bytes;
    if (dense && graph.storage(cache.storage).type == Type::kQ8_0 && graph.storage(cache.storage).size_bytes == size_bytes) return {};
    return refuse(fmt::format("{} is q8_0 and must be the whole of its storage: quants and scales lie apart", role));
  }
  if (dense) return {};
  return refuse(fmt::format("{} must have rows padded to whole words and nothing else between them", role));
}

/// Rows that one step writes into a ring (B, G, S, D) lie in different places.
inline Status check_ring(const Shape& cache, std::int64_t rows) {
  return rows <= cache[2] ? Status() : refuse(fmt::format("{} rows at once are more than the ring's {}", rows, cache[2]));
}

/// The specialization constant of the cache's type.
inline std::uint32_t cache_type_constant(const Tensor& cache) { return static_cast<std::uint32_t>(cache.type); }
static_assert(static_cast<int>(Type::kF32) == 0 && static_cast<int>(Type::kF16) == 1 && static_cast<int>(Type::kQ8_0) == 2, "what shaders compare kCacheType with");

/// Bytes of one element with its part of a scale, for costs.
inline double cache_element_bytes(const Tensor& cache) {
  return static_cast<double>(cache_layout(cache.type, 1, cache.shape[3]).size_bytes) / static_cast<double>(cache.shape[3]);
}

/// The workgroups of a kernel that writes cache rows.
struct CacheLanes {
  std::uint32_t width;   ///< invocations: one writes two elements, of q8_0 four
  std::uint32_t groups;  ///< workgroups of a row
};
/// Of q8_0 a multiple of 16 invocations, so that a workgroup has all elements of a word of two scales.
inline CacheLanes cache_lanes(const Tensor& cache) {
  const bool quants = cache.type == Type::kQ8_0;
  const std::uint32_t lanes = quants ? u32(cache.strides[2] / 4) : u32((cache.shape[3] + 1) / 2);
  std::uint32_t width = quants ? 16 : 8;
  while (width < lanes && width < 64) width *= 2;
  return {width, (lanes + width - 1) / width};
}

/// Where the scales of a piece begin, in words; 0 where there are none.
inline std::uint32_t scales_offset(const Tensor& cache, const StoragePiece& piece) {
  return static_cast<std::uint32_t>(cache_layout(cache.type, cache.shape[0] * piece.count * cache.shape[2], cache.shape[3]).scales_offset_words);
}

}  // namespace rondo::graph
