#include "lib/params.h"
RONDO_PARAMS(RopeKvWriteParams) {
  uint rows_per_sequence;   // T
  uint heads;
  uint kv_heads;
  uint head_dim;
  uint cache_rows;
  uint cache_row_elements;
  uint cache_scales;        // q8_0: first word of the scales, in both caches
  uint query_offset;        // of q, k and v in their common storage; equal strides
  uint key_offset;
  uint value_offset;
  uint stride_sequence;
  uint stride_head;
  uint stride_row;
  uint positions_stride;
  uint frequencies;
  uint high_lines;
  uint interleaved;
  float attention_factor;
  uint norm_weights;        // with kNorm: where the weights of the queries' norm begin, which the keys' follow
  uint ring;                // as of kv_write
  float epsilon;
  float weight_bias;        // added to them
  uint value_stride_sequence;  // with kOfStep
  uint value_stride_head;
  uint value_stride_row;
} RONDO_PARAMS_END
