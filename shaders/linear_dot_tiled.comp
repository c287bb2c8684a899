// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and up_rows() + n;
// with kExperts of the weight that a tile has (lib/expert_tiles.glsl).
// For many rows, with integer dot products: 256 invocations make a tile of 16 kTileRows x 128 outputs (64 with GLU) from 32 columns at a
// time, weights and input as bytes in shared memory, the next 32 while they multiply. The input is bytes (lib/rounded_input.glsl), of which 32 share a scale, as quantize.comp
// leaves them, group after group. Sums of products of bytes are exact, their sums f32. Weights of all types but floats.
// Grid (tiles of rows, ceil(N / tile), splits of the columns). Needs: subgroups of exactly kLanes invocations, VK_KHR_shader_integer_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#include "linear.params.h"
#include "lib/step_state.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kTileRows = 4u;
layout(constant_id = 4) const uint kGlu = 0u;
layout(constant_id = 5) const uint kActivation = 0u;
layout(constant_id = 6) const uint kBias = 0u;
layout(constant_id = 7) const uint kLimited = 0u;
layout(constant_id = 8) const uint kSplitColumns = 0u;
layout(constant_id = 9) const uint kExperts = 0u;
layout(constant_id = 10) const uint kFusedFma = 0u;  // fma() rounds once

#define RONDO_SHARED_TABLE
#define RONDO_HALF_CHUNKS
#define RONDO_WEIGHT_BYTES
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"

const uint kWidth = 256u, kColumns = 16u;  // invocations of a workgroup, and those of them that share rows
const uint kM = kWidth / kColumns * kTileRows;
const uint kN = 128u, kTileOutputs = kN / kColumns;
const uint kOutputs = kN >> kGlu;
#include "lib/linear_tile.glsl"
#include "lib/rounded_input.glsl"
#include "lib/linear_sums.glsl"

const uint kScales = kQuads == 8u ? 8u / kScaledQuads : 1u;  // of 32 columns of a weight
// What is taken from the quants before they are multiplied, so that they need no addend.
const uint kBytesCentre = kWeightType == RONDO_WEIGHT_Q6_K ? 32u : kWeightType == RONDO_WEIGHT_Q3_K ? 4u : kCentre;
const bool kAdds = kHasAddend && kBytesCentre == 0u;

// With kFusedFma sums of products begin with the bits of 12582912, whose last bit is 1: what integers are added to that becomes a float that is as much larger, for which
// 2^22 is room enough, and needs no conversion. To multiply and to take the number off again is one instruction, which rounds what a conversion and a multiplication would: a
// scale has 18 bits or fewer, so its product with the number is exact. MXFP4's scales may be so large that it is infinite.
const bool kBegins = kFusedFma == 1u && kWeightType != RONDO_WEIGHT_MXFP4;
const int kFirst = kBegins ? 0x4b400000 : 0;
vec2 with_offset(float scale) { return scale * vec2(1.0, -intBitsToFloat(kFirst)); }
float scaled_sum(int sum, vec2 scale) { return kBegins ? fma(intBitsToFloat(sum), scale.x, scale.y) : scale.x * float(sum); }

// Two tiles. Halves of 32 columns lie apart, and 64 bytes besides, so that lanes side by side meet no bank twice.
const uint kHalf = kM + kN + 4u;
shared uvec4 bytes[2u * 2u * kHalf];  // of kM rows of the input, then of kN of the weight
shared float input_scales[2u * kM];
shared float input_sums[kAdds ? 2u * kM * kScales : 1u];  // scaled
// Of the weight: scales, what takes kFirst off what they multiply, and with kAdds addends. Where there are two of each, what can be made of the first is.
const bool kThree = kAdds && kScales == 1u;
shared vec2 weight_factors2[kThree ? 1u : 2u * kN * kScales];
shared vec4 weight_factors4[kThree ? 2u * kN : 1u];

// What an invocation brings into a tile: 16 columns of a row of the input, with the scales of 32, and 16 elements of a weight.
Chunk chunk;
uvec4 x;
uvec2 x_scales;
uint x_row;  // of the input

// Invocations by number, in the order in which they lie in subgroups.
uint place() { return gl_SubgroupID * kLanes + gl_SubgroupInvocationID; }

void load(uint group) {
  const uint row = weight_row(place() >> 1) + p.weight_offset_rows;
  chunk = load_sixteen(row_at(row), group, place() & 1u, 0u);
  const uint group_of_row = group_in_columns(x_row, group);
  x = input_bytes(2u * group_of_row + (place() & 1u));
  x_scales = input_scales_of(group_of_row);
}

