// Weights of any type, in groups of 32 elements. Before including: kWeightType (specialization constant), the binding
// RONDO_WEIGHT_BINDING and a macro weight_layout with members row_words, scale_row_words, scale_offset_words.

layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords { uint weight_words[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords2 { uvec2 weight_words2[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightWords4 { uvec4 weight_words4[]; };

#include "lib/block_bits.glsl"
#include "lib/weight_types.glsl"  // of lib/weight_types.inc: every lib/block_<type>.glsl, and weight_group()
