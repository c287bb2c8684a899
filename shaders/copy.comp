// Copies a strided view into another of the same shape. One invocation per element; grid (ceil(d3 / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "copy.params.h"
#include "lib/step_state.glsl"
#include "lib/walk.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT_BITS input_bits[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT_BITS output_bits[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_active(row, p.rows_per_sequence)) return;
  const uvec4 index = index_of(row, i3, p.dim1, p.dim2);
  const uint from = element_at(p.input_offset, uvec4(p.input_stride0, p.input_stride1, p.input_stride2, p.input_stride3), index);
  const uint to = element_at(p.output_offset, uvec4(p.output_stride0, p.output_stride1, p.output_stride2, p.output_stride3), index);
  output_bits[to] = input_bits[from];
}
