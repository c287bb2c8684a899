// Weights of any type, in chunks of 4, 8, 16 or 32 elements and in groups of 32. Before including: kWeightType (specialization
// constant), the binding RONDO_WEIGHT_BINDING and a macro weight_layout with members row_words, scale_row_words, scale_offset_words.

layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords { uint weight_words[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords2 { uvec2 weight_words2[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords4 { uvec4 weight_words4[]; };

#include "lib/block_bits.glsl"
#include "lib/weight_types.glsl"  // of lib/weight_types.inc: every lib/block_<type>.glsl, load_chunk(), chunk_quad() and constants

const bool kIsFloat = kWeightType == RONDO_WEIGHT_F32 || kWeightType == RONDO_WEIGHT_F16 || kWeightType == RONDO_WEIGHT_BF16;
// Fours of elements that a chunk has.
const uint kQuads = kWeightType == RONDO_WEIGHT_F32 ? 1u : kIsFloat ? 2u : kWeightType == RONDO_WEIGHT_Q8_0 ? 4u : 8u;
const bool kHasAddend = !(kIsFloat || kWeightType == RONDO_WEIGHT_Q8_0 || kWeightType == RONDO_WEIGHT_IQ4_NL || kWeightType == RONDO_WEIGHT_MXFP4);
// What is taken from the quants of types with one scale for a group and no minimum.
const uint kCentre = kWeightType == RONDO_WEIGHT_Q4_0 ? 8u : kWeightType == RONDO_WEIGHT_Q5_0 ? 16u : 0u;
const bool kHasOneFactor = !kHasAddend || kCentre != 0u;

// Fours that share their scale.
const uint kScaledQuads = kWeightType == RONDO_WEIGHT_Q2_K || kWeightType == RONDO_WEIGHT_Q3_K || kWeightType == RONDO_WEIGHT_Q6_K ? 4u : kQuads;

#ifdef RONDO_HALF_CHUNKS
const uint kChunksOfSixteen = kQuads == 8u ? 1u : 4u / kQuads;
// Of a half of a group of 32, 0 or 1, the c-th chunk.
Chunk load_sixteen(WeightRow row, uint group, uint group_half, uint c) {
  half_of_chunk = group_half;
  return load_chunk(row, kQuads == 8u ? group : (2u * group + group_half) * kChunksOfSixteen + c);
}
#endif

// Four values of a chunk, as the weight has them.
vec4 scaled_quad(Chunk c, uint quad) {
  const vec4 q = chunk_quad(c, quad);
  if (kIsFloat) return q;
  if (kHasOneFactor) return kCentre == 0u ? q * c.scale.x : q * c.scale.x - float(kCentre) * c.scale.x;  // one multiply-add, and exact: a scale has 11 bits, a quant 5
  return q * c.scale[quad >> 2] + c.addend[quad >> 2];
}

#ifdef RONDO_SHARED_TABLE
// Before the first load of weights, by all of a workgroup of 16 invocations or more. With RONDO_BARRIER_FOLLOWS the caller has a barrier before
// the first value is taken.
void fill_table() {
  if (kWeightType != RONDO_WEIGHT_IQ4_NL && kWeightType != RONDO_WEIGHT_MXFP4) return;
  uvec4 table = kTableIq4Nl;  // not by ?:, for which glslang makes a constant of the wrong one
  if (kWeightType == RONDO_WEIGHT_MXFP4) table = kTableMxfp4;
  const uint place = gl_LocalInvocationID.x;
#ifdef RONDO_WEIGHT_BYTES
  for (uint pair = place; pair < 256u; pair += gl_WorkGroupSize.x) {
    const uint low = pair & 15u, high = pair >> 4;
    table_pairs[pair] = ((table[low >> 2] >> (8u * (low & 3u))) & 255u) | ((table[high >> 2] >> (8u * (high & 3u))) & 255u) << 8;
  }
#else
  if (place < 16u) table_values[place] = float(int(table[place >> 2] << (24u - 8u * (place & 3u))) >> 24);
#endif
#ifndef RONDO_BARRIER_FOLLOWS
  barrier();
#endif
}
#endif

// The unscaled values of 32 elements, and what to multiply their sum of products (or each of them) by; types whose groups
// have more than one factor give the values themselves, and 1.
float weight_group(uint row_number, uint group, out vec4 w[8]) {
  const WeightRow row = row_at(row_number);
  float factor = 1.0;
  for (uint j = 0u; j < 8u / kQuads; ++j) {
    Chunk c;
    if (kWeightType == RONDO_WEIGHT_Q8_0) c = chunk_of(chunk_bits(row, 2u * group + j));  // whose scale is that of both chunks
    else c = load_chunk(row, group * (8u / kQuads) + j);
    for (uint i = 0u; i < kQuads; ++i) {
      const vec4 q = chunk_quad(c, i);
      w[j * kQuads + i] = kHasOneFactor ? q - float(kCentre) : q * c.scale[i >> 2] + c.addend[i >> 2];
    }
    if (kHasOneFactor) factor = c.scale.x;
  }
  return kWeightType == RONDO_WEIGHT_Q8_0 ? group_scale(row, group) : factor;
}
