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

// Whether flattened row `row` of a tensor holds a token of this step.
bool row_valid(uint row, uint rows_per_sequence) {
  const uint sequence = row / rows_per_sequence;
  return sequence_active(sequence) && row - sequence * rows_per_sequence < sequence_count(sequence);
}

// The same where rows are not tokens: the sequence is active.
bool row_active(uint row, uint rows_per_sequence) { return sequence_active(row / rows_per_sequence); }
#endif
