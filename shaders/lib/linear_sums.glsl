// What a linear does with the sums of its tile: of this invocation kTileRows neighbouring rows, and kTileOutputs outputs kColumns apart, with GLU
// gates and then ups. Needs lib/linear_tile.glsl, and kColumns.
#include "lib/tile_sums.glsl"

// Row of the tile, and output, of the first.
void store_outputs(uint row0, uint output0) {
  [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
    const uint row = kExperts == 1u ? tile_row(row0 + i) : (first_row + row0) + i;  // in this order the loops before take fewer registers
    if (row_is_there(row)) {
      [[unroll]] for (uint j = 0u; j < kTileOutputs >> kGlu; ++j) {
        const uint n = output0 + kColumns * j;
        if (n < p.outputs) store_sums_of(row, n, sums[i * kTileOutputs + j], sums[i * kTileOutputs + j + kGlu * (kTileOutputs / 2u)]);
      }
    }
  }
}
