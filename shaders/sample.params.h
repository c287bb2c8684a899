#include "lib/params.h"
// Shared by sample_scores and sample. Keys of one sequence lie in chunks of 256 (RONDO_SAMPLE_CHUNK), padded with zeros. Behind them, each padded to a
// multiple of four words: the largest key of each chunk; and the mass of each, f32, relative to that largest. Masses are there only where sample_mass_divisor() (lib/sample_key.glsl) is
// not 0.
#define RONDO_SAMPLE_CHUNK 256
#define RONDO_SAMPLE_CHUNKS_PER_GROUP 8
#define RONDO_SAMPLE_PADDED(chunks) (((chunks) + 3u) & ~3u)
// From a sequence's first key on.
#define RONDO_SAMPLE_LARGEST_AT(chunks) (RONDO_SAMPLE_CHUNK * (chunks))
#define RONDO_SAMPLE_MASSES_AT(chunks) (RONDO_SAMPLE_LARGEST_AT(chunks) + RONDO_SAMPLE_PADDED(chunks))
#define RONDO_SAMPLE_WORDS(chunks) (RONDO_SAMPLE_MASSES_AT(chunks) + RONDO_SAMPLE_PADDED(chunks))
RONDO_PARAMS(SampleParams) {
  uint vocabulary;     // V
  uint chunks;         // ceil(V / 256), at most 1024
  uint sequence_keys;  // words of one sequence: RONDO_SAMPLE_WORDS
  uint context;        // tokens per sequence
  uint input_offset;   // elements
  uint input_stride;   // elements from sequence to sequence
} RONDO_PARAMS_END
