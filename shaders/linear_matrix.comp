// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and N + n.
// For many rows, with matrix units (lib/matrix.glsl): a workgroup makes a tile of kM x kN outputs (kN / 2 with GLU) from 32 columns at
// a time, which it rounds to f16 in shared memory, the next 32 while it multiplies. Sums in f32. Grid (ceil(N / tile), ceil(M / tile)).
// Rows whose largest magnitude does not suit f16 are multiplied by a power of two: then all is done once more. So are rows of weights of
// types that have numbers beyond f16's. So a row's bits depend on nothing but the row and the weights; values of blocks beyond 65504 become
// infinite.
// Needs: subgroups of exactly kLanes invocations, cooperative matrices, Vulkan's memory model.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRowMatrices = 2u;     // of a subgroup
layout(constant_id = 4) const uint kOutputMatrices = 2u;  // with GLU first those of gates, then as many of ups
layout(constant_id = 5) const uint kRowSubgroups = 2u;
layout(constant_id = 6) const uint kGlu = 0u;
layout(constant_id = 7) const uint kInputVec4 = 1u;
layout(constant_id = 8) const uint kActivation = 0u;
layout(constant_id = 9) const uint kBias = 0u;
layout(constant_id = 10) const uint kLimited = 0u;
layout(constant_id = 11) const uint kMatrixRows = 16u;
layout(constant_id = 12) const uint kMatrixColumns = 16u;
layout(constant_id = 13) const uint kMatrixDepth = 16u;

#include "lib/matrix.glsl"
#include "lib/linear_input.glsl"
#define RONDO_SHARED_TABLE
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"

const uint kOutputSubgroups = kWidth / kLanes / kRowSubgroups;
const uint kM = kRowSubgroups * kRowMatrices * kMatrixRows;
const uint kN = kOutputSubgroups * kOutputMatrices * kMatrixColumns;
const uint kOutputs = kN >> kGlu;
#include "lib/linear_tile.glsl"
const uint kMatrices = kRowMatrices * kOutputMatrices;
const bool kWide = kWeightType == RONDO_WEIGHT_F32 || kWeightType == RONDO_WEIGHT_BF16 || kWeightType == RONDO_WEIGHT_MXFP4;
const uint kStride = 5u;  // uvec4: 32 halves, and 16 bytes that move the next row to other banks
// Two tiles, each with kM rows of the input and kN of the weight; in the end a matrix of sums of each subgroup, with GLU two.
shared uvec4 tiles[2u * (kM + kN) * kStride];
shared uint magnitudes[kM + kN];  // bits of the largest number of each row, with kWide of the weights' as well
shared uint some_unsuited;

// What an invocation brings into a tile: every kWidth-th four of the input, and 16 elements of a weight at a time.
const uint kInputs = kM * 8u / kWidth;
const uint kWeights = kN * 2u / kWidth;
const uint kChunksOfWeight = kQuads == 8u ? 1u : 4u / kQuads;
const uint kChunks = kWeights * kChunksOfWeight;

void load_weights(uint group, uint first_output, out Chunk chunks[kChunks]) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, row = weight_row(item >> 1, first_output) + p.weight_offset_rows;
    [[unroll]] for (uint c = 0u; c < kChunksOfWeight; ++c) {
      chunks[i * kChunksOfWeight + c] = load_chunk(row, kQuads == 8u ? group : (group * 2u + (item & 1u)) * kChunksOfWeight + c);
    }
  }
}

// Rounded as the device rounds: most to nearest, where their packHalf2x16 may cut off.
uvec2 to_halves(vec4 x) { return uvec2(packFloat2x16(f16vec2(x.xy)), packFloat2x16(f16vec2(x.zw))); }

// Rows whose largest number is beyond f16's don't suit it, and those below 2^-6, of which much may lie below 2^-14, which devices may
// take for 0. Of rows with an infinity or NaN the result is one as well.
bool suits_f16(uint magnitude) { return magnitude == 0u || (magnitude >= 0x3c800000u && magnitude < 0x477fe000u) || magnitude >= 0x7f800000u; }

// A row's largest number becomes 256 or more where it does not suit f16. Of a row of a tile, the weights' behind the input's.
int scale_exponent(uint row_of_tile) {
  const uint magnitude = magnitudes[row_of_tile];
  return suits_f16(magnitude) ? 0 : clamp(135 - int(magnitude >> 23), -126, 126);
}
float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }

