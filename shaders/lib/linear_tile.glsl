// Tiles of linears of many rows. Needs p of linear.params.h, lib/step_state.glsl, kGlu, and kM rows of input and kOutputs outputs of a
// tile.

// The row of the weight, without its offset, that is row `tile_row` of a tile; with GLU a tile has kOutputs gates, then their ups.
// Those beyond the last are the last.
uint weight_row(uint tile_row, uint first_output) {
  if (kGlu == 1u && tile_row >= kOutputs) return min(first_output + tile_row - kOutputs, p.outputs - 1u) + p.outputs;
  return min(first_output + tile_row, p.outputs - 1u);
}

// A tile inside one sequence whose first row is past the count has nothing to do; others decide row by row.
bool tile_is_idle(uint first_row) {
  const bool one_sequence = first_row / p.rows_per_sequence == (min(first_row + kM, p.rows) - 1u) / p.rows_per_sequence || p.rows_per_sequence >= p.rows;
  return one_sequence && !row_valid(first_row, p.rows_per_sequence);
}
