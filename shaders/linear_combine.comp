// Adds up the sums of linear's tiles, each of some of the columns (lib/linear_tile.glsl), in the order of the columns, and does with them what linear does:
// output[m, n] = activate(sum_s sums[s, m, n] + bias[n]) + residual[m, n]; with kGlu glu of sums n and N + n.
// One invocation per output; grid (ceil(N / kWidth), M). f32 accumulation.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kSplits = 2u;
layout(constant_id = 2) const uint kGlu = 0u;
layout(constant_id = 3) const uint kActivation = 0u;
layout(constant_id = 4) const uint kBias = 0u;
layout(constant_id = 5) const uint kLimited = 0u;
layout(std430, set = 0, binding = 1) readonly buffer PartialSums { float partial_sums[]; };
#include "lib/linear_output.glsl"

// All are asked for before any is added.
float sum_of_splits(uint row, uint weight_row) {
  float parts[kSplits];
  [[unroll]] for (uint s = 0u; s < kSplits; ++s) parts[s] = partial_sums[(s * p.rows + row) * (p.outputs << kGlu) + weight_row];
  float sum = parts[0];
  [[unroll]] for (uint s = 1u; s < kSplits; ++s) sum += parts[s];
  return sum;
}

void main() {
  const uint row = gl_WorkGroupID.y, n = gl_GlobalInvocationID.x;
  if (n >= p.outputs || !row_valid(row, p.rows_per_sequence)) return;
  const float sum = sum_of_splits(row, n);
  store_output(row, n, kGlu == 1u ? output_of_glu(sum, sum_of_splits(row, n + p.outputs), n, n + p.outputs) : output_of(sum, n));
}
