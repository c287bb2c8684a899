// The sums of a tile in registers: of an invocation kTileRows by kTileOutputs. Needs these constants.
#ifndef RONDO_TILE_SUMS_GLSL
#define RONDO_TILE_SUMS_GLSL
// Only where all loops over them are unrolled are these registers rather than memory.
float sums[kTileRows * kTileOutputs];

void clear_sums() {
  [[unroll]] for (uint i = 0u; i < kTileRows * kTileOutputs; ++i) sums[i] = 0.0;
}
#endif
