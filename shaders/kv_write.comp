// cache[b, g, start[b] + t, :] = update[b, g, t, :] for t < count[b], converted to the cache's type, to nearest even; of a ring
// modulo its rows.
// One invocation per pair of elements, or four of q8_0; grid (ceil(row / (kElements kWidth)), T, B * G).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_write.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(std430, set = 0, binding = 1) buffer Cache { uint cache[]; };
layout(std430, set = 0, binding = 2) readonly buffer Update { ELEMENT update_values[]; };
layout(std430, set = 0, binding = 3) readonly buffer Start { int start[]; };
layout(std430, set = 0, binding = 4) readonly buffer Count { int count[]; };
#include "lib/cache_write.glsl"

void main() {
  const uint first = kElements * gl_GlobalInvocationID.x;
  const uint t = gl_WorkGroupID.y;
  const uint sequence = gl_WorkGroupID.z / p.kv_heads;
  const uint head = gl_WorkGroupID.z % p.kv_heads;
  if (!row_valid(sequence * p.rows_per_sequence + t, p.rows_per_sequence)) return;
  uint row = uint(start[sequence]) + t;
  if (p.ring != 0u) row %= p.cache_rows;
  if (row >= p.cache_rows || (p.has_count != 0u && int(t) >= count[sequence])) return;
  const uint from = p.input_offset + sequence * p.stride_sequence + head * p.stride_head + t * p.stride_row + first;
  vec4 elements = vec4(0.0);
  for (uint i = 0u; i < kElements; ++i) {
    if (first + i < p.head_dim) elements[i] = from_element(update_values[from + i]);
  }
  RONDO_CACHE_STORE(cache, gl_WorkGroupID.z * p.cache_rows + row, first, elements)
}
