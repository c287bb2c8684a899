// The activations of linear: 32 elements of a row, zeros beyond K. Needs p of linear.params.h and the specialization
// constant kInputVec4 (1: offset, stride and K are multiples of 4; 2: and K of 32). Clamped loads and selects, no branches: CPU drivers run
// both sides of a branch.
#include "lib/element.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer Input4 { ELEMENT4 input_values4[]; };
vec4 stored_quad(uint i) { return from_elements(input_values4[i]); }

float input_element(uint at, uint column) {
  const float x = from_factor(input_values[at + min(column, p.columns - 1u)]);
  return mix(0.0, x, column < p.columns);
}

// Elements [column, column + 4) of the row at element `at`; column is a multiple of 4.
vec4 input_quad(uint at, uint column) {
  if (kInputVec4 == 2u) return stored_quad((at >> 2) + (column >> 2));
  if (kInputVec4 == 1u) {
    const vec4 x = stored_quad((at + min(column, p.columns - 4u)) >> 2);
    return mix(vec4(0.0), x, bvec4(column < p.columns));
  }
  return vec4(input_element(at, column), input_element(at, column + 1u), input_element(at, column + 2u), input_element(at, column + 3u));
}

// Of the row at element `at`, the four behind the first `fours`: input_quad() whose column no compiler has to mask.
vec4 input_four(uint at, uint fours, uint four) {
  if (kInputVec4 == 2u) return stored_quad((at >> 2) + fours + four);
  return input_quad(at, (fours + four) * 4u);
}
