#include "lib/params.h"
RONDO_PARAMS(EmbeddingParams) {
  uint rows;
  uint rows_per_sequence;
  uint columns;
  uint groups;  // of 32 columns
  uint vocabulary;
  uint ids_offset;
  uint weight_offset_rows;
  uint row_words;
  uint scale_row_words;
  uint scale_offset_words;
  uint dense;  // 1: f32 rows of exactly row_words words, not padded to groups (an activation)
  uint dense_offset;
} RONDO_PARAMS_END
