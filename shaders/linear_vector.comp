// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu activate(gate) * up of weight
// rows n and N + n, without bias.
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

#include "lib/linear_input.glsl"
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"

const uint kTeams = kWidth / kLanes;
const uint kSums = kRows * (1u + kGlu);
shared float partial[kWidth];

float dot_group(uint row, uint group, vec4 x[8]) {
  vec4 w[8];
  const float scale = weight_group(row + p.weight_offset_rows, group, w);
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
  if (!row_valid(row, p.rows_per_sequence)) return;
  const uint lane = gl_LocalInvocationID.x % kLanes;
  const uint first = gl_WorkGroupID.x * kTeams * kRows + gl_LocalInvocationID.x / kLanes;
  const uint at = p.input_offset + row * p.input_stride;

  float sums[kSums];
  for (uint r = 0u; r < kSums; ++r) sums[r] = 0.0;
  for (uint group = lane; group < p.groups; group += kLanes) {
    vec4 x[8];
    for (uint i = 0u; i < 8u; ++i) x[i] = input_quad(at, group * 32u + 4u * i);
    for (uint r = 0u; r < kRows; ++r) {
      const uint n = min(first + r * kTeams, p.outputs - 1u);
      sums[r] += dot_group(n, group, x);
      if (kGlu == 1u) sums[kRows + r] += dot_group(n + p.outputs, group, x);
    }
  }
  for (uint r = 0u; r < kRows; ++r) {
    const uint n = first + r * kTeams;
    float value = add_lanes(sums[r], lane);
    if (kGlu == 1u) {
      const float up = add_lanes(sums[kRows + r], lane);
      value = activate(value) * up;
    }
    if (lane == 0u && n < p.outputs) store_output(row, n, value);
  }
}
