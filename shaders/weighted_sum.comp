// output[r, i] = sum_j weights[r, j] * input[r, j columns + i] + residual[r, i]. One invocation per element; grid
// (ceil(columns / width), rows). f32 accumulation in the order of j.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "weighted_sum.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Weights { float weights[]; };
layout(std430, set = 0, binding = 3) readonly buffer Residual { ELEMENT residual[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Output { ELEMENT values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i = gl_GlobalInvocationID.x;
  if (i >= p.columns || !row_valid(row, p.rows_per_sequence)) return;
  float sum = 0.0;
  for (uint j = 0u; j < p.k; ++j) sum += weights[p.weights_offset + row * p.weights_stride + j] * from_element(input_values[p.input_offset + row * p.input_stride + j * p.columns + i]);
  if (p.has_residual != 0u) sum += from_element(residual[p.residual_offset + row * p.residual_stride + i]);
  values[row * p.columns + i] = to_element(sum);
}
