#include "lib/params.h"
RONDO_PARAMS(RandomWeightsParams) {
  uint words;
  uint quant_words;  // before the scales
  uint float_bits;   // 32, 16, or 0 for quants
  uint constant;     // every f32 is `scale`
  uint seed;
  float scale;       // of f32 and f16
  uint scale_words;  // of one block, of which all blocks have the same:
  uint first_scale;  // the first of them,
  uint more_scales;  // and each of the others
} RONDO_PARAMS_END
