#include "lib/params.h"
RONDO_PARAMS(ExpertTilesParams) {
  uint rows;               // of the output: `chosen` of each token, one after the other
  uint rows_per_sequence;  // tokens
  uint chosen;
  uint experts_offset;     // elements
  uint experts_stride;     // from token to token
  uint rows_of_tile;
  uint tiles;              // that there is room for
} RONDO_PARAMS_END
