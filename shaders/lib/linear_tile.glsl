// Tiles of linears of many rows. Needs p of linear.params.h, lib/step_state.glsl, kGlu, kSplitColumns, and kM rows of input and kOutputs outputs of a
// tile. With kSplitColumns a workgroup makes the sums of some of the columns, its share by gl_WorkGroupID.z, which linear_combine.comp adds up and finishes.

// The row of the weight, without its offset, that is row `tile_row` of a tile; with GLU a tile has kOutputs gates, then their ups.
// Those beyond the last are the last.
uint weight_row(uint tile_row, uint first_output) {
  if (kGlu == 1u && tile_row >= kOutputs) return min(first_output + tile_row - kOutputs, p.outputs - 1u) + p.outputs;
  return min(first_output + tile_row, p.outputs - 1u);
}

// The groups of 32 columns that this workgroup multiplies: one or more.
uint first_group() { return kSplitColumns == 1u ? gl_WorkGroupID.z * p.groups_of_split : 0u; }
uint n_groups() { return kSplitColumns == 1u ? min(p.groups - first_group(), p.groups_of_split) : p.groups; }

layout(std430, set = 0, binding = 4) writeonly buffer PartialSums { float partial_sums[]; };
// `sum` of a row of the weight, without its offset; with GLU that of a gate, whose up is `up`.
void store_sums_of(uint row, uint n, float sum, float up) {
  if (kSplitColumns == 0u) {
    store_output(row, n, kGlu == 1u ? output_of_glu(sum, up, n, n + p.outputs) : output_of(sum, n));
    return;
  }
  const uint at = (gl_WorkGroupID.z * p.rows + row) * (p.outputs << kGlu) + n;
  partial_sums[at] = sum;
  if (kGlu == 1u) partial_sums[at + p.outputs] = up;
}

// A tile inside one sequence whose first row is past the count has nothing to do; others decide row by row.
bool tile_is_idle(uint first_row) {
  const bool one_sequence = first_row / p.rows_per_sequence == (min(first_row + kM, p.rows) - 1u) / p.rows_per_sequence || p.rows_per_sequence >= p.rows;
  return one_sequence && !row_valid(first_row, p.rows_per_sequence);
}
