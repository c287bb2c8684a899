#include "lib/params.h"
RONDO_PARAMS(GluParams) {
  uint rows;
  uint rows_per_sequence;
  uint columns;
  uint gate_offset;
  uint gate_stride;
  uint up_offset;
  uint up_stride;
  float limit;  // 0: none
  float up_bias;
} RONDO_PARAMS_END
