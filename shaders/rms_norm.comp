// output[r, :] = input[r, :] / sqrt(mean(input[r, :]^2) + epsilon) * (weight + weight_bias) + residual[r, :]. Zhang and Sennrich 2019.
// A token has one row, or one for each head. One workgroup per row; grid (tokens, heads). f32 accumulation in fixed order, tree in
// shared memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "norm.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 4) readonly buffer Residual { ELEMENT residual[]; };
shared float partial[kWidth];

float input_at(uint i) { return from_element(input_values[i]); }

void main() {
  const uint token = gl_WorkGroupID.x, head = gl_WorkGroupID.y;
  if (!row_valid(token, p.rows_per_sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  const uint at = p.input_offset + token * p.input_stride + head * p.head_stride, to = (token * p.heads + head) * p.columns;
  float sum = 0.0;
  for (uint i = self; i < p.columns; i += kWidth) sum += input_at(at + i) * input_at(at + i);
  partial[self] = sum;
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step) partial[self] += partial[self + step];
    barrier();
  }
  const float scale = 1.0 / sqrt(partial[0] / float(p.columns) + p.epsilon);
  for (uint i = self; i < p.columns; i += kWidth) {
    const float factor = p.has_weight != 0u ? weight[p.weight_offset + i] + p.weight_bias : 1.0;
    float value = input_at(at + i) * scale * factor;
    if (p.has_addend != 0u) value += from_element(residual[p.addend_offset + token * p.addend_stride + i]);
    values[to + i] = to_element(value);
  }
}
