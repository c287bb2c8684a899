#include "lib/params.h"
RONDO_PARAMS(HalveParams) {
  uint rows_per_sequence;  // tokens
  uint rows_of_token;
  uint columns;
  uint input_offset;       // elements
  uint input_stride;       // from token to token
  uint row_stride;         // and from a token's row to the next
  uint rows;               // of the result
  uint scales_to;          // the word of the result where scales begin
} RONDO_PARAMS_END