float larger(float largest, vec4 x) { return max(max(largest, max(abs(x.x), abs(x.y))), max(abs(x.z), abs(x.w))); }

// largest, here and below: magnitudes of the rows that this invocation brings.
void store_weights(uint tile, Chunk chunks[kChunks], bool scaled, inout float largest[kWeights]) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, at = tile + (kM + (item >> 1)) * kStride + (item & 1u) * 2u;
    [[unroll]] for (uint half_of_item = 0u; half_of_item < 2u; ++half_of_item) {
      if (kWeightType == RONDO_WEIGHT_F16) {
        tiles[at + half_of_item] = chunks[i * kChunksOfWeight + half_of_item].bits;
      } else {
        uvec2 halves[2];
        [[unroll]] for (uint j = 0u; j < 2u; ++j) {
          const uint quad = half_of_item * 2u + j;
          vec4 w;
          if (kQuads == 8u) w = scaled_quad(chunks[i], (item & 1u) * 4u + quad);
          else w = scaled_quad(chunks[i * kChunksOfWeight + quad / kQuads], quad % kQuads);
          if (kWide) {
            largest[i] = larger(largest[i], w);
            [[branch]] if (scaled) w *= power_of_two(scale_exponent(kM + (item >> 1)));
          }
          halves[j] = to_halves(w);
        }
        tiles[at + half_of_item] = uvec4(halves[0], halves[1]);
      }
    }
  }
}

void load_inputs(uint group, uint first_row, out vec4 x[kInputs]) {
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, row = min(first_row + item / 8u, p.rows - 1u);
    x[i] = input_quad(p.input_offset + row * p.input_stride, group * 32u + item % 8u * 4u);
  }
}

void store_inputs(uint tile, vec4 x[kInputs], bool scaled, inout float largest[kInputs]) {
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) largest[i] = larger(largest[i], x[i]);
  [[branch]] if (scaled) {
    [[unroll]] for (uint i = 0u; i < kInputs; ++i) x[i] *= power_of_two(scale_exponent((i * kWidth + gl_LocalInvocationID.x) / 8u));
  }
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    const uint item = i * kWidth + gl_LocalInvocationID.x, at = tile + item / 8u * kStride + (item % 8u >> 1);
    const uvec2 halves = to_halves(x[i]);
    tiles[at][(item & 1u) * 2u] = halves.x;
    tiles[at][(item & 1u) * 2u + 1u] = halves.y;
  }
}

// Of the bits of a sum, what it is of rows of a tile as they were. By two factors: both rows may be far beyond f16.
float unscaled(uint bits, uint row, uint weight_row) {
  int exponent = -scale_exponent(row);
  if (!kWide) return uintBitsToFloat(bits) * power_of_two(exponent);
  exponent -= scale_exponent(kM + weight_row);
  return uintBitsToFloat(bits) * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
}

// The first row of the weight tile of a subgroup's matrix j.
uint first_of_matrix(uint output_subgroup, uint j) {
  const uint n = kOutputMatrices >> kGlu;  // of gates, or of all
  return (j / n) * kOutputs + (output_subgroup * n + j % n) * kMatrixColumns;
}

