// What operators that touch a KV cache share.
#pragma once

#include "graph/ops/checks.h"

namespace rondo::graph {

/// Cache (B, G, S, D), f32 or f16, rows dense and at even distance: strides (G S P, S P, P, 1) with P = D padded to a word.
inline Status check_cache(const Graph& graph, TensorId id, const char* role) {
  if (id == kNone) return refuse(fmt::format("{} is missing", role));
  const Tensor& cache = graph.tensor(id);
  if (cache.type != Type::kF32 && cache.type != Type::kF16) {
    return refuse(fmt::format("{} is {} but must be f32 or f16", role, type_name(cache.type)));
  }
  if (cache.shape.rank != 4) return refuse(fmt::format("{} is {} but must be (B, G, S, D)", role, to_string(cache.shape)));
  const std::int64_t padded = cache.type == Type::kF16 ? (cache.shape[3] + 1) / 2 * 2 : cache.shape[3];
  const Strides expected = {cache.shape[1] * cache.shape[2] * padded, cache.shape[2] * padded, padded, 1};
  if (cache.strides == expected && cache.offset_elements == 0) return {};
  return refuse(fmt::format("{} must have rows padded to whole words and nothing else between them", role));
}

/// The specialization constant of the cache's type: 0 f32, 1 f16.
inline std::uint32_t cache_type_constant(const Tensor& cache) { return cache.type == Type::kF16 ? 1u : 0u; }

}  // namespace rondo::graph
