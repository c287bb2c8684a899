// output = scale * a b for each batch, both with any strides: tiles of kM x kN, a and the columns of b as rows of f32 in shared memory, the next
// 4 kSteps steps of the depth while these are multiplied. Grid (ceil(N / kN), ceil(M / kM), batches). f32 accumulation, plain sums.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "matmul.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kColumns = 16u;  // invocations that share rows
layout(constant_id = 2) const uint kTileRows = 4u;
layout(constant_id = 3) const uint kTileOutputs = 4u;
layout(constant_id = 4) const uint kSteps = 8u;  // or 4
layout(constant_id = 5) const uint kALies = 1u;
layout(constant_id = 6) const uint kBLies = 2u;
layout(constant_id = 7) const uint kWhole = 0u;

const uint kM = kWidth / kColumns * kTileRows, kN = kColumns * kTileOutputs, kRowQuads = kSteps;
#include "lib/float_tile.glsl"
#include "lib/matmul_factors.glsl"

uint own_number() { return gl_LocalInvocationID.x; }

void store_tile() {
  [[unroll]] for (uint i = 0u; i < kAs; ++i) {
    const uvec2 place = place_of_a(i);
    if (is_item(i, kAItems)) tile[place.x * kStride + place.y] = a_items[i];
  }
  [[unroll]] for (uint i = 0u; i < kBs; ++i) {
    const uvec2 place = place_of_b(i);
    if (is_item(i, kBItems)) tile[(kM + place.x) * kStride + place.y] = b_items[i];
  }
}

void main() {
  if (is_idle()) return;
  const uint n_parts = (p.depth + 4u * kSteps - 1u) / (4u * kSteps);
  clear_sums();
  load_factors(0u);
  for (uint part = 0u; part < n_parts; ++part) {
    barrier();
    store_tile();
    barrier();
    load_factors(min(part + 1u, n_parts - 1u));  // the last is loaded twice, and nobody reads it
    add_products();
  }
  [[unroll]] for (uint i = 0u; i < kTileRows; ++i) {
    const uint row = own_row() + i;
    if (row_counts(row)) {
      [[unroll]] for (uint j = 0u; j < kTileOutputs; ++j) store(row, own_output() + kColumns * j, sums[i * kTileOutputs + j]);
    }
  }
}
