#include "lib/params.h"
RONDO_PARAMS(EmbeddingParams) {
  uint rows;
  uint rows_per_sequence;
  uint columns;
  uint groups;  // of 32 columns
  uint first_id;    // of this dispatch, which leaves the rows of other ids to other dispatches
  uint n_ids;
  uint vocabulary;
  uint ids_offset;
  uint weight_offset_rows;  // where first_id is
  uint row_words;
  uint scale_row_words;
  uint scale_offset_words;
  uint dense;  // 1: f32 rows of exactly row_words words, not padded to groups (an activation)
  uint dense_offset;
  float scale;
} RONDO_PARAMS_END
