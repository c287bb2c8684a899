#include "lib/params.h"
RONDO_PARAMS(StepBeginParams) {
  uint rows;     // T: capacity of the step
  uint context;  // n_ctx: ids per sequence in the token array
} RONDO_PARAMS_END
