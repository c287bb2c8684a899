// query = rope(q); key_cache[start + t] = rope(k); value_cache[start + t] = v: one dispatch for rope and kv_write of a
// layer, from one storage that holds q, k and v. One invocation per pair of elements; grid (ceil(pairs / width), T,
// B * (H + 2 G)). f32, caches rounded to nearest even.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "rope_kv_write.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(std430, set = 0, binding = 1) readonly buffer Input { float input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Positions { int positions[]; };
layout(std430, set = 0, binding = 3) readonly buffer Start { int start[]; };
layout(std430, set = 0, binding = 4) readonly buffer Table { vec2 rope_table[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Query { float query[]; };
layout(std430, set = 0, binding = 6) writeonly buffer KeyCache { uint key_cache[]; };
layout(std430, set = 0, binding = 7) writeonly buffer ValueCache { uint value_cache[]; };

float head_element(uint at) { return input_values[at]; }
#include "lib/cache_write.glsl"
#include "lib/rope.glsl"

void main() {
  const uint pair = gl_GlobalInvocationID.x;
  const uint t = gl_WorkGroupID.y;
  const uint all_heads = p.heads + 2u * p.kv_heads;
  const uint sequence = gl_WorkGroupID.z / all_heads;
  const uint slot = gl_WorkGroupID.z % all_heads;
  if (2u * pair >= p.head_dim || !row_valid(sequence * p.rows_per_sequence + t, p.rows_per_sequence)) return;
  const uint position = uint(positions[sequence * p.positions_stride + t]);
  const uint token = sequence * p.stride_sequence + t * p.stride_row;
  const bool both = 2u * pair + 1u < p.head_dim;

  if (slot < p.heads) {
    const uint base = p.query_offset + token + slot * p.stride_head;
    const uint to = ((sequence * p.heads + slot) * p.rows_per_sequence + t) * p.head_dim + 2u * pair;
    query[to] = rotated(base, 2u * pair, position);
    if (both) query[to + 1u] = rotated(base, 2u * pair + 1u, position);
    return;
  }
  const uint row = uint(start[sequence]) + t;
  if (row >= p.cache_rows) return;
  const bool is_key = slot < p.heads + p.kv_heads;
  const uint head = slot - p.heads - (is_key ? 0u : p.kv_heads);
  const uint to = ((sequence * p.kv_heads + head) * p.cache_rows + row) * p.cache_row_elements;
  if (is_key) {
    const uint base = p.key_offset + token + head * p.stride_head;
    const float a = rotated(base, 2u * pair, position);
    const float b = both ? rotated(base, 2u * pair + 1u, position) : 0.0;
    RONDO_CACHE_STORE(key_cache, to, pair, a, b)
  } else {
    const uint from = p.value_offset + token + head * p.stride_head + 2u * pair;
    const float a = head_element(from);
    const float b = both ? head_element(from + 1u) : 0.0;
    RONDO_CACHE_STORE(value_cache, to, pair, a, b)
  }
}
