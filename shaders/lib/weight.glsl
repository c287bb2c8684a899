// Weights of any type, in groups of 32 elements. Before including: kWeightType (specialization constant), the binding
// RONDO_WEIGHT_BINDING and a macro weight_layout with members row_words, scale_row_words, scale_offset_words.
#define RONDO_TYPE_F32 0u
#define RONDO_TYPE_F16 1u
#define RONDO_TYPE_Q8_0 2u
#define RONDO_TYPE_Q4_0 3u
#define RONDO_TYPE_Q4_K 4u
#define RONDO_TYPE_Q6_K 5u
#define RONDO_TYPE_BF16 6u
#define RONDO_TYPE_Q4_1 7u
#define RONDO_TYPE_Q5_0 8u
#define RONDO_TYPE_Q5_1 9u
#define RONDO_TYPE_Q5_K 10u
#define RONDO_TYPE_Q2_K 11u
#define RONDO_TYPE_Q3_K 12u
#define RONDO_TYPE_IQ4_NL 13u
#define RONDO_TYPE_MXFP4 14u

layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords { uint weight_words[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords2 { uvec2 weight_words2[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords4 { uvec4 weight_words4[]; };

#include "lib/block_bits.glsl"
#include "lib/block_bf16.glsl"
#include "lib/block_f16.glsl"
#include "lib/block_f32.glsl"
#include "lib/block_iq4_nl.glsl"
#include "lib/block_mxfp4.glsl"
#include "lib/block_q2_k.glsl"
#include "lib/block_q3_k.glsl"
#include "lib/block_q4_0.glsl"
#include "lib/block_q4_1.glsl"
#include "lib/block_q4_k.glsl"
#include "lib/block_q5_0.glsl"
#include "lib/block_q5_1.glsl"
#include "lib/block_q5_k.glsl"
#include "lib/block_q6_k.glsl"
#include "lib/block_q8_0.glsl"

// The unscaled values of 32 elements, and what to multiply their sum of products (or each of them) by; types whose groups
// have more than one factor give the values themselves, and 1.
float weight_group(uint row, uint group, out vec4 w[8]) {
  switch (kWeightType) {
    case RONDO_TYPE_F32: weight_group_f32(row, group, w); return 1.0;
    case RONDO_TYPE_F16: weight_group_f16(row, group, w); return 1.0;
    case RONDO_TYPE_BF16: weight_group_bf16(row, group, w); return 1.0;
    case RONDO_TYPE_Q4_1: weight_group_q4_1(row, group, w); return 1.0;
    case RONDO_TYPE_Q5_0: return weight_group_q5_0(row, group, w);
    case RONDO_TYPE_Q5_1: weight_group_q5_1(row, group, w); return 1.0;
    case RONDO_TYPE_Q2_K: weight_group_q2_k(row, group, w); return 1.0;
    case RONDO_TYPE_Q3_K: weight_group_q3_k(row, group, w); return 1.0;
    case RONDO_TYPE_Q4_K: weight_group_q4_k(row, group, w); return 1.0;
    case RONDO_TYPE_Q5_K: weight_group_q5_k(row, group, w); return 1.0;
    case RONDO_TYPE_Q6_K: weight_group_q6_k(row, group, w); return 1.0;
    case RONDO_TYPE_MXFP4: return weight_group_mxfp4(row, group, w);
    case RONDO_TYPE_IQ4_NL: weight_group_iq4_nl(row, group, w); break;
    case RONDO_TYPE_Q8_0: weight_group_q8_0(row, group, w); break;
    default: weight_group_q4_0(row, group, w); break;
  }
  const vec2 scales = unpackHalf2x16(weight_words[scale_row(row) + (group >> 1)]);
  return (group & 1u) == 0u ? scales.x : scales.y;
}
