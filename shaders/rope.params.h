#include "lib/params.h"
RONDO_PARAMS(RopeParams) {
  uint rows_per_sequence;  // T
  uint heads;
  uint head_dim;
  uint input_offset;
  uint stride_sequence;
  uint stride_head;
  uint stride_row;
  uint positions_stride;   // elements from one sequence's positions to the next; 0: shared
  uint frequencies;        // n / 2
  uint high_lines;
  uint interleaved;
  float attention_factor;
} RONDO_PARAMS_END
