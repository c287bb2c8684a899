#include "lib/params.h"
RONDO_PARAMS(MeasureFmaParams) {
  uint invocations;
  uint iterations;  // of RONDO_MEASURE_FMA_STEPS steps of RONDO_MEASURE_FMA_CHAINS chains
  float factor;
  float addend;
} RONDO_PARAMS_END
#define RONDO_MEASURE_FMA_CHAINS 8
#define RONDO_MEASURE_FMA_STEPS 16
