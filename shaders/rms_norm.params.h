#include "lib/params.h"
RONDO_PARAMS(RmsNormParams) {
  uint rows_per_sequence;
  uint columns;
  uint input_offset;
  uint input_stride;
  uint has_weight;
  uint weight_offset;  // elements
  float epsilon;
  float weight_bias;   // added to each weight
} RONDO_PARAMS_END
