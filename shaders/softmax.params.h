#include "lib/params.h"
// Dimensions 0, 1 and 2 are those besides the axis.
RONDO_PARAMS(SoftmaxParams) {
  uint rows_per_sequence;
  uint dim1;
  uint columns;  // along the axis
  uint input_offset, input_stride0, input_stride1, input_stride2, input_axis_stride;
  uint output_stride0, output_stride1, output_stride2, output_axis_stride;
  uint has_mask;
  uint mask_offset, mask_stride0, mask_stride1, mask_stride2, mask_axis_stride;
  float scale;
} RONDO_PARAMS_END
