#include "lib/params.h"
RONDO_PARAMS(MeasureFmaParams) {
  uint invocations;
  uint iterations;  // of RONDO_MEASURE_FMA_STEPS steps of RONDO_MEASURE_FMA_CHAINS chains
  float factor;
  float addend;
} RONDO_PARAMS_END
// As many as cover the latency of a multiplication and an addition, and stay in sixteen registers.
#define RONDO_MEASURE_FMA_CHAINS 12
#define RONDO_MEASURE_FMA_STEPS 16
