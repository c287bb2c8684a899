// output = a + b with NumPy's broadcasting. One invocation per element of the last dimension; grid (ceil(d3 / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "add.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer A { float a[]; };
layout(std430, set = 0, binding = 2) readonly buffer B { float b[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { float values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i3 = gl_GlobalInvocationID.x;
  if (i3 >= p.dim3 || !row_valid(row, p.rows_per_sequence)) return;
  const uint i2 = row % p.dim2;
  const uint i1 = row / p.dim2 % p.dim1;
  const uint i0 = row / p.dim2 / p.dim1;
  const uint at_a = p.a_offset + i0 * p.a_stride0 + i1 * p.a_stride1 + i2 * p.a_stride2 + i3 * p.a_stride3;
  const uint at_b = p.b_offset + i0 * p.b_stride0 + i1 * p.b_stride1 + i2 * p.b_stride2 + i3 * p.b_stride3;
  values[row * p.dim3 + i3] = a[at_a] + b[at_b];
}
