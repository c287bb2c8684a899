#include "lib/params.h"
RONDO_PARAMS(QuantizeParams) {
  uint rows_per_sequence;  // tokens
  uint rows_of_token;
  uint columns;            // a multiple of 32
  uint input_offset;       // elements
  uint input_stride;       // from token to token
  uint row_stride;         // and from a token's row to the next
  uint to;                 // the word where bytes begin
  uint scales_to;          // and where scales do
  uint row_step;           // groups of 32 columns in the result from a row's to the next one's, and
  uint group_step;         // from a row's group to its next
} RONDO_PARAMS_END
