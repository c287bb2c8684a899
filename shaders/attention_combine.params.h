#include "lib/params.h"
RONDO_PARAMS(AttentionCombineParams) {
  uint queries;
  uint heads;
  uint value_dim;
  uint n_splits;
} RONDO_PARAMS_END
