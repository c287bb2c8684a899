// The k largest values of each row and their indices, largest first, equal ones by index; NaN comes last. Each chunk of a
// row is sorted (Batcher's bitonic sort) and leaves its k first as pairs (key, index), until one chunk is left.
// One workgroup per chunk; grid (chunks, rows). Exact.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "top_k.params.h"
#include "lib/step_state.glsl"
#include "lib/sample_key.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer InputPairs { uint input_pairs[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Values { ELEMENT output_values[]; };
layout(std430, set = 0, binding = 2) writeonly buffer OutputPairs { uint output_pairs[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Indices { uint output_indices[]; };
shared uint keys[RONDO_TOP_K_CHUNK];
shared uint indices[RONDO_TOP_K_CHUNK];

const uint kNothing = 0xffffffffu;

void load(uint slot, uint i, uint end, uint at) {
  keys[slot] = 0u;
  indices[slot] = kNothing;
  if (i >= end) return;
  if (p.from_pairs != 0u) {
    keys[slot] = input_pairs[at + 2u * i];
    indices[slot] = input_pairs[at + 2u * i + 1u];
  } else {
    keys[slot] = sample_key(from_element(input_values[at + i]));
    indices[slot] = i;
  }
}

bool comes_first(uint a, uint b) { return keys[a] > keys[b] || (keys[a] == keys[b] && indices[a] < indices[b]); }

void exchange(uint a, uint b) {
  const uint key = keys[a], index = indices[a];
  keys[a] = keys[b];
  indices[a] = indices[b];
  keys[b] = key;
  indices[b] = index;
}

void sort() {
  const uint self = gl_LocalInvocationID.x;
  for (uint run = 2u; run <= p.sorted; run *= 2u) {
    for (uint distance = run / 2u; distance > 0u; distance /= 2u) {
      barrier();
      for (uint pair = self; pair < p.sorted / 2u; pair += kWidth) {
        const uint low = pair / distance * 2u * distance + pair % distance;
        const bool ascending = (low & run) == 0u;
        if (comes_first(low + distance, low) == ascending) exchange(low, low + distance);
      }
    }
  }
  barrier();
}

void main() {
  const uint row = gl_WorkGroupID.y;
  if (!row_valid(row, p.rows_per_sequence)) return;
  const uint first = gl_WorkGroupID.x * RONDO_TOP_K_CHUNK;
  const uint end = min(first + RONDO_TOP_K_CHUNK, p.columns);
  const uint at = p.input_offset + row * p.input_stride;
  for (uint slot = gl_LocalInvocationID.x; slot < p.sorted; slot += kWidth) load(slot, first + slot, end, at);
  sort();
  for (uint i = gl_LocalInvocationID.x; i < p.k; i += kWidth) {
    if (p.to_pairs != 0u) {
      const uint to = 2u * ((row * gl_NumWorkGroups.x + gl_WorkGroupID.x) * p.k + i);
      const bool there = i < p.sorted;
      output_pairs[to] = there ? keys[min(i, p.sorted - 1u)] : 0u;
      output_pairs[to + 1u] = there ? indices[min(i, p.sorted - 1u)] : kNothing;
    } else {
      output_values[row * p.k + i] = to_element(keys[i] == 0u ? uintBitsToFloat(0x7fc00000u) : sample_value(keys[i]));
      output_indices[row * p.k + i] = indices[i];
    }
  }
}
