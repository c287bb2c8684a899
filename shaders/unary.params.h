#include "lib/params.h"
// Four dimensions, leading ones 1.
RONDO_PARAMS(UnaryParams) {
  uint rows_per_sequence;
  uint dim1, dim2, dim3;
  uint input_offset, input_stride0, input_stride1, input_stride2, input_stride3;
} RONDO_PARAMS_END
