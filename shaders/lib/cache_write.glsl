// Writes elements 2 pair and 2 pair + 1 of a cache row; kCacheType 0: f32, 1: f16 in pairs.
#include "lib/float16.glsl"
#define RONDO_CACHE_STORE(words, row_element, pair, a, b)                   \
  if (kCacheType == 1u) words[((row_element) >> 1) + (pair)] = pack_halves(a, b); \
  else {                                                                    \
    words[(row_element) + 2u * (pair)] = floatBitsToUint(a);                \
    if (2u * (pair) + 1u < p.head_dim) words[(row_element) + 2u * (pair) + 1u] = floatBitsToUint(b); \
  }
