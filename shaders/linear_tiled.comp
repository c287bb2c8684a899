// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and
// N + n.
// For many rows: a workgroup of 64 makes a tile of 8 kTileRows x 64 outputs (32 with GLU) from 32 columns at a time,
// weights and input dequantised once into shared memory. Grid (ceil(N / tile), ceil(M / tile)). f32 accumulation.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kTileRows = 4u;
layout(constant_id = 3) const uint kGlu = 0u;
layout(constant_id = 4) const uint kInputVec4 = 1u;
layout(constant_id = 5) const uint kActivation = 0u;
layout(constant_id = 6) const uint kBias = 0u;
layout(constant_id = 7) const uint kLimited = 0u;

#include "lib/linear_input.glsl"
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"

const uint kM = 8u * kTileRows;
const uint kN = 64u;
const uint kOutputs = kN >> kGlu;
#include "lib/linear_tile.glsl"
// Column-major tiles: element (column, row); one float of padding spreads the rows over the banks.
shared float input_tile[32 * (kM + 1)];
shared float weight_tile[32 * (kN + 1)];

void load_weights(uint group, uint first_output) {
  const uint tile_row = gl_LocalInvocationID.x;
  vec4 w[8];
  const float scale = weight_group(weight_row(tile_row, first_output) + p.weight_offset_rows, group, w);
  for (uint i = 0u; i < 8u; ++i) {
    for (uint c = 0u; c < 4u; ++c) weight_tile[(4u * i + c) * (kN + 1u) + tile_row] = w[i][c] * scale;
  }
}

void load_input(uint group, uint first_row) {
  for (uint item = gl_LocalInvocationID.x; item < kM * 8u; item += 64u) {
    const uint tile_row = item / 8u;
    const uint quad = item % 8u;
    const uint row = min(first_row + tile_row, p.rows - 1u);  // rows beyond the last are computed and not stored
    const vec4 x = input_quad(p.input_offset + row * p.input_stride, group * 32u + 4u * quad);
    for (uint c = 0u; c < 4u; ++c) input_tile[(4u * quad + c) * (kM + 1u) + tile_row] = x[c];
  }
}

// `up` with kGlu only.
void store(uint row, uint n, float sum, float up) {
  if (row >= p.rows || n >= p.outputs || !row_valid(row, p.rows_per_sequence)) return;
  store_output(row, n, kGlu == 1u ? output_of_glu(sum, up, n, n + p.outputs) : output_of(sum, n));
}

void main() {
  const uint first_row = gl_WorkGroupID.y * kM;
  const uint first_output = gl_WorkGroupID.x * kOutputs;
  if (tile_is_idle(first_row)) return;
  const uint tx = gl_LocalInvocationID.x % 8u;
  const uint ty = gl_LocalInvocationID.x / 8u;

  // Only where all loops over it are unrolled are the sums registers rather than memory.
  float sums[kTileRows * 8u];
  [[unroll]] for (uint i = 0u; i < kTileRows * 8u; ++i) sums[i] = 0.0;
  for (uint group = 0u; group < p.groups; ++group) {
    barrier();
    load_weights(group, first_output);
    load_input(group, first_row);
    barrier();
    for (uint k = 0u; k < 32u; ++k) {
      float x[kTileRows];
      [[unroll]] for (uint i = 0u; i < kTileRows; ++i) x[i] = input_tile[k * (kM + 1u) + ty + 8u * i];
      [[unroll]] for (uint j = 0u; j < 8u; ++j) {
        const float w = weight_tile[k * (kN + 1u) + tx + 8u * j];
        [[unroll]] for (uint i = 0u; i < kTileRows; ++i) sums[i * 8u + j] += x[i] * w;
      }
    }
  }
  [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
    const uint row = first_row + ty + 8u * i;
    if (kGlu == 1u) {
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        store(row, first_output + tx + 8u * j, sums[i * 8u + j], sums[i * 8u + j + 4u]);
      }
    } else {
      [[unroll]] for (uint j = 0u; j < 8u; ++j) store(row, first_output + tx + 8u * j, sums[i * 8u + j], 0.0);
    }
  }
}
