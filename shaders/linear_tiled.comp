// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and
// up_rows() + n; with kExperts of the weight that a tile has (lib/expert_tiles.glsl).
// For many rows: a workgroup makes a tile of kM x kN outputs (kN / 2 with GLU) from 4 kSteps columns at a time, weights and input as f32 in
// shared memory, the next columns while these are multiplied; an invocation kTileRows x kTileOutputs, from vectors of four columns.
// Grid (tiles of rows, ceil(N / tile), splits of the columns). f32 accumulation.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kColumns = 16u;     // invocations that share rows
layout(constant_id = 3) const uint kTileRows = 4u;
layout(constant_id = 4) const uint kTileOutputs = 8u;  // even
layout(constant_id = 5) const uint kSteps = 8u;        // or 4
layout(constant_id = 6) const uint kGlu = 0u;
layout(constant_id = 7) const uint kInputVec4 = 1u;
layout(constant_id = 8) const uint kActivation = 0u;
layout(constant_id = 9) const uint kBias = 0u;
layout(constant_id = 10) const uint kLimited = 0u;
layout(constant_id = 11) const uint kSplitColumns = 0u;
layout(constant_id = 12) const uint kExperts = 0u;

#include "lib/linear_input.glsl"
#define RONDO_SHARED_TABLE
#define RONDO_HALF_CHUNKS
#define RONDO_BARRIER_FOLLOWS  // before the first tile is stored
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"

const uint kM = kWidth / kColumns * kTileRows, kN = kColumns * kTileOutputs;
const uint kOutputs = kN >> kGlu;
#include "lib/linear_tile.glsl"
#include "lib/float_tile.glsl"
#include "lib/linear_sums.glsl"

// What an invocation brings: every kWidth-th four of the input, and 16 elements of a weight at a time.
const uint kInputItems = kM * kSteps, kWeightItems = kN * kSteps / 4u;
const uint kInputs = (kInputItems + kWidth - 1u) / kWidth, kWeights = (kWeightItems + kWidth - 1u) / kWidth;
vec4 x[kInputs];
uint inputs_at[kInputs];  // with kExperts: where their rows begin
Chunk chunks[kWeights * kChunksOfSixteen];

// The 16 columns of a weight that an item has, counted from the row's first.
uint sixteen_of(uint item, uint part) { return part * (kSteps / 4u) + item % (kSteps / 4u); }

void load(uint part) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, sixteen = sixteen_of(item, part);
    const uint row = weight_row(min(item / (kSteps / 4u), kN - 1u)) + p.weight_offset_rows;
    [[unroll]] for (uint c = 0u; c < kChunksOfSixteen; ++c) chunks[i * kChunksOfSixteen + c] = load_sixteen(row_at(row), sixteen >> 1, sixteen & 1u, c);
  }
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x;
    x[i] = input_quad(kExperts == 1u ? inputs_at[i] : input_of(item / kSteps), part * kSteps * 4u + item % kSteps * 4u);
  }
}

void store_tile(uint part) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, at = (kM + item / (kSteps / 4u)) * kStride + item % (kSteps / 4u) * 4u;
    if (kWeightItems % kWidth != 0u && item >= kWeightItems) break;
    [[unroll]] for (uint quad = 0u; quad < 4u; ++quad) tile[at + quad] = scaled_quad(chunks[i * kChunksOfSixteen + quad / kQuads], quad % kQuads);
  }
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x;
    if (kInputItems % kWidth != 0u && item >= kInputItems) break;
    tile[item / kSteps * kStride + item % kSteps] = x[i];
  }
}

void main() {
  if (!take_tile()) return;
  if (kExperts == 1u) {
    [[unroll]] for (uint i = 0u; i < kInputs; ++i) inputs_at[i] = input_of(min((i * kWidth + gl_LocalInvocationID.x) / kSteps, kM - 1u));
  }
  fill_table();
  clear_sums();
  const uint first_part = first_group() * (8u / kSteps), end_part = end_group() * (8u / kSteps);
  load(first_part);
  for (uint part = first_part; part < end_part; ++part) {
    barrier();
    store_tile(part);
    barrier();
    load(min(part + 1u, end_part - 1u));  // the last is loaded twice, and nobody reads it
    add_products();
  }
  store_outputs(own_row(), first_output() + own_output());
}
