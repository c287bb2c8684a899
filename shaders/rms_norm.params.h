#include "lib/params.h"
RONDO_PARAMS(RmsNormParams) {
  uint rows_per_sequence;  // tokens
  uint heads;              // rows of a token
  uint columns;
  uint input_offset;
  uint input_stride;       // elements from a token to the next
  uint head_stride;        // and from a row of a token
  uint has_weight;
  uint weight_offset;  // elements
  float epsilon;
  float weight_bias;   // added to each weight
  uint has_residual;
  uint residual_offset;
  uint residual_stride;    // as input_stride
} RONDO_PARAMS_END
