// output = mean, sum or largest value of input along an axis. One workgroup per element of the output; grid (dimension 2,
// dimensions 0 and 1). f32 accumulation with what rounding loses, in fixed order. NaN makes the result NaN.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "reduce.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kOperation = 0u;
#include "lib/exact_sum.glsl"
#include "lib/workgroup_reduce.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT values[]; };
shared ExactSum slots[kWidth];

float sum_of_row(uint at) {
  const uint self = gl_LocalInvocationID.x;
  ExactSum total = ExactSum(0.0, 0.0);
  for (uint i = self; i < p.columns; i += kWidth) add_exactly(total, from_element(input_values[at + i * p.input_axis_stride]));
  slots[self] = total;
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step) {
      const ExactSum other = slots[self + step];
      add_exactly(total, other.sum);
      total.lost += other.lost;
      slots[self] = total;
    }
    barrier();
  }
  return value_of(slots[0]);
}

float max_of_row(uint at) {
  float largest = uintBitsToFloat(0xff800000u);
  for (uint i = gl_LocalInvocationID.x; i < p.columns; i += kWidth) largest = larger(largest, from_element(input_values[at + i * p.input_axis_stride]));
  return workgroup_max(largest);
}

void main() {
  const uint inner = gl_WorkGroupID.x, i0 = gl_WorkGroupID.y / p.dim1, i1 = gl_WorkGroupID.y % p.dim1;
  const uint row = gl_WorkGroupID.y * gl_NumWorkGroups.x + inner;
  if (!row_active(row, p.rows_per_sequence)) return;
  const uint at = p.input_offset + i0 * p.input_stride0 + i1 * p.input_stride1 + inner * p.input_stride2;
  float result;
  if (kOperation == RONDO_REDUCE_MAX) result = max_of_row(at);
  else result = sum_of_row(at);
  if (kOperation == RONDO_REDUCE_MEAN) result /= float(p.columns);
  if (gl_LocalInvocationID.x == 0u) values[row] = to_element(result);
}
