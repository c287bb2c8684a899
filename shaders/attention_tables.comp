// Up to six small arrays of 32-bit words, one behind the other in one buffer: what attention reads besides queries, keys,
// values and a mask. Absent sources 0 and 1 become a number. One invocation per word; grid (ceil(words / width)).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "attention_tables.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) writeonly buffer Tables { uint tables[]; };
layout(std430, set = 0, binding = 2) readonly buffer Source0 { uint source_0[]; };
layout(std430, set = 0, binding = 3) readonly buffer Source1 { uint source_1[]; };
layout(std430, set = 0, binding = 4) readonly buffer Source2 { uint source_2[]; };
layout(std430, set = 0, binding = 5) readonly buffer Source3 { uint source_3[]; };
layout(std430, set = 0, binding = 6) readonly buffer Source4 { uint source_4[]; };
layout(std430, set = 0, binding = 7) readonly buffer Source5 { uint source_5[]; };

uint word_of(uint at) {
  if (at < p.counts_0) return (p.present & 1u) != 0u ? source_0[p.from_0 + min(at, p.last_0)] : p.fill_0;
  at -= p.counts_0;
  if (at < p.counts_1) return (p.present & 2u) != 0u ? source_1[p.from_1 + min(at, p.last_1)] : p.fill_1;
  at -= p.counts_1;
  if (at < p.counts_2) return source_2[p.from_2 + at];
  at -= p.counts_2;
  if (at < p.counts_3) return source_3[p.from_3 + at];
  at -= p.counts_3;
  if (at < p.counts_4) return source_4[p.from_4 + at];
  return source_5[p.from_5 + at - p.counts_4];
}

void main() {
  const uint at = gl_GlobalInvocationID.x;
  // The kernel has no rows of a step that could be inactive: what its table does not hold, it leaves alone, whatever the parameters.
  if (p.to + at >= tables.length()) return;
  if (at >= p.counts_0 + p.counts_1 + p.counts_2 + p.counts_3 + p.counts_4 + p.counts_5) return;
  tables[p.to + at] = word_of(at);
}
