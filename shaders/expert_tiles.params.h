#include "lib/params.h"
#include "lib/expert_tiles.h"
#define RONDO_MOST_SORTED_EXPERTS 1024
RONDO_PARAMS(ExpertTilesParams) {
  uint rows;               // of the output: `chosen` of each token, one after the other
  uint rows_per_sequence;  // tokens
  uint chosen;
  uint experts;
  uint experts_offset;     // elements, of their numbers
  uint experts_stride;     // from token to token
  uint rows_of_tile;
  uint tiles;              // that there is room for
} RONDO_PARAMS_END