void store_weights(uint tile) {
  const uint row = place() >> 1, half_of_group = place() & 1u;
  uvec4 words;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) words[i] = chunk_bytes(chunk, i);
  if (kBytesCentre != 0u) words = (words + 0x01010101u * (128u - kBytesCentre)) ^ 0x80808080u;  // bytes of words that have no carries
  bytes[tile * (2u * kHalf) + (half_of_group * kHalf + kM + row)] = words;
  if (kScales == 2u || half_of_group == 0u) {
    const uint at = (tile * kScales + (kScales == 2u ? half_of_group : 0u)) * kN + row;
    const vec2 scale = with_offset(chunk.scale.x);
    if (kThree) weight_factors4[at] = vec4(scale, chunk.addend.x, 0.0);
    else weight_factors2[at] = kAdds ? vec2(scale.x, chunk.addend.x) : scale;
  }
}

void store_input(uint tile) {
  if (kM * 2u < kWidth && place() >= kM * 2u) return;
  const uint row = place() >> 1, half_of_group = place() & 1u;
  bytes[tile * (2u * kHalf) + (half_of_group * kHalf + row)] = x;
  const float scale = scale_of(x_scales.x);
  if (half_of_group == 0u) input_scales[tile * kM + row] = scale;
  if (kAdds) {
    const ivec2 sums_of_halves = ivec2(sum_of_bytes(x_scales.x), sum_of_bytes(x_scales.y));
    if (kScales == 2u) input_sums[(tile * kScales + half_of_group) * kM + row] = scale * float(half_of_group == 0u ? sums_of_halves.x : sums_of_halves.y);
    else if (half_of_group == 0u) input_sums[tile * kM + row] = scale * float(sums_of_halves.x + sums_of_halves.y);
  }
}

// The products of 16 columns, added to `sum`.
int add_dots(uvec4 a, uvec4 b, int sum) { return packed_dot(a.w, b.w, 0) + (packed_dot(a.z, b.z, 0) + (packed_dot(a.y, b.y, 0) + (packed_dot(a.x, b.x, 0) + sum))); }

void main() {
  if (!take_tile()) return;
  x_row = input_row(min(tile_row(min(place() >> 1, kM - 1u)), p.rows - 1u));
  fill_table();
  const uint tx = place() % kColumns, ty = place() / kColumns * kTileRows;
  clear_sums();
  const uint first = first_group(), end = end_group();
  load(first);
  store_weights(0u);
  store_input(0u);
  for (uint group = first, tile = 0u; group < end; ++group, tile ^= 1u) {
    barrier();
    load(min(group + 1u, end - 1u));  // the last is loaded twice, and nobody reads it
    uvec4 a[kTileRows * 2u];
    float scale[kTileRows];
    [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
      a[2u * i] = bytes[tile * 2u * kHalf + ty + i];
      a[2u * i + 1u] = bytes[(tile * 2u + 1u) * kHalf + ty + i];
      scale[i] = input_scales[tile * kM + ty + i];
    }
    [[unroll]] for (uint j = 0u; j < kTileOutputs; ++j) {
      const uint n = tx + kColumns * j;
      const uvec4 b0 = bytes[tile * 2u * kHalf + kM + n], b1 = bytes[(tile * 2u + 1u) * kHalf + kM + n];
      vec3 w[kScales];
      [[unroll]] for (uint s = 0u; s < kScales; ++s) {
        const uint at = (tile * kScales + s) * kN + n;
        if (kThree) {
          w[s] = weight_factors4[at].xyz;
        } else {
          const vec2 two = weight_factors2[at];
          w[s] = kAdds ? vec3(with_offset(two.x), two.y) : vec3(two, 0.0);
        }
      }
      [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
        const int first_half = add_dots(a[2u * i], b0, kFirst), second_half = add_dots(a[2u * i + 1u], b1, kScales == 1u ? first_half : kFirst);
        float sum = scaled_sum(second_half, w[kScales - 1u].xy);
        if (kScales == 2u) sum += scaled_sum(first_half, w[0].xy);
        sums[i * kTileOutputs + j] += scale[i] * sum;
        if (kAdds) {
          [[unroll]] for (uint s = 0u; s < kScales; ++s) sums[i * kTileOutputs + j] += w[s].z * input_sums[(tile * kScales + s) * kM + ty + i];
        }
      }
    }
    store_weights(tile ^ 1u);
    store_input(tile ^ 1u);
  }
  store_outputs(ty, first_output() + tx);
}
