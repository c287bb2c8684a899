#include "lib/params.h"
// Four dimensions of the output, leading ones 1; input dimension i has extent i elements, from before i of the output on.
RONDO_PARAMS(PadParams) {
  uint rows_per_sequence;
  uint dim1, dim2, dim3;
  uint input_offset, input_stride0, input_stride1, input_stride2, input_stride3;
  uint before0, before1, before2, before3;
  uint extent0, extent1, extent2, extent3;
  float value;
} RONDO_PARAMS_END
