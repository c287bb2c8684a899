#include "lib/params.h"
#define RONDO_ROUTE_MAX_EXPERTS 1024
RONDO_PARAMS(RouteParams) {
  uint rows_per_sequence;
  uint experts;
  uint input_offset;
  uint input_stride;
  uint k;
  uint normalize;
} RONDO_PARAMS_END
