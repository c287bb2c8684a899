// ids[b, t] = tokens[b, position + t], positions[b, t] = position + t, for t < count; start, count, lengths and the
// flattened index of the last valid row. One invocation per row; grid (ceil(T / width), sequences). Integers only.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "step_begin.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Tokens { int tokens[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Ids { int ids[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Positions { int positions[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Start { int start[]; };
layout(std430, set = 0, binding = 5) writeonly buffer Count { int count[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 7) writeonly buffer Last { int last[]; };

void main() {
  const uint sequence = gl_WorkGroupID.y;
  if (!sequence_active(sequence)) return;
  const uint row = gl_GlobalInvocationID.x;
  const uint position = step_state[sequence * RONDO_STATE_WORDS + RONDO_STATE_POSITION];
  const uint valid = sequence_count(sequence);
  if (row < p.rows && row < valid && position + row < p.context) {
    ids[sequence * p.rows + row] = tokens[sequence * p.context + position + row];
    positions[sequence * p.rows + row] = int(position + row);
  }
  if (row == 0u) {
    start[sequence] = int(position);
    count[sequence] = int(valid);
    lengths[sequence] = int(position + valid);
    last[sequence] = int(sequence * p.rows + max(valid, 1u) - 1u);
  }
}
