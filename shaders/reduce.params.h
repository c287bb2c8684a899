#include "lib/params.h"
// Values of reduce.comp's constant 1.
#define RONDO_REDUCE_MEAN 0
#define RONDO_REDUCE_SUM 1
#define RONDO_REDUCE_MAX 2
// Dimensions 0, 1 and 2 are those besides the axis.
RONDO_PARAMS(ReduceParams) {
  uint rows_per_sequence;
  uint dim1;
  uint columns;  // along the axis
  uint input_offset, input_stride0, input_stride1, input_stride2, input_axis_stride;
} RONDO_PARAMS_END
