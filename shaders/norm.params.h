#include "lib/params.h"
// Shared by rms_norm, layer_norm and norm_subgroup. Offsets and strides in elements.
RONDO_PARAMS(NormParams) {
  uint rows_per_sequence;  // tokens
  uint heads;              // rows of a token
  uint columns;
  uint input_offset;
  uint input_stride;       // from a token to the next
  uint head_stride;        // and from a row of a token
  uint has_weight;
  uint weight_offset;
  float weight_bias;       // added to each weight
  float epsilon;
  uint has_addend;         // rms_norm: the residual, a row for each token; layer_norm: the bias, one row for all
  uint addend_offset;
  uint addend_stride;      // as input_stride
} RONDO_PARAMS_END
