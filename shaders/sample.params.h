#include "lib/params.h"
// Shared by sample_scores and sample. Keys of one sequence lie in chunks of 256 (RONDO_SAMPLE_CHUNK), padded with zeros. Behind them, each padded to a
// multiple of four words: the largest key of each chunk; and two of its masses, f32, relative to that largest, of temperature 1 and of the sequence's. Masses are there only where
// sample_uses_masses() (lib/sample_key.glsl).
#define RONDO_SAMPLE_CHUNK 256
#define RONDO_SAMPLE_CHUNKS_PER_GROUP 8
RONDO_PARAMS(SampleParams) {
  uint vocabulary;     // V
  uint chunks;         // ceil(V / 256), at most 1024
  uint sequence_keys;  // words of one sequence: 256 chunks + 12 ceil(chunks / 4)
  uint context;        // tokens per sequence
  uint input_offset;   // elements
  uint input_stride;   // elements from sequence to sequence
} RONDO_PARAMS_END
