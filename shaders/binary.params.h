#include "lib/params.h"
// Values of binary.comp's constant 1.
#define RONDO_BINARY_ADD 0
#define RONDO_BINARY_SUB 1
#define RONDO_BINARY_MUL 2
#define RONDO_BINARY_DIV 3
// Four dimensions, leading ones 1; a stride of 0 broadcasts.
RONDO_PARAMS(BinaryParams) {
  uint rows_per_sequence;
  uint dim1, dim2, dim3;
  uint a_offset, a_stride0, a_stride1, a_stride2, a_stride3;
  uint b_offset, b_stride0, b_stride1, b_stride2, b_stride3;
} RONDO_PARAMS_END
