// linear of few rows (lib/linear_few_rows.glsl) with products in f32 of weights in f16 that are loaded as numbers of 16 bits, four of a row at a time, twice: for
// compilers that put these side by side in registers of 16 bits, and convert each as it is. In linear_subgroup.comp every other one is shifted down first.
// Needs: 16-bit storage. There is no barrier, but for shared rows and norms.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#include "lib/element.glsl"
layout(constant_id = 6) const uint kInputVec4 = 1u;
#define RONDO_NO_TABLE
#include "lib/linear_few_rows.glsl"

layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer WeightHalves { float16_t weight_halves[]; };
const uint kColumns = 4u * kColumnLanes * kSplit;  // that lanes load at a time

vec4 weights_by_elements(uint i) { return vec4(float(weight_halves[i]), float(weight_halves[i + 1u]), float(weight_halves[i + 2u]), float(weight_halves[i + 3u])); }

// As input_quad(); compilers load them together, and need not divide where they begin.
vec4 inputs_by_elements(uint at, uint column) {
  if (kInputVec4 != 2u) return input_quad(at, column);
  const uint i = at + column;
  return vec4(from_factor(input_values[i]), from_factor(input_values[i + 1u]), from_factor(input_values[i + 2u]), from_factor(input_values[i + 3u]));
}

void add_four_products(vec4 w[kWeightRows], uint column, uint at[kTokens], inout float sums[kSums]) {
  [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
    const vec4 x = inputs_by_elements(at[t], column);
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) {
      float sum = sums[t * kWeightRows + r];
      sum += w[r].x * x.x;
      sum += w[r].y * x.y;
      sum += w[r].z * x.z;
      sum += w[r].w * x.w;
      sums[t * kWeightRows + r] = sum;
    }
  }
}

void add_products(uint share, FewRow rows[kWeightRows], uint at[kTokens], inout float sums[kSums]) {
  const uint n_columns = p.groups * 32u;
  uint begins[kWeightRows], column = (share * kColumnLanes + column_lane()) * 4u;
  [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) begins[r] = rows[r].begin.quads * 8u;
  const uint end_of_twos = max(n_columns, kColumns) - kColumns;
  for (; column < end_of_twos; column += 2u * kColumns) {
    vec4 w[kWeightRows], next[kWeightRows];
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) w[r] = weights_by_elements(begins[r] + column);
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) next[r] = weights_by_elements(begins[r] + column + kColumns);
    add_four_products(w, column, at, sums);
    add_four_products(next, column + kColumns, at, sums);
  }
  if (column < n_columns) {
    vec4 w[kWeightRows];
    [[unroll]] for (uint r = 0u; r < kWeightRows; ++r) w[r] = weights_by_elements(begins[r] + column);
    add_four_products(w, column, at, sums);
  }
}
