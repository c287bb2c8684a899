// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and
// up_rows() + n; with kExperts of the weight that row m has (lib/linear_experts.glsl), where kRows is 1, or the tile (lib/expert_tiles.glsl).
// For CPU drivers: a workgroup is one subgroup; an invocation makes kColumns outputs of each of kRows rows. The lanes load
// 32 columns of a row of the input together, a vector each, and share them by subgroupShuffle: such drivers load lane by
// lane, with a check for each, even from one address. f32 accumulation.
// Grid (ceil(M / kRows), ceil(N / (width kColumns))): llvmpipe gives each thread a run of workgroups, and rows beyond the
// count, which have nothing to do, must not all be in the last thread's.
// Needs: subgroups of exactly kWidth invocations, subgroupShuffle.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#include "linear.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 8u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kRows = 4u;
layout(constant_id = 3) const uint kColumns = 2u;
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
#include "lib/expert_tiles.glsl"
#include "lib/linear_output.glsl"

const uint kWeightRows = kColumns << kGlu;
const uint kLoads = kWidth < 8u ? 8u / kWidth : 1u;  // vectors that a lane loads of 32 columns
const bool kExpertTiles = kExperts == 1u && kRows != 1u;

// Reads a word of each cache line, 64 bytes, of the `n` words from `first` on. Processors fetch ahead of who reads neighbours, and
// not of lanes that each read a row. Not of the longest rows: llvmpipe leaves all loops of an invocation after 65,535 iterations.
const uint kMostTouchedWords = 65536u;  // of a row, in 16,384 iterations
uint touch(uint first, uint n) {
  uint all = 0u;
  for (uint i = gl_LocalInvocationID.x * 16u; i < n; i += kWidth * 16u) all |= weight_words[first + i];
  return all;
}
uint touch_rows(uint first, uint n) {
  const uint scales = p.scale_row_words == 0u ? 0u : touch(p.scale_offset_words + first * p.scale_row_words, n * p.scale_row_words);
  return touch(first * p.row_words, n * p.row_words) | scales;
}

// Row r of this workgroup's; p.rows or more: there is none.
uint own_row(uint r) { return kExpertTiles ? row_of_tile(gl_WorkGroupID.x, kRows, r) : gl_WorkGroupID.x * kRows + r; }

// The first row of its weight; RONDO_NOTHING: it has nothing to do.
uint own_weight() {
  if (kExpertTiles) {
    const uint expert = expert_of_tile(gl_WorkGroupID.x, kRows);
    return expert == RONDO_NOTHING ? RONDO_NOTHING : expert * p.outputs;
  }
  const uint first_row = own_row(0u);
  // Where the tile lies inside one sequence no later row is valid if the first is not.
  const bool one_sequence = kRows == 1u || p.rows_per_sequence >= p.rows || first_row / p.rows_per_sequence == (min(first_row + kRows, p.rows) - 1u) / p.rows_per_sequence;
  return one_sequence && !row_valid(token_of(first_row), p.rows_per_sequence) ? RONDO_NOTHING : first_weight_row(first_row);
}

void main() {
  const uint first_weight = own_weight();
  if (first_weight == RONDO_NOTHING) return;
  const uint lane = gl_LocalInvocationID.x;
  const uint first = gl_WorkGroupID.y * kWidth * kColumns + lane;
  uint weight_rows[kWeightRows];
  [[unroll]] for (uint c = 0u; c < kWeightRows; ++c) {
    weight_rows[c] = min(first + (c % kColumns) * kWidth, p.outputs - 1u) + (c / kColumns) * up_rows() + first_weight + p.weight_offset_rows;
  }
  uint at[kRows];
  [[unroll]] for (uint r = 0u; r < kRows; ++r) at[r] = input_at(min(own_row(r), p.rows - 1u));
  float sums[kWeightRows * kRows];
  for (uint i = 0u; i < kWeightRows * kRows; ++i) sums[i] = 0.0;
  uint touched = 0u;
  if (kRows == 1u && p.row_words <= kMostTouchedWords) {
    const uint first_output = first - lane, n = min(kWidth * kColumns, p.outputs - first_output);
    const uint row = first_output + first_weight + p.weight_offset_rows;
    touched = touch_rows(row, n);
    if (kGlu == 1u) touched |= touch_rows(row + up_rows(), n);
  }
  for (uint group = 0u; group < p.groups; ++group) {
    if (kRows == 1u) {
      // Each weight is used once, so that nothing but the input and its sums need be kept.
      vec4 own[kLoads];
      [[unroll]] for (uint load = 0u; load < kLoads; ++load) own[load] = input_quad(at[0], group * 32u + (load * kWidth + lane % 8u) * 4u);
      [[unroll]] for (uint c = 0u; c < kWeightRows; ++c) {
        vec4 unscaled[8];
        const float scale = weight_group(weight_rows[c], group, unscaled);
        vec4 sum = vec4(0.0);
        [[unroll]] for (uint quad = 0u; quad < 8u; ++quad) sum += unscaled[quad] * subgroupShuffle(own[quad * kLoads / 8u], quad % (8u / kLoads));
        sums[c] += scale * ((sum.x + sum.y) + (sum.z + sum.w));
      }
    } else {
      vec4 w[kWeightRows * 8u];
      [[unroll]] for (uint c = 0u; c < kWeightRows; ++c) {
        vec4 unscaled[8];
        const float scale = weight_group(weight_rows[c], group, unscaled);
        [[unroll]] for (uint quad = 0u; quad < 8u; ++quad) w[c * 8u + quad] = unscaled[quad] * scale;
      }
      [[unroll]] for (uint r = 0u; r < kRows; ++r) {
        [[unroll]] for (uint load = 0u; load < kLoads; ++load) {
          const vec4 own = input_quad(at[r], group * 32u + (load * kWidth + lane % 8u) * 4u);
          [[unroll]] for (uint l = 0u; l < 8u / kLoads; ++l) {
            const vec4 x = subgroupShuffle(own, l);
            [[unroll]] for (uint c = 0u; c < kWeightRows; ++c) {
              const vec4 v = w[c * 8u + load * kWidth + l] * x;
              sums[c * kRows + r] += (v.x + v.y) + (v.z + v.w);
            }
          }
        }
      }
    }
  }
  if (p.groups == 0u) sums[0] = float(touched);  // never, but no compiler knows
  // Unrolled, whatever is done with the sums: an index that is not known keeps them in memory in the loops above too.
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    const uint row = own_row(r);
    if (row >= p.rows || !row_valid(token_of(row), p.rows_per_sequence)) continue;
    [[unroll]] for (uint c = 0u; c < kColumns; ++c) {
      const uint n = first + c * kWidth;
      if (n >= p.outputs) continue;
      const float sum = sums[c * kRows + r];
      store_output(row, n, kGlu == 1u ? output_of_glu(sum, sums[(kColumns + c) * kRows + r], first_weight + n, first_weight + n + up_rows()) : output_of(sum, first_weight + n));
    }
  }
}
