#include "lib/params.h"
RONDO_PARAMS(ArgmaxParams) {
  uint rows_per_sequence;
  uint columns;        // of the input: values, or pairs (value bits, index) in the second pass
  uint input_offset;
  uint input_stride;
  uint chunk;          // columns per workgroup
  uint from_pairs;
  uint to_pairs;
} RONDO_PARAMS_END
