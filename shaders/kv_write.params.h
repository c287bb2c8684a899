#include "lib/params.h"
RONDO_PARAMS(KvWriteParams) {
  uint rows_per_sequence;   // T
  uint kv_heads;
  uint head_dim;
  uint cache_rows;          // S
  uint cache_row_elements;  // head_dim padded to the cache type's multiple
  uint input_offset;
  uint stride_sequence;
  uint stride_head;
  uint stride_row;
  uint has_count;
  uint ring;                // row r is stored at r mod S
  uint cache_scales;        // q8_0: first word of the scales
} RONDO_PARAMS_END
