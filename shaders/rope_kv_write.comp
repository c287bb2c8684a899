// query = rope(q); key_cache[start + t] = rope(k); value_cache[start + t] = v: one dispatch for rope and kv_write of a
// layer, from one storage that holds q, k and v. One invocation per pair of elements, or four where the caches are
// q8_0; grid (ceil(row / (kElements kWidth)), T, B * (H + 2 G)). f32, caches rounded to nearest.
// With kOfStep the step's state has the positions, which are also rows of the caches, and values may be in a storage of their own.
// With kNorm, each head of q and k is divided by the root of its mean square and multiplied by the weights before (Zhang and
// Sennrich 2019; Qwen 3, Gemma 3), and a token's row of the caches is its position.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "rope_kv_write.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kNorm = 0u;
layout(constant_id = 3) const uint kOfStep = 0u;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Positions { int positions[]; };
layout(std430, set = 0, binding = 2) readonly buffer Value { ELEMENT own_values[]; };
layout(std430, set = 0, binding = 3) readonly buffer Start { int start[]; };
layout(std430, set = 0, binding = 3) readonly buffer NormWeights { float norm_weights[]; };
layout(std430, set = 0, binding = 4) readonly buffer Table { vec2 rope_table[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Query { ELEMENT query[]; };
layout(std430, set = 0, binding = 6) writeonly buffer KeyCache { uint key_cache[]; };
layout(std430, set = 0, binding = 7) writeonly buffer ValueCache { uint value_cache[]; };

float head_scale = 1.0;  // of this workgroup's head
uint head_weights = 0u;

float head_element(uint base, uint i) {
  const float x = from_element(input_values[base + i]);
  return kNorm == 1u ? x * head_scale * (norm_weights[head_weights + i] + p.weight_bias) : x;
}
#include "lib/cache_write.glsl"
#include "lib/rope.glsl"
#include "lib/workgroup_reduce.glsl"

// All invocations call.
void measure_head(uint base, uint weights) {
  float sum = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < p.head_dim; i += kWidth) {
    const float x = from_element(input_values[base + i]);
    sum += x * x;
  }
  head_scale = inversesqrt(workgroup_sum(sum) / float(p.head_dim) + p.epsilon);
  head_weights = weights;
}

void main() {
  const uint first = kElements * gl_GlobalInvocationID.x;
  const uint t = gl_WorkGroupID.y;
  const uint all_heads = p.heads + 2u * p.kv_heads;
  const uint sequence = divided(gl_WorkGroupID.z, all_heads), slot = gl_WorkGroupID.z - sequence * all_heads;
  // All three are asked for before the first is looked at.
  const uvec3 state = row_state(sequence * p.rows_per_sequence + t, p.rows_per_sequence);
  uint position;
  if (kOfStep == 1u) position = step_state[sequence * RONDO_STATE_WORDS + RONDO_STATE_POSITION] + t;
  else position = uint(positions[sequence * p.positions_stride + t]);
  uint row = position;
  if (kNorm == 0u && kOfStep == 0u) row = uint(start[sequence]) + t;
  if (!row_valid(state)) return;
  const uint token = sequence * p.stride_sequence + t * p.stride_row;

  if (slot < p.heads) {
    const uint base = p.query_offset + token + slot * p.stride_head;
    if (kNorm == 1u) measure_head(base, p.norm_weights);
    const uint to = ((sequence * p.heads + slot) * p.rows_per_sequence + t) * p.head_dim;
    for (uint i = first; i < min(first + kElements, p.head_dim); ++i) query[to + i] = to_element(rotated(base, i, position));
    return;
  }
  if (p.ring != 0u) row %= p.cache_rows;
  if (row >= p.cache_rows) return;
  const bool is_key = slot < p.heads + p.kv_heads;
  const uint head = slot - p.heads - (is_key ? 0u : p.kv_heads);
  const uint cache_row = (sequence * p.kv_heads + head) * p.cache_rows + row;
  uint base = (is_key ? p.key_offset : p.value_offset) + token + head * p.stride_head;
  if (kOfStep == 1u && !is_key) base = p.value_offset + sequence * p.value_stride_sequence + t * p.value_stride_row + head * p.value_stride_head;
  if (kNorm == 1u && is_key) measure_head(base, p.norm_weights + p.head_dim);
  vec4 elements = vec4(0.0);
  for (uint i = 0u; i < kElements; ++i) {
    if (first + i >= p.head_dim) break;
    if (is_key) elements[i] = rotated(base, first + i, position);
    else if (kOfStep == 1u) elements[i] = from_element(own_values[base + first + i]);
    else elements[i] = from_element(input_values[base + first + i]);
  }
  if (is_key) RONDO_CACHE_STORE(key_cache, cache_row, first, elements)
  else RONDO_CACHE_STORE(value_cache, cache_row, first, elements)
}
