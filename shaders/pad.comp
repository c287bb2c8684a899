// output = input with a constant around it. One invocation per element of the output; grid (ceil(d3 / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "pad.params.h"
#include "lib/step_state.glsl"
#include "lib/walk.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_active(row, p.rows_per_sequence)) return;
  const uvec4 extents = uvec4(p.extent0, p.extent1, p.extent2, p.extent3);
  // Before the input's beginning the difference wraps to a large number.
  const uvec4 index = index_of(row, i3, p.dim1, p.dim2) - uvec4(p.before0, p.before1, p.before2, p.before3);
  const uvec4 strides = uvec4(p.input_stride0, p.input_stride1, p.input_stride2, p.input_stride3);
  const float x = from_element(input_values[element_at(p.input_offset, strides, min(index, extents - 1u))]);
  values[row * p.dim3 + i3] = to_element(all(lessThan(index, extents)) ? x : p.value);
}
