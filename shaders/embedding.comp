// output[r, :] = scale * weight[ids[r], :] for ids in [first_id, first_id + n_ids); the dispatch with first_id 0 gives zeros for ids
// outside [0, V). One invocation per row and 32 columns; grid
// (ceil(groups / width), rows). Weights of any type, or an activation of the output's own type.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "embedding.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(std430, set = 0, binding = 1) readonly buffer Ids { int ids[]; };
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = RONDO_WEIGHT_BINDING) readonly buffer Dense { ELEMENT dense_values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint group = gl_GlobalInvocationID.x;
  if (!row_valid(row, p.rows_per_sequence) || group >= p.groups) return;
  const int id = ids[p.ids_offset + row];
  const bool known = id >= 0 && uint(id) < p.vocabulary;
  const uint index = known ? uint(id) - p.first_id : 0u;  // wraps for ids before first_id
  if (known ? index >= p.n_ids : p.first_id != 0u) return;
  const uint first = group * 32u;
  const uint last = min(first + 32u, p.columns);
  const uint to = row * p.columns;
  if (!known) {
    for (uint i = first; i < last; ++i) values[to + i] = to_element(0.0);
  } else if (p.dense != 0u) {
    const uint from = p.dense_offset + index * p.row_words;
    for (uint i = first; i < last; ++i) {
      // Not by ?:, which would be arithmetic on halves as integers of 16 bits.
      if (p.scale == 1.0) values[to + i] = dense_values[from + i];
      else values[to + i] = to_element(from_element(dense_values[from + i]) * p.scale);
    }
  } else {
    vec4 w[8];
    const float scale = weight_group(index + p.weight_offset_rows, group, w);
    for (uint i = 0u; i < 8u; ++i) {
      for (uint c = 0u; c < 4u; ++c) {
        const uint column = first + 4u * i + c;
        if (column < last) values[to + column] = to_element(w[i][c] * scale * p.scale);
      }
    }
  }
}
