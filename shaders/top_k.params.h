#include "lib/params.h"
// Elements that a workgroup sorts: pairs of words that fill 16 KiB of shared memory.
#define RONDO_TOP_K_CHUNK 2048
RONDO_PARAMS(TopKParams) {
  uint rows_per_sequence;
  uint columns;       // of a row: elements, or pairs with from_pairs
  uint input_offset;  // words
  uint input_stride;  // words from row to row
  uint sorted;        // elements that are sorted together: a power of two, at least those of a chunk
  uint k;
  uint from_pairs;    // the input holds pairs (key, index)
  uint to_pairs;      // so does the output, k for each chunk
} RONDO_PARAMS_END
