#include "lib/params.h"
RONDO_PARAMS(StepEndParams) {
  uint sequences;
  uint context;    // n_ctx
  uint has_token;
} RONDO_PARAMS_END
