#include "lib/params.h"
// Shared by sample_scores and sample. Keys of one sequence lie in runs of 256 (RONDO_SAMPLE_CHUNK): the vocabulary's, padded
// with zeros, then the largest key of each of those chunks, padded likewise.
#define RONDO_SAMPLE_CHUNK 256
#define RONDO_SAMPLE_CHUNKS_PER_GROUP 8
RONDO_PARAMS(SampleParams) {
  uint vocabulary;     // V
  uint chunks;         // ceil(V / 256), at most 1024
  uint sequence_keys;  // keys of one sequence: 256 (chunks + ceil(chunks / 256))
  uint context;        // tokens per sequence
  uint input_offset;   // elements
  uint input_stride;   // elements from sequence to sequence
} RONDO_PARAMS_END
