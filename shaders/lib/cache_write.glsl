// Writes elements first .. of a cache row; kCacheType 0: f32, 1: f16 in pairs, 2: q8_0 in planes (graph/cache_layout.h, whose
// conversion this repeats bit for bit). An invocation has kElements neighbours, zeros beyond the head's width. Of q8_0 all
// kWidth invocations, a multiple of 16, store at once: 8 share a scale, and 16 a word of two scales.
#include "lib/float16.glsl"

const uint kElements = kCacheType == 2u ? 4u : 2u;

shared uint largest[kWidth];

// The magnitude with these bits, divided by 127, as f16; NaN for what is not finite.
uint scale_bits(uint magnitude) {
  if (magnitude >= 0x7f800000u) return 0x7e00u;
  const uint exponent = magnitude >> 23;
  if (exponent < 108u) return 0u;
  const uint numerator = ((magnitude & 0x7fffffu) | 0x800000u) << 8;
  const uint quotient = numerator / 127u;
  const uint shift = quotient >= 0x2000000u ? 2u : 1u;
  const bool rest = quotient * 127u != numerator || (quotient & ((1u << shift) - 1u)) != 0u;
  const uint mantissa = (quotient >> shift) | (rest ? 1u : 0u);
  const uint bits = half_bits(uintBitsToFloat(((exponent + shift - 8u) << 23) | (mantissa & 0x7fffffu)));
  return bits == 0x7c00u ? 0x7e00u : bits;
}

// The quotient to nearest, halves away from zero. Division may be a little off; products of a half and 9 bits are not.
uint quant_byte(float element, float scale) {
  const float magnitude = abs(element);
  float quant = min(floor(magnitude / scale + 0.5), 127.0);
  if (magnitude < (quant - 0.5) * scale) quant -= 1.0;
  else if (quant < 127.0 && magnitude >= (quant + 0.5) * scale) quant += 1.0;
  return uint(element < 0.0 ? -int(quant) : int(quant)) & 255u;
}

uint group_scale(uint first_lane) {
  uint magnitude = 0u;
  for (uint i = 0u; i < 8u; ++i) magnitude = max(magnitude, largest[first_lane + i]);
  return scale_bits(magnitude);
}

struct CacheWords {
  uint quants;
  uint scales;  // of the first of 16 invocations
};

// All call.
CacheWords quantized(vec4 elements) {
  const uint self = gl_LocalInvocationID.x;
  const uvec4 magnitudes = floatBitsToUint(elements) & 0x7fffffffu;
  largest[self] = max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
  barrier();
  CacheWords words = CacheWords(0u, 0u);
  const uint bits = group_scale(self & ~7u);
  if ((self & 15u) == 0u) words.scales = bits | (group_scale(self + 8u) << 16);
  if (bits == 0u || bits == 0x7e00u) return words;
  const float scale = half_value(bits);
  words.quants = quant_byte(elements.x, scale) | (quant_byte(elements.y, scale) << 8) | (quant_byte(elements.z, scale) << 16) | (quant_byte(elements.w, scale) << 24);
  return words;
}

// `row` counts the rows of all sequences and heads. A macro, since buffers can't be arguments.
#define RONDO_CACHE_STORE(words, row, first, elements)                                                     \
  {                                                                                                        \
    const uint at = (row) * p.cache_row_elements + (first);                                                \
    if (kCacheType == 2u) {                                                                                \
      const CacheWords made = quantized(elements);                                                         \
      if ((first) < p.cache_row_elements) {                                                                \
        words[at >> 2] = made.quants;                                                                      \
        const uint scales = p.cache_scales + (row) * ((p.cache_row_elements + 63u) >> 6) + ((first) >> 6); \
        if ((gl_LocalInvocationID.x & 15u) == 0u) words[scales] = made.scales;                             \
      }                                                                                                    \
    } else if ((first) < p.head_dim) {                                                                     \
      if (kCacheType == 1u) words[at >> 1] = pack_halves((elements).x, (elements).y);                      \
      else {                                                                                               \
        words[at] = floatBitsToUint((elements).x);                                                         \
        if ((first) + 1u < p.head_dim) words[at + 1u] = floatBitsToUint((elements).y);                     \
      }                                                                                                    \
    }                                                                                                      \
  }
