// output = activate(input), element by element. One invocation per element; grid (ceil(d3 / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "unary.params.h"
#include "lib/step_state.glsl"
#include "lib/walk.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kActivation = 0u;
#include "lib/activation.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_valid(row, p.rows_per_sequence)) return;
  const uvec4 strides = uvec4(p.input_stride0, p.input_stride1, p.input_stride2, p.input_stride3);
  const float x = from_element(input_values[element_at(p.input_offset, strides, index_of(row, i3, p.dim1, p.dim2))]);
  values[row * p.dim3 + i3] = to_element(activate(x));
}
