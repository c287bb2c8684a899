#include "lib/params.h"
// Four dimensions, leading ones 1; a stride of 0 broadcasts.
RONDO_PARAMS(AddParams) {
  uint rows_per_sequence;
  uint dim1, dim2, dim3;
  uint a_offset, a_stride0, a_stride1, a_stride2, a_stride3;
  uint b_offset, b_stride0, b_stride1, b_stride2, b_stride3;
} RONDO_PARAMS_END
