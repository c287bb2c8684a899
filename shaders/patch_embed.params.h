#include "lib/params.h"
RONDO_PARAMS(PatchEmbedParams) {
  uint rows_per_sequence;
  uint patch_size;  // P
  uint patches_x;   // of a row of patches
  uint patches;     // of an image
  uint columns;     // C P P
  uint offset, stride_image, stride_channel, stride_y, stride_x;  // of the pixels, in elements
} RONDO_PARAMS_END
