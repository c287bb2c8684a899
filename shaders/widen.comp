// Copies a strided view of f16 into one of f32 of the same shape, exactly. One invocation per element; grid
// (ceil(d3 / width), rows). Halves are read as words, which needs no feature.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "copy.params.h"
#include "lib/float16.glsl"
#include "lib/step_state.glsl"
#include "lib/walk.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Input { uint input_pairs[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { float values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_active(row, p.rows_per_sequence)) return;
  const uvec4 index = index_of(row, i3, p.dim1, p.dim2);
  const uint from = element_at(p.input_offset, uvec4(p.input_stride0, p.input_stride1, p.input_stride2, p.input_stride3), index);
  const uint to = element_at(p.output_offset, uvec4(p.output_stride0, p.output_stride1, p.output_stride2, p.output_stride3), index);
  values[to] = half_float((input_pairs[from >> 1] >> (16u * (from & 1u))) & 0xffffu);
}
