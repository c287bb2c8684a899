// Index of the largest value of each row, the lowest of equal ones; NaN is never larger. Wide rows take two passes through
// pairs (value, index). One workgroup per chunk of a row; grid (chunks, rows). Exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "argmax.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer InputPairs { uint input_pairs[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { uint output_words[]; };
shared float best_value[kWidth];
shared uint best_index[kWidth];

const uint kNothing = 0xffffffffu;

// Whether (v, i) wins over (value, index).
bool wins(float v, uint i, float value, uint index) {
  return i != kNothing && (index == kNothing || v > value || (v == value && i < index));
}

void main() {
  const uint row = gl_WorkGroupID.y;
  if (!row_valid(row, p.rows_per_sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  float value = 0.0;
  uint index = kNothing;
  const uint first = gl_WorkGroupID.x * p.chunk;
  const uint last = min(first + p.chunk, p.columns);
  const uint at = p.input_offset + row * p.input_stride;
  for (uint i = first + self; i < last; i += kWidth) {
    float v;
    uint n = i;
    if (p.from_pairs != 0u) {
      v = uintBitsToFloat(input_pairs[at + 2u * i]);
      n = input_pairs[at + 2u * i + 1u];
    } else {
      v = from_element(input_values[at + i]);
    }
    if (!isnan(v) && wins(v, n, value, index)) {
      value = v;
      index = n;
    }
  }
  best_value[self] = value;
  best_index[self] = index;
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step && wins(best_value[self + step], best_index[self + step], best_value[self], best_index[self])) {
      best_value[self] = best_value[self + step];
      best_index[self] = best_index[self + step];
    }
    barrier();
  }
  if (self != 0u) return;
  if (p.to_pairs != 0u) {
    const uint to = 2u * (row * gl_NumWorkGroups.x + gl_WorkGroupID.x);
    output_words[to] = floatBitsToUint(best_value[0]);
    output_words[to + 1u] = best_index[0];
  } else {
    output_words[row] = best_index[0] == kNothing ? 0u : best_index[0];
  }
}
