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
#define RONDO_STATE_STOP_IDS 8
#define RONDO_STATE_MAX_STOP_IDS 16
#endif
