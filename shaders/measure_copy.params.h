#include "lib/params.h"
RONDO_PARAMS(MeasureCopyParams) {
  uint n_quads;  // of 16 bytes
} RONDO_PARAMS_END
#define RONDO_MEASURE_COPY_QUADS 8
