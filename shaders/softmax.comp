// output = exp(s - max s) / sum exp(s - max s) along an axis, or its logarithm, with s = scale * input + mask. One workgroup
// per row along the axis; grid (dimension 2, dimensions 0 and 1). f32 accumulation in fixed order.
// s is taken relative to the input that scales to the largest value, so that no difference of large numbers is rounded twice.
// Running maxima begin with the lowest finite number: a row of nothing but -inf gives zeros (logarithms: -inf), not NaN.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "softmax.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kLogarithm = 0u;
#include "lib/workgroup_reduce.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer Mask { float mask_values[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

const float kLowest = -3.40282347e38;

uint input_at, mask_at;
float pivot;

float score(uint i) {
  float value = (from_element(input_values[input_at + i * p.input_axis_stride]) - pivot) * p.scale;
  if (p.has_mask != 0u) value += mask_values[mask_at + i * p.mask_axis_stride];
  return value;
}

void main() {
  const uint inner = gl_WorkGroupID.x, i0 = gl_WorkGroupID.y / p.dim1, i1 = gl_WorkGroupID.y % p.dim1;
  if (!row_active(gl_WorkGroupID.y * gl_NumWorkGroups.x + inner, p.rows_per_sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  input_at = p.input_offset + i0 * p.input_stride0 + i1 * p.input_stride1 + inner * p.input_stride2;
  mask_at = p.mask_offset + i0 * p.mask_stride0 + i1 * p.mask_stride1 + inner * p.mask_stride2;
  const float sign_of_scale = p.scale < 0.0 ? -1.0 : 1.0;
  float largest = kLowest;
  for (uint i = self; i < p.columns; i += kWidth) largest = max(largest, sign_of_scale * from_element(input_values[input_at + i * p.input_axis_stride]));
  pivot = sign_of_scale * workgroup_max(largest);
  float top = 0.0;
  if (p.has_mask != 0u) {
    largest = kLowest;
    for (uint i = self; i < p.columns; i += kWidth) largest = max(largest, score(i));
    barrier();
    top = workgroup_max(largest);
  }
  float sum = 0.0;
  for (uint i = self; i < p.columns; i += kWidth) {
    const float value = score(i) - top;
    sum += isnan(value) ? value : exp(value);  // exp may lose NaN, as SwiftShader's does
  }
  barrier();
  const float total = workgroup_sum(sum);
  const uint to = i0 * p.output_stride0 + i1 * p.output_stride1 + inner * p.output_stride2;
  for (uint i = self; i < p.columns; i += kWidth) {
    const float value = score(i) - top;
    float result;
    if (kLogarithm == 1u) result = total == 0.0 ? uintBitsToFloat(0xff800000u) : isnan(total) ? total : value - log(total);
    else result = total == 0.0 ? 0.0 : exp(value) / total;
    values[to + i * p.output_axis_stride] = to_element(result);
  }
}
