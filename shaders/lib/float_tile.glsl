// A tile of kM x kN products of rows of floats in shared memory, 4 kSteps columns at a time: an invocation makes kTileRows neighbouring rows by
// kTileOutputs, kColumns apart, from vectors of four columns. Needs kM, kN, kColumns, kTileRows, kTileOutputs and kSteps.
#include "lib/tile_sums.glsl"

const uint kStride = kSteps + 1u;  // vec4: so that the rows of eight invocations side by side reach all banks
shared vec4 tile[(kM + kN) * kStride];  // of kM rows of the one factor, then of kN of the other

// This invocation's first row and output.
uint own_row() { return gl_LocalInvocationID.x / kColumns * kTileRows; }
uint own_output() { return gl_LocalInvocationID.x % kColumns; }

void add_products() {
  const uint tx = own_output(), ty = own_row();
  [[unroll]] for (uint step = 0u; step < kSteps; ++step) {
    vec4 a[kTileRows];
    [[unroll]] for (uint i = 0u; i < kTileRows; ++i) a[i] = tile[(ty + i) * kStride + step];
    [[unroll]] for (uint j = 0u; j < kTileOutputs; ++j) {
      const vec4 w = tile[(kM + tx + kColumns * j) * kStride + step];
      [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
        [[unroll]] for (uint c = 0u; c < 4u; ++c) sums[i * kTileOutputs + j] += a[i][c] * w[c];
      }
    }
  }
}
