#include "lib/params.h"
// Shared by all kernels of linear.
RONDO_PARAMS(LinearParams) {
  uint rows;               // M: rows of the input
  uint rows_per_sequence;
  uint columns;            // K
  uint groups;             // ceil(K / 32)
  uint outputs;            // N of the output; with GLU the weight has 2 N rows, gates first
  uint input_offset;       // elements; of an input in bytes (lib/rounded_input.glsl) the word where they begin
  uint input_stride;       // elements from row to row; of an input in bytes the word where scales begin
  uint output_offset;
  uint output_stride;
  uint weight_offset_rows;
  uint row_words;
  uint scale_row_words;
  uint scale_offset_words;
  uint has_residual;
  uint residual_offset;
  uint residual_stride;
  uint bias_offset;
  float glu_limit;         // 0: none
  float glu_up_bias;
  uint experts;            // how many weights of `outputs` rows there are
  uint chosen;             // rows of the output, one after the other, that a token has, each of an expert
  uint input_choice_stride;  // elements of the input from the first to the second of these; 0: they share it
  uint experts_offset;     // of their numbers
  uint experts_stride;     // from token to token
  // Of the RMS norms behind and before this linear (lib/linear_norm.glsl).
  uint gain_offset;        // of the weights
  float gain_bias;         // added to each of them
  uint squares_to;         // sums of squares of the output, behind its products with the weights
  uint squares_from;       // and of the input
  uint n_squares;          // sums that a row of the input has
  float epsilon;
  uint groups_of_split;    // columns of a workgroup, where several share a tile (lib/linear_tile.glsl)
} RONDO_PARAMS_END

// linear_combine.comp has in its place how many they are.
#define RONDO_COMBINE_SPLITS groups_of_split

// A linear that turns what it makes (lib/linear_rotation.glsl) has no residual, GLU, experts, or norm behind it. In their places it has:
#define RONDO_ROTATION_HEADS residual_offset         // of queries that it makes: H or 0
#define RONDO_ROTATION_KEY_HEADS experts             // of keys: G or 0
#define RONDO_ROTATION_KV_HEADS residual_stride      // G
#define RONDO_ROTATION_HEAD_DIM input_choice_stride  // D
#define RONDO_ROTATION_CACHE_ROWS experts_offset
#define RONDO_ROTATION_CACHE_ROW experts_stride      // elements from row to row of a cache
#define RONDO_ROTATION_FREQUENCIES gain_offset       // as of rope
#define RONDO_ROTATION_HIGH_LINES squares_to
#define RONDO_ROTATION_FACTOR gain_bias              // multiplies cos and sin
// How it turns, in a constant.
#define RONDO_ROTATION 1u
#define RONDO_ROTATION_INTERLEAVED 2u
#define RONDO_ROTATION_HALVES 4u                     // caches are f16, else f32
#define RONDO_ROTATION_RING 8u                       // row r of them is r mod how many there are
