#include "lib/params.h"
RONDO_PARAMS(AttentionParams) {
  uint queries;     // Q: rows per sequence
  uint heads;       // H of the output
  uint first_head;  // of the query heads that this dispatch computes: those of kv_heads KV heads
  uint kv_heads;
  uint group;       // H / G: query heads of one KV head
  uint head_dim;    // D
  uint value_dim;   // E
  uint keys;        // S
  uint query_offset;  // of first_head; elements, as are the strides of query, key and value that follow
  uint query_sequence;
  uint query_head;
  uint query_row;
  uint key_offset;
  uint key_sequence;
  uint key_head;
  uint key_row;
  uint value_offset;
  uint value_sequence;
  uint value_head;
  uint value_row;
  float scale;
  uint causal;
  uint n_offsets;    // positions of query 0 in a buffer, one for each sequence or one for all; 0: keys - queries
  uint n_lengths;    // valid keys in a buffer, likewise; 0: keys
  uint n_splits;
  int window_back;   // -1: unlimited, as is
  int window_ahead;
  uint prefix;
  uint chunk;        // 0: none
  uint chunks_back;
  float softcap;
  uint of_heads_offset;  // of sinks or slopes that come by themselves
} RONDO_PARAMS_END
