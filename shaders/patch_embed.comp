// Gathers P x P patches of images (B, C, Y, X) into rows (B patches, C P P), channel by channel, for the linear that follows.
// One invocation per element; grid (ceil(columns / width), B patches).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "patch_embed.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Pixels { ELEMENT_BITS pixels[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Rows { ELEMENT_BITS values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint column = gl_GlobalInvocationID.x;
  if (column >= p.columns || !row_active(row, p.rows_per_sequence)) return;
  const uint image = row / p.patches, patch_y = row % p.patches / p.patches_x, patch_x = row % p.patches_x;
  const uint channel = column / p.patch_size / p.patch_size, y = patch_y * p.patch_size + column / p.patch_size % p.patch_size, x = patch_x * p.patch_size + column % p.patch_size;
  values[row * p.columns + column] = pixels[p.offset + image * p.stride_image + channel * p.stride_channel + y * p.stride_y + x * p.stride_x];
}
