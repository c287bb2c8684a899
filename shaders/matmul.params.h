#include "lib/params.h"
// Strides of 0 broadcast. Batches are numbered row by row over two dimensions, of which the last has batch1 entries.
RONDO_PARAMS(MatmulParams) {
  uint rows_per_sequence;
  uint rows;     // M
  uint columns;  // N
  uint depth;    // K
  uint batch1;
  uint total_rows;  // of all batches
  uint a_offset, a_batch0, a_batch1, a_row, a_depth;
  uint b_offset, b_batch0, b_batch1, b_depth, b_column;
  float scale;
} RONDO_PARAMS_END
