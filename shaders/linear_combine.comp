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
layout(constant_id = 1) const uint kGlu = 0u;
layout(constant_id = 2) const uint kActivation = 0u;
layout(constant_id = 3) const uint kBias = 0u;
layout(constant_id = 4) const uint kLimited = 0u;
layout(std430, set = 0, binding = 1) readonly buffer PartialSums { float partial_sums[]; };
#include "lib/linear_output.glsl"

const uint kAtOnce = 4u;  // that are asked for before any is added; behind the last comes the last again

float sum_of_splits(uint row, uint weight_row) {
  const uint n_splits = p.RONDO_COMBINE_SPLITS;
  float sum = 0.0;
  for (uint first = 0u; first < n_splits; first += kAtOnce) {
    float parts[kAtOnce];
    [[unroll]] for (uint s = 0u; s < kAtOnce; ++s) parts[s] = partial_sums[(min(first + s, n_splits - 1u) * p.rows + row) * (p.outputs << kGlu) + weight_row];
    [[unroll]] for (uint s = 0u; s < kAtOnce; ++s) sum += first + s < n_splits ? parts[s] : 0.0;
  }
  return sum;
}

void main() {
  const uint row = gl_WorkGroupID.y, n = gl_GlobalInvocationID.x;
  if (n >= p.outputs || !row_valid(row, p.rows_per_sequence)) return;
  const float sum = sum_of_splits(row, n);
  store_output(row, n, kGlu == 1u ? output_of_glu(sum, sum_of_splits(row, n + p.outputs), n, n + p.outputs) : output_of(sum, n));
}
