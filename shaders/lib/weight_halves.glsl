// Values of weights whose types have quants, in f16 and two at a time. Needs lib/weight.glsl and GL_EXT_shader_explicit_arithmetic_types_float16.
// A quant is taken for the lowest bits of an f16 whose last bit counts 2^-kQuantShift: so it is divided by a power of two, and the scale
// multiplied by it, which is within f16 where values are, and rarely subnormal where they are not. What is rounded are scales and minima
// of K types, and the value: once, if fma() is one instruction, as it is where this is chosen.
const bool kHasNibbles = kWeightType == RONDO_WEIGHT_Q4_0 || kWeightType == RONDO_WEIGHT_Q4_1 || kWeightType == RONDO_WEIGHT_Q4_K;
const bool kHasFifthBits = kWeightType == RONDO_WEIGHT_Q5_0 || kWeightType == RONDO_WEIGHT_Q5_1 || kWeightType == RONDO_WEIGHT_Q5_K;
const uint kQuantBits = kHasNibbles ? 4u : kHasFifthBits ? 5u : kWeightType == RONDO_WEIGHT_Q2_K ? 2u : kWeightType == RONDO_WEIGHT_Q3_K ? 3u :
                        kWeightType == RONDO_WEIGHT_Q6_K ? 6u : kWeightType == RONDO_WEIGHT_Q8_0 ? 8u : 0u;
const bool kHasQuants = kQuantBits != 0u;
const uint kQuantShift = kHasQuants ? kQuantBits - 2u : 0u;  // of types with a minimum quants times their scale may reach twice as far as values
// Types without a minimum have half of all quants below 0.
const bool kHasMinimum = !kHasOneFactor && kWeightType != RONDO_WEIGHT_Q3_K && kWeightType != RONDO_WEIGHT_Q6_K;
const uint kOrigin = kHasMinimum || !kHasQuants ? 0u : 1u << (kQuantBits - 1u);

// As scaled_quad().
uvec2 scaled_halves(Chunk c, uint quad) {
  uint even_bits, odd_bits;  // of the first and third quant, of the second and fourth
  if (kHasNibbles) {  // a shift and a mask less than by chunk_bytes()
    const uint word = c.bits[quad >> 1], at = 4u * (quad & 1u);
    even_bits = (word >> at) & 0x000f000fu;
    odd_bits = (word >> (at + 8u)) & 0x000f000fu;
  } else {
    const uint bytes = kWeightType == RONDO_WEIGHT_Q8_0 ? chunk_bytes(c, quad) ^ 0x80808080u : chunk_bytes(c, quad);
    even_bits = bytes & 0x00ff00ffu;
    odd_bits = (bytes >> 8) & 0x00ff00ffu;
  }
  const float power = float(1u << kQuantShift);
  const uint exponent = (25u - kQuantShift) * 0x04000400u;  // 1024 / power
  const f16vec2 origin = f16vec2((1024.0 + float(kOrigin)) / power), scale = f16vec2(c.scale[quad >> 2] * power), minimum = f16vec2(c.addend[quad >> 2]);
  f16vec2 even = unpackFloat2x16(even_bits | exponent) - origin, odd = unpackFloat2x16(odd_bits | exponent) - origin;
  even = kHasMinimum ? fma(even, scale, minimum) : even * scale;
  odd = kHasMinimum ? fma(odd, scale, minimum) : odd * scale;
  return uvec2(packFloat2x16(f16vec2(even.x, odd.x)), packFloat2x16(f16vec2(even.y, odd.y)));
}
