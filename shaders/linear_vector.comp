// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and
// up_rows() + n; with kExperts of the weight that row m has (lib/linear_experts.glsl).
// For few rows: kLanes invocations share kRows output rows and add up in shared memory, in fixed order.
// Grid (ceil(N / rows of a workgroup), M). f32 accumulation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRows = 2u;
layout(constant_id = 4) const uint kGlu = 0u;
layout(constant_id = 5) const uint kInputVec4 = 1u;
layout(constant_id = 6) const uint kActivation = 0u;
layout(constant_id = 7) const uint kBias = 0u;
layout(constant_id = 8) const uint kExperts = 0u;
layout(constant_id = 9) const uint kLimited = 0u;

#include "lib/linear_input.glsl"
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_experts.glsl"
#include "lib/linear_output.glsl"

const uint kTeams = kWidth / kLanes;
const uint kSums = kRows * (1u + kGlu);
shared float partial[kWidth];

float dot_group(uint row, uint group, vec4 x[8]) {
  vec4 w[8];
  const float scale = weight_group(row, group, w);
  vec4 sum = w[0] * x[0];
  for (uint i = 1u; i < 8u; ++i) sum += w[i] * x[i];
  return scale * (sum.x + sum.y + sum.z + sum.w);
}

float add_lanes(float value, uint lane) {
  const uint self = gl_LocalInvocationID.x;
  partial[self] = value;
  barrier();
  for (uint step = kLanes / 2u; step > 0u; step /= 2u) {
    if (lane < step) partial[self] += partial[self + step];
    barrier();
  }
  const float sum = partial[self - lane];
  barrier();
  return sum;
}

void main() {
  const uint row = gl_WorkGroupID.y;
  if (!row_valid(token_of(row), p.rows_per_sequence)) return;
  const uint lane = gl_LocalInvocationID.x % kLanes;
  const uint first = gl_WorkGroupID.x * kTeams * kRows + gl_LocalInvocationID.x / kLanes;
  const uint at = input_at(row), first_row = first_weight_row(row);

  float sums[kSums];
  for (uint r = 0u; r < kSums; ++r) sums[r] = 0.0;
  for (uint group = lane; group < p.groups; group += kLanes) {
    vec4 x[8];
    for (uint i = 0u; i < 8u; ++i) x[i] = input_quad(at, group * 32u + 4u * i);
    for (uint r = 0u; r < kRows; ++r) {
      const uint n = min(first + r * kTeams, p.outputs - 1u) + first_row + p.weight_offset_rows;
      sums[r] += dot_group(n, group, x);
      if (kGlu == 1u) sums[kRows + r] += dot_group(n + up_rows(), group, x);
    }
  }
  for (uint r = 0u; r < kRows; ++r) {
    const uint n = first + r * kTeams;
    const float sum = add_lanes(sums[r], lane);
    const float up = kGlu == 1u ? add_lanes(sums[kRows + r], lane) : 0.0;
    if (lane == 0u && n < p.outputs) store_output(row, n, kGlu == 1u ? output_of_glu(sum, up, first_row + n, first_row + n + up_rows()) : output_of(sum, first_row + n));
  }
}
