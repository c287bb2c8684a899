// How keys and values lie in memory: rows of one KV head and position each, as f32, f16 or q8_0.
//
// f32: dense rows. f16: rows padded to whole words. q8_0: planes of words, as of a weight: the quants of all rows, each
// padded with zeros to a multiple of 32, then the scales of all rows, each padded to whole words. Planes keep the quants of
// a row aligned for vectors, and since a row shares no word with another, workgroups write rows without atomics. A cache in
// pieces has planes in each piece. Pure functions; the definition of the conversion that kernels repeat bit for bit.
#pragma once

#include <cstdint>
#include <span>

#include "graph/tensor.h"

namespace rondo::graph {

/// Elements of a q8_0 group, which share a scale.
constexpr std::int64_t kCacheGroup = 32;

/// Where the rows of a cache, or of a piece of one, lie.
struct CacheLayout {
  std::int64_t row_elements = 0;         ///< the row's width with its padding
  std::uint64_t scales_offset_words = 0; ///< q8_0: where the plane of scales begins
  std::uint64_t scale_row_words = 0;     ///< q8_0: words of a row's scales
  std::uint64_t size_bytes = 0;
};

/// Keys and values may be of this type.
constexpr bool is_cache_type(Type type) { return type == Type::kF32 || type == Type::kF16 || type == Type::kQ8_0; }

/// `n_rows` rows of `width` elements; `type` is a cache type.
CacheLayout cache_layout(Type type, std::int64_t n_rows, std::int64_t width);

/// The strides of a cache (B, G, S, D).
Strides cache_strides(Type type, const Shape& shape);

/// Converts up to 32 elements, the rest being zeros: the quants of all 32, and the scale, f16, as the result. The scale is
/// the exact quotient of the largest magnitude and 127, rounded to nearest even; quants are the exact quotients of elements
/// and scale, rounded to nearest, halves away from zero, at most 127 (which matters where the scale is subnormal). A scale
/// of 0 has quants of 0. Where there is a NaN or an infinity, or the scale would be infinite, the scale is NaN and the
/// quants are 0: every element reads as NaN.
std::uint16_t quantize_group(std::span<const float> elements, std::span<std::int8_t, kCacheGroup> quants);

}  // namespace rondo::graph
