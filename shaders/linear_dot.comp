// linear of few rows (lib/linear_few_rows.glsl) with integer dot products: the input is bytes, of which 16 share a scale (lib/rounded_input.glsl), weights are of all types
// but floats. Sums of products of 16 bytes are exact, their sums f32. There is no barrier, but for shared rows, values from a table, norms and outputs that are rounded.
// Needs: VK_KHR_shader_integer_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#define RONDO_WEIGHT_BYTES
#define RONDO_ROUNDED_INPUT
layout(constant_id = 6) const uint kRounds = 0u;
#include "lib/linear_few_rows.glsl"

// Rows whose weights are asked for before any is multiplied. AMD's compiler has loads as early as registers allow, and then takes 32 to 48 of them rather than 48 to 64: of four rows
// three are still on their way before the first is waited for.
const uint kRowsAtOnce = kLoads == 1u && kTokens == 1u && kWeightRows > 1u ? 2u : kWeightRows;

void add_products(uint share, FewRow rows[kWeightRows], uint at[kTokens], inout float sums[kSums]) {
  const uint kSixteens = kQuads > 4u ? 2u : 1u;  // of a chunk
  const uint n_chunks = p.groups * (8u / kQuads);
  for (uint first = share * kColumnLanes + column_lane(); first < n_chunks; first += kColumnLanes * kSplit * kLoads) {
    uvec2 words;  // of the input: what all rows of the weight take is asked for with the first of them
    uvec4 x[2];
    [[unroll]] for (uint from = 0u; from < kWeightRows; from += kRowsAtOnce) {
      LOAD_CHUNKS(chunks, from, kRowsAtOnce, first, n_chunks)
      [[unroll]] for (uint n = 0u; n < kLoads; ++n) {
        const uint chunk = first + n * kColumnLanes * kSplit;
        if (n != 0u && chunk >= n_chunks) break;
        [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
          if (from == 0u && kSixteens == 2u) words = input_scales_of(group_in_rows(at[t], chunk));
          if (from == 0u && kSixteens == 1u) words.x = input_scale_of(2u * group_in_rows(at[t], 0u) + chunk);
          float products[kRowsAtOnce], input_sum = 0.0;  // of what has one scale of weights: the products without it, and what the bytes stand for
          [[unroll]] for (uint i = 0u; i < kSixteens; ++i) {
            const bool starts = i == 0u || kScaledQuads == 4u, ends = i == kSixteens - 1u || kScaledQuads == 4u;
            if (from == 0u) x[i] = input_bytes(2u * group_in_rows(at[t], 0u) + chunk * kSixteens + i);
            const float scale = scale_of(words[i]);
            if (kHasAddend) input_sum = (starts ? 0.0 : input_sum) + scale * float(sum_of_bytes(words[i]));
            [[unroll]] for (uint r = 0u; r < kRowsAtOnce; ++r) {
              const Chunk weights = chunks[n * kRowsAtOnce + r];
              int part = 0;
              [[unroll]] for (uint j = 0u; j < 4u; ++j) part = packed_dot(chunk_bytes(weights, 4u * i + j), x[i][j], 0) + part;
              products[r] = (starts ? 0.0 : products[r]) + scale * float(part);
              if (!ends) continue;
              const uint s = t * kWeightRows + from + r;
              sums[s] += weights.scale[i] * (kCentre != 0u ? products[r] - float(kCentre) * input_sum : products[r]);
              if (!kHasOneFactor) sums[s] += weights.addend[i] * input_sum;
            }
          }
        }
      }
    }
  }
}
