#include "lib/params.h"
RONDO_PARAMS(RandomWeightsParams) {
  uint words;
  uint quant_words;  // before the scales
  uint float_bits;   // 32, 16, or 0 for quants
  uint constant;     // every f32 is `scale`
  uint seed;
  float scale;
} RONDO_PARAMS_END
