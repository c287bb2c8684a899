// output = a + b, a - b, a * b or a / b with NumPy's broadcasting. One invocation per element of the last dimension; grid
// (ceil(d3 / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "binary.params.h"
#include "lib/step_state.glsl"
#include "lib/walk.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kOperation = 0u;
layout(std430, set = 0, binding = 1) readonly buffer A { ELEMENT a_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer B { ELEMENT b_values[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

float combine(float a, float b) {
  switch (kOperation) {
    case RONDO_BINARY_SUB: return a - b;
    case RONDO_BINARY_MUL: return a * b;
    case RONDO_BINARY_DIV: return a / b;
    default: return a + b;
  }
}

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_valid(row, p.rows_per_sequence)) return;
  const uvec4 index = index_of(row, i3, p.dim1, p.dim2);
  const float a = from_element(a_values[element_at(p.a_offset, uvec4(p.a_stride0, p.a_stride1, p.a_stride2, p.a_stride3), index)]);
  const float b = from_element(b_values[element_at(p.b_offset, uvec4(p.b_stride0, p.b_stride1, p.b_stride2, p.b_stride3), index)]);
  values[row * p.dim3 + i3] = to_element(combine(a, b));
}
