// Binding 0 of every kernel. Include after defining RONDO_STATE_WRITABLE where the kernel changes it.
#ifndef RONDO_STEP_STATE_GLSL
#define RONDO_STEP_STATE_GLSL
#include "lib/step_state.h"

#ifdef RONDO_STATE_WRITABLE
layout(std430, set = 0, binding = 0) buffer StepState { uint step_state[]; };
#else
layout(std430, set = 0, binding = 0) readonly buffer StepState { uint step_state[]; };
#endif

bool sequence_active(uint sequence) { return step_state[sequence * RONDO_STATE_WORDS + RONDO_STATE_ACTIVE] != 0u; }
uint sequence_count(uint sequence) { return step_state[sequence * RONDO_STATE_WORDS + RONDO_STATE_COUNT]; }

// x / n. A division takes dozens of instructions, which are left out where x is below n, as where there is one sequence.
uint divided(uint x, uint n) {
  uint quotient = 0u;
  if (x >= n) quotient = x / n;
  return quotient;
}

// Of rows of which each token has so many, most often one.
uint token_of_row(uint row, uint rows_of_token) {
  if (rows_of_token == 1u) return row;
  return row / rows_of_token;
}

// What says whether flattened row `row` of a tensor holds a token of this step: its place in its sequence, and the sequence's count
// and whether it is active. For kernels that do something else before they look at it with row_valid.
uvec3 row_state(uint row, uint rows_per_sequence) {
  const uint sequence = divided(row, rows_per_sequence), at = sequence * RONDO_STATE_WORDS;
  return uvec3(row - sequence * rows_per_sequence, step_state[at + RONDO_STATE_COUNT], step_state[at + RONDO_STATE_ACTIVE]);
}
bool row_valid(uvec3 state) { return state.z != 0u ? state.x < state.y : false; }
bool row_valid(uint row, uint rows_per_sequence) { return row_valid(row_state(row, rows_per_sequence)); }

// The same where rows are not tokens: the sequence is active.
bool row_active(uint row, uint rows_per_sequence) { return sequence_active(divided(row, rows_per_sequence)); }
#endif
