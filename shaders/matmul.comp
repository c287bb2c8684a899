// output = scale * a b for each batch, both with any strides. A workgroup of 64 makes a tile of 8 kRows x 32 from 16 steps of
// the depth at a time. Grid (ceil(N / 32), ceil(M / (8 kRows)), batches).
// f32, but sums keep what rounding loses: factors are split into halves of 12 bits, whose products are exact, and additions
// are two-sums. Attention scores are often small beside their terms; plain sums leave errors of the terms' size.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "matmul.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 1) const uint kRows = 4u;
#include "lib/exact_sum.glsl"
layout(std430, set = 0, binding = 1) readonly buffer A { ELEMENT a_values[]; };
layout(std430, set = 0, binding = 2) readonly buffer B { ELEMENT b_values[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

const uint kM = 8u * kRows, kN = 32u, kDepth = 16u;
shared float a_tile[kDepth * (kM + 1)];
shared float b_tile[kDepth * (kN + 1)];

void load_tiles(uint a_at, uint b_at, uint first_row, uint first_column, uint first_step) {
  [[unroll]] for (uint part = 0u; part < kM * kDepth / 64u; ++part) {
    const uint item = part * 64u + gl_LocalInvocationID.x;
    const uint step = item % kDepth, row = item / kDepth;
    const float x = from_factor(a_values[a_at + min(first_row + row, p.rows - 1u) * p.a_row + min(first_step + step, p.depth - 1u) * p.a_depth]);
    a_tile[step * (kM + 1u) + row] = first_step + step < p.depth ? x : 0.0;
  }
  [[unroll]] for (uint part = 0u; part < kN * kDepth / 64u; ++part) {
    const uint item = part * 64u + gl_LocalInvocationID.x;
    const uint step = item / kN, column = item % kN;
    const float x = from_factor(b_values[b_at + min(first_column + column, p.columns - 1u) * p.b_column + min(first_step + step, p.depth - 1u) * p.b_depth]);
    b_tile[step * (kN + 1u) + column] = first_step + step < p.depth ? x : 0.0;
  }
}

// The leading 12 bits of the significand, and the rest.
vec2 halves(float x) {
  const float high = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
  precise float low = x - high;
  return vec2(high, isinf(x) ? 0.0 : low);
}

void add_product(inout ExactSum total, vec2 a, vec2 b) {
  precise float product = a.x * b.x;
  add_exactly(total, product);
  total.lost += a.x * b.y + a.y * b.x + a.y * b.y;
}

void main() {
  // Uniform for the workgroup only where all rows are one sequence's; others decide row by row.
  if (p.rows_per_sequence >= p.total_rows && !sequence_active(0u)) return;
  const uint batch = gl_WorkGroupID.z, batch0 = batch / p.batch1, batch1 = batch % p.batch1;
  const uint a_at = p.a_offset + batch0 * p.a_batch0 + batch1 * p.a_batch1, b_at = p.b_offset + batch0 * p.b_batch0 + batch1 * p.b_batch1;
  const uint first_row = gl_WorkGroupID.y * kM, first_column = gl_WorkGroupID.x * kN;
  const uint tx = gl_LocalInvocationID.x % 8u, ty = gl_LocalInvocationID.x / 8u;
  ExactSum sums[kRows * 4u];
  for (uint i = 0u; i < kRows * 4u; ++i) sums[i] = ExactSum(0.0, 0.0);
  for (uint first_step = 0u; first_step < p.depth; first_step += kDepth) {
    barrier();
    load_tiles(a_at, b_at, first_row, first_column, first_step);
    barrier();
    for (uint step = 0u; step < kDepth; ++step) {
      vec2 a[kRows];
      [[unroll]] for (uint i = 0u; i < kRows; ++i) a[i] = halves(a_tile[step * (kM + 1u) + ty + 8u * i]);
      [[unroll]] for (uint j = 0u; j < 4u; ++j) {
        const vec2 b = halves(b_tile[step * (kN + 1u) + tx + 8u * j]);
        [[unroll]] for (uint i = 0u; i < kRows; ++i) add_product(sums[i * 4u + j], a[i], b);
      }
    }
  }
  for (uint i = 0u; i < kRows; ++i) {
    const uint row = first_row + ty + 8u * i, output_row = batch * p.rows + row;
    if (row >= p.rows || !row_active(output_row, p.rows_per_sequence)) continue;
    for (uint j = 0u; j < 4u; ++j) {
      const uint column = first_column + tx + 8u * j;
      if (column < p.columns) values[output_row * p.columns + column] = to_element(p.scale * value_of(sums[i * 4u + j]));
    }
  }
}
