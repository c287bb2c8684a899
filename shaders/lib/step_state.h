// The step state of one sequence, in 32-bit words. Read by C++ and GLSL alike.
// position: tokens whose K and V are in the cache. count: rows valid in the step. active: 0 makes every kernel return.
#ifndef RONDO_SHADERS_STEP_STATE_H
#define RONDO_SHADERS_STEP_STATE_H
#define RONDO_STATE_WORDS 64
#define RONDO_STATE_POSITION 0
#define RONDO_STATE_COUNT 1
#define RONDO_STATE_ACTIVE 2
#define RONDO_STATE_SEED_LOW 3
#define RONDO_STATE_SEED_HIGH 4
#define RONDO_STATE_N_STOP 5
// Parameters of sampling (graph/sampling.h); floats as their bits.
#define RONDO_STATE_TEMPERATURE 6
#define RONDO_STATE_TOP_K 7
#define RONDO_STATE_STOP_IDS 8
#define RONDO_STATE_MAX_STOP_IDS 16
#define RONDO_STATE_TOP_P 24
#define RONDO_STATE_MIN_P 25
#define RONDO_STATE_REPEAT_PENALTY 26
#define RONDO_STATE_REPEAT_LAST_N 27
// How many workgroups have come to where the last goes on (lib/attention_subgroup.glsl); zeros between dispatches.
#define RONDO_STATE_ARRIVED 32
#define RONDO_STATE_MAX_ARRIVED 32
#endif
