#include "lib/params.h"
RONDO_PARAMS(LayerNormParams) {
  uint rows_per_sequence;
  uint columns;
  uint input_offset;
  uint input_stride;
  uint has_weight;
  uint weight_offset;  // elements
  uint has_bias;
  uint bias_offset;
  float epsilon;
} RONDO_PARAMS_END
