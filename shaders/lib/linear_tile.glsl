// Tiles of linears of many rows. Needs p of linear.params.h, lib/step_state.glsl, kGlu, kSplitColumns, kExperts, and kM rows of input and kOutputs
// outputs of a tile. With kSplitColumns a workgroup makes the sums of some of the columns, its share by gl_WorkGroupID.z, which linear_combine.comp adds up
// and finishes. With kExperts the rows of a tile are those of one expert. Workgroups side by side have the same outputs, so that a weight, of which there is
// more than of the input, is read from memory once and not for each tile of rows.
#include "lib/linear_experts.glsl"
#include "lib/expert_tiles.glsl"

uint first_output() { return gl_WorkGroupID.y * kOutputs; }

// Set by take_tile: the first row of the output, without experts; the first of the expert's weight.
uint first_row, first_weight = 0u;

// The row of the output that is row i of this workgroup's tile; p.rows or more: there is none.
uint tile_row(uint i) { return kExperts == 1u ? row_of_tile(gl_WorkGroupID.x, kM, i) : first_row + i; }
bool row_is_there(uint row) { return row < p.rows ? row_valid(token_of(row), p.rows_per_sequence) : false; }
// The element where the input of row i begins. Rows beyond the last are the last; they are computed and not stored.
uint input_of(uint i) { return input_at(min(tile_row(i), p.rows - 1u)); }

// The row of the weight, without its offset, that is row `tile_row` of a tile; with GLU a tile has kOutputs gates, then their ups.
// Those beyond the last are the last.
uint weight_row(uint tile_row) {
  if (kGlu == 1u && tile_row >= kOutputs) return first_weight + min(first_output() + tile_row - kOutputs, p.outputs - 1u) + up_rows();
  return first_weight + min(first_output() + tile_row, p.outputs - 1u);
}

// The groups of 32 columns that this workgroup multiplies: one or more.
uint first_group() { return kSplitColumns == 1u ? gl_WorkGroupID.z * p.groups_of_split : 0u; }
uint end_group() { return kSplitColumns == 1u ? min(p.groups, first_group() + p.groups_of_split) : p.groups; }

layout(std430, set = 0, binding = 4) writeonly buffer PartialSums { float partial_sums[]; };
// `sum` of a row of the weight, without its offset; with GLU that of a gate, whose up is `up`.
void store_sums_of(uint row, uint n, float sum, float up) {
  if (kSplitColumns == 0u) {
    const uint weight = first_weight + n;
    store_output(row, n, kGlu == 1u ? output_of_glu(sum, up, weight, weight + up_rows()) : output_of(sum, weight));
    return;
  }
  const uint at = (gl_WorkGroupID.z * p.rows + row) * (p.outputs << kGlu) + n;
  partial_sums[at] = sum;
  if (kGlu == 1u) partial_sums[at + p.outputs] = up;
}

// Whether this workgroup has something to do; called before all others. A tile inside one sequence whose first row is past the count has nothing;
// others decide row by row.
bool take_tile() {
  if (kExperts == 1u) {
    const uint expert = expert_of_tile(gl_WorkGroupID.x, kM);
    first_weight = expert * p.outputs;
    return expert != RONDO_NOTHING;
  }
  first_row = gl_WorkGroupID.x * kM;
  const bool one_sequence = first_row / p.rows_per_sequence == (min(first_row + kM, p.rows) - 1u) / p.rows_per_sequence || p.rows_per_sequence >= p.rows;
  return !one_sequence || row_valid(first_row, p.rows_per_sequence);
}
