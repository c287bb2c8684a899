// Rotary position embedding of input (B, H, T, D), any strides with dense D; output contiguous. Su et al. 2021.
// One invocation per element; grid (ceil(D / width), T, B * H). f32.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "rope.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Positions { int positions[]; };
layout(std430, set = 0, binding = 3) readonly buffer Table { vec2 rope_table[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Output { ELEMENT values[]; };

float head_element(uint base, uint i) { return from_element(input_values[base + i]); }
#include "lib/rope.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  const uint t = gl_WorkGroupID.y;
  const uint sequence = gl_WorkGroupID.z / p.heads;
  const uint head = gl_WorkGroupID.z % p.heads;
  if (i >= p.head_dim || !row_valid(sequence * p.rows_per_sequence + t, p.rows_per_sequence)) return;
  const uint base = p.input_offset + sequence * p.stride_sequence + head * p.stride_head + t * p.stride_row;
  const uint position = uint(positions[sequence * p.positions_stride + t]);
  values[(gl_WorkGroupID.z * p.rows_per_sequence + t) * p.head_dim + i] = to_element(rotated(base, i, position));
}
