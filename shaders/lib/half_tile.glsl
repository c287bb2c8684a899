// A tile of rows in f16 (lib/f16_tile.glsl) multiplied two numbers at a time (SPV_VALVE_mixed_float_dot_product): an invocation makes kTileRows
// neighbouring rows by kTileOutputs, kColumns apart, with GLU gates and then ups.
// Before including: what that needs but kM, kN, kOutputs and how products are made, kColumns, kTileRows and kTileOutputs, GL_EXT_spirv_intrinsics.
#include "lib/half_dot.glsl"
#include "lib/halves.glsl"
#include "lib/tile_sums.glsl"
const uint kM = kWidth / kColumns * kTileRows, kN = kColumns * kTileOutputs;
const uint kOutputs = kN >> kGlu;

void multiply(uint tile);
void finish_sums();
#define SUMS
#define CLEAR_SUMS clear_sums();
#define MULTIPLY(tile) multiply(tile);
const bool kLoadsLate = false;
#define FINISH_SUMS finish_sums();
#include "lib/f16_tile.glsl"

// This invocation's first row and output.
uint own_row() { return gl_LocalInvocationID.x / kColumns * kTileRows; }
uint own_output() { return gl_LocalInvocationID.x % kColumns; }

void multiply(uint tile) {
  [[unroll]] for (uint eight = 0u; eight < 4u; ++eight) {
    uvec4 a[kTileRows];
    [[unroll]] for (uint i = 0u; i < kTileRows; ++i) a[i] = tiles[tile + (own_row() + i) * kStride + eight];
    [[unroll]] for (uint j = 0u; j < kTileOutputs; ++j) {
      const uvec4 b = tiles[tile + (kM + own_output() + kColumns * j) * kStride + eight];
      [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
        [[unroll]] for (uint pair = 0u; pair < 4u; ++pair) sums[i * kTileOutputs + j] = add_dot(pair_of(a[i][pair]), pair_of(b[pair]), sums[i * kTileOutputs + j]);
      }
    }
  }
}

void finish_sums() {
  [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
    const uint row = own_row() + i;
    if (row_counts(row)) {
      [[unroll]] for (uint j = 0u; j < kTileOutputs >> kGlu; ++j) {
        const uint column = own_output() + kColumns * j;
        const float up = kGlu == 1u ? unscaled(floatBitsToUint(sums[i * kTileOutputs + j + kTileOutputs / 2u]), row, kOutputs + column) : 0.0;
        finish(row, column, unscaled(floatBitsToUint(sums[i * kTileOutputs + j]), row, column), up);
      }
    }
  }
}