void main() {
  fill_table();
  const uint first_row = gl_WorkGroupID.y * kM, first_output = gl_WorkGroupID.x * kOutputs;
  if (tile_is_idle(first_row)) return;
  const uint row_subgroup = gl_SubgroupID / kOutputSubgroups, output_subgroup = gl_SubgroupID % kOutputSubgroups;
  const uint kTile = (kM + kN) * kStride;

  Sums sums[kMatrices];
  [[dont_unroll]] for (uint pass = 0u; pass < 2u; ++pass) {
    [[unroll]] for (uint i = 0u; i < kMatrices; ++i) sums[i] = sums_of(0.0);
    float largest[kInputs], largest_weights[kWeights];
    [[unroll]] for (uint i = 0u; i < kInputs; ++i) largest[i] = 0.0;
    [[unroll]] for (uint i = 0u; i < kWeights; ++i) largest_weights[i] = 0.0;
    Chunk chunks[kChunks];
    vec4 x[kInputs];
    load_weights(0u, first_output, chunks);
    load_inputs(0u, first_row, x);
    store_weights(0u, chunks, pass == 1u, largest_weights);
    store_inputs(0u, x, pass == 1u, largest);
    for (uint group = 0u; group < p.groups; ++group) {
      const uint tile = (group & 1u) * kTile;
      barrier();
      const uint next = min(group + 1u, p.groups - 1u);  // the last is loaded twice, and nobody reads it
      load_weights(next, first_output, chunks);
      load_inputs(next, first_row, x);
      [[unroll]] for (uint k = 0u; k < 32u; k += kMatrixDepth) {
        Left a[kRowMatrices];
        [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {
          a[i] = load_left(tiles[tile + (row_subgroup * kRowMatrices + i) * kMatrixRows * kStride + k / 8u], MATRIX_BY_ROW, kStride, MATRIX_VISIBLE);
        }
        [[unroll]] for (uint j = 0u; j < kOutputMatrices; ++j) {
          const Right b = load_right(tiles[tile + (kM + first_of_matrix(output_subgroup, j)) * kStride + k / 8u], MATRIX_BY_COLUMN, kStride, MATRIX_VISIBLE);
          [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) sums[i * kOutputMatrices + j] = multiply_add(a[i], b, sums[i * kOutputMatrices + j]);
        }
      }
      store_weights(kTile - tile, chunks, pass == 1u, largest_weights);
      store_inputs(kTile - tile, x, pass == 1u, largest);
    }
    if (pass == 1u) break;
    const uint n_rows = kWide ? kM + kN : kM;
    for (uint row = gl_LocalInvocationID.x; row < n_rows; row += kWidth) magnitudes[row] = 0u;
    if (gl_LocalInvocationID.x == 0u) some_unsuited = 0u;
    barrier();
    [[unroll]] for (uint i = 0u; i < kInputs; ++i) atomicMax(magnitudes[(i * kWidth + gl_LocalInvocationID.x) / 8u], floatBitsToUint(largest[i]) & 0x7fffffffu);
    if (kWide) {
      [[unroll]] for (uint i = 0u; i < kWeights; ++i) atomicMax(magnitudes[kM + (i * kWidth + gl_LocalInvocationID.x) / 2u], floatBitsToUint(largest_weights[i]) & 0x7fffffffu);
    }
    barrier();
    for (uint row = gl_LocalInvocationID.x; row < n_rows; row += kWidth) {
      bool counts = row >= kM;
      if (!counts && first_row + row < p.rows) counts = row_valid(first_row + row, p.rows_per_sequence);
      if (counts && !suits_f16(magnitudes[row])) atomicOr(some_unsuited, 1u);
    }
    barrier();
    if (some_unsuited == 0u) break;
  }

  const uint kMatrixQuads = kMatrixRows * kMatrixColumns / 4u, own = gl_SubgroupID * (kMatrixQuads << kGlu);
  [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {
    [[unroll]] for (uint j = 0u; j < kOutputMatrices >> kGlu; ++j) {
      barrier();
      store_sums(tiles[own], sums[i * kOutputMatrices + j], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE);
      if (kGlu == 1u) store_sums(tiles[own + kMatrixQuads], sums[i * kOutputMatrices + kOutputMatrices / 2u + j], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE);
      barrier();
      for (uint e = gl_SubgroupInvocationID; e < kMatrixRows * kMatrixColumns; e += kLanes) {
        const uint tile_row = (row_subgroup * kRowMatrices + i) * kMatrixRows + e / kMatrixColumns, row = first_row + tile_row;
        const uint column = first_of_matrix(output_subgroup, j) + e % kMatrixColumns, n = first_output + column;
        if (row >= p.rows || n >= p.outputs) continue;
        if (!row_valid(row, p.rows_per_sequence)) continue;
        const float sum = unscaled(tiles[own + e / 4u][e & 3u], tile_row, column);
        if (kGlu == 1u) store_output(row, n, output_of_glu(sum, unscaled(tiles[own + kMatrixQuads + e / 4u][e & 3u], tile_row, kOutputs + column), n, n + p.outputs));
        else store_output(row, n, output_of(sum, n));
      }
    }
  }
}
