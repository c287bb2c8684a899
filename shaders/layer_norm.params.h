#include "lib/params.h"
RONDO_PARAMS(LayerNormParams) {
  uint rows_per_sequence;  // tokens
  uint heads;              // rows of a token
  uint columns;
  uint input_offset;
  uint input_stride;       // elements from a token to the next
  uint head_stride;        // and from a row of a token
  uint has_weight;
  uint weight_offset;  // elements
  uint has_bias;
  uint bias_offset;
  float epsilon;
} RONDO_PARAMS_END
