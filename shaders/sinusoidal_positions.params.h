#include "lib/params.h"
RONDO_PARAMS(SinusoidalPositionsParams) {
  uint rows_per_sequence;
  uint frequencies;  // half the width
  uint split;        // sines first, cosines after them; else in turns
  uint positions_offset, positions_stride;
  int first;  // what positions are counted from
} RONDO_PARAMS_END
