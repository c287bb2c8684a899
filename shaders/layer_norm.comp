// output[r, :] = (x - mean x) / sqrt(var x + epsilon) * weight + bias of x = input[r, :]. Ba, Kiros and Hinton 2016.
// A token has one row, or one for each head. One workgroup per row; grid (tokens, heads). Mean, then variance, both of
// differences to the row's first element, which keeps rows whose values are close to each other exact. f32 accumulation in
// fixed order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "norm.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
#include "lib/workgroup_reduce.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Weight { float weight[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 4) readonly buffer Bias { float bias[]; };

float input_at(uint i) { return from_element(input_values[i]); }

void main() {
  const uint token = gl_WorkGroupID.x, head = gl_WorkGroupID.y;
  if (!row_valid(token, p.rows_per_sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  const uint at = p.input_offset + token * p.input_stride + head * p.head_stride, to = (token * p.heads + head) * p.columns;
  const float pivot = input_at(at);
  float sum = 0.0;
  for (uint i = self; i < p.columns; i += kWidth) sum += input_at(at + i) - pivot;
  const float mean = workgroup_sum(sum) / float(p.columns);
  float squares = 0.0;
  for (uint i = self; i < p.columns; i += kWidth) {
    const float centred = (input_at(at + i) - pivot) - mean;
    squares += centred * centred;
  }
  barrier();
  const float scale = 1.0 / sqrt(workgroup_sum(squares) / float(p.columns) + p.epsilon);
  for (uint i = self; i < p.columns; i += kWidth) {
    const float factor = p.has_weight != 0u ? weight[p.weight_offset + i] : 1.0;
    const float shift = p.has_addend != 0u ? bias[p.addend_offset + i] : 0.0;
    values[to + i] = to_element(((input_at(at + i) - pivot) - mean) * scale * factor + shift);
  }
}
