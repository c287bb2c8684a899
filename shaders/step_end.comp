// Advances the step state: position += count, count = 1; with a token, writes it to tokens[position] and to the host's
// mirror, and clears `active` on a stop id or a full context. One invocation per sequence; grid (ceil(B / width)).
#version 450
#extension GL_GOOGLE_include_directive : require
#define RONDO_STATE_WRITABLE
#include "step_end.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Token { int token[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Tokens { int tokens[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Mirror { int mirror[]; };

void main() {
  const uint sequence = gl_GlobalInvocationID.x;
  if (sequence >= p.sequences || !sequence_active(sequence)) return;
  const uint at = sequence * RONDO_STATE_WORDS;
  const uint position = step_state[at + RONDO_STATE_POSITION] + step_state[at + RONDO_STATE_COUNT];
  step_state[at + RONDO_STATE_POSITION] = position;
  step_state[at + RONDO_STATE_COUNT] = 1u;
  if (p.has_token == 0u) return;
  bool stop = position + 1u >= p.context;
  if (position < p.context) {
    const int id = token[sequence];
    tokens[sequence * p.context + position] = id;
    mirror[sequence * p.context + position] = id;
    const uint n_stop = min(step_state[at + RONDO_STATE_N_STOP], uint(RONDO_STATE_MAX_STOP_IDS));
    for (uint i = 0u; i < n_stop; ++i) stop = stop || int(step_state[at + RONDO_STATE_STOP_IDS + i]) == id;
  }
  if (stop) step_state[at + RONDO_STATE_ACTIVE] = 0u;
}
