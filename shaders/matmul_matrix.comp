// output = scale * a b for each batch, both with any strides: tiles of kM x kN by matrix units (lib/matrix_tile.glsl), both factors rounded to f16,
// their rows scaled where they do not suit it. Sums in f32. Grid (ceil(N / kN), ceil(M / kM), batches).
// Needs: subgroups of exactly kLanes invocations, cooperative matrices, Vulkan's memory model.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "matmul.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kALies = 1u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRowMatrices = 2u;     // of a subgroup
layout(constant_id = 4) const uint kOutputMatrices = 2u;
layout(constant_id = 5) const uint kRowSubgroups = 2u;
layout(constant_id = 6) const uint kBLies = 2u;
layout(constant_id = 7) const uint kWhole = 0u;
layout(constant_id = 8) const uint kMatrixRows = 16u;
layout(constant_id = 9) const uint kMatrixColumns = 16u;
layout(constant_id = 10) const uint kMatrixDepth = 16u;
layout(constant_id = 11) const uint kColumnsInLanes = 0u;  // lib/matrix.glsl

const uint kGlu = 0u, kRowQuads = 8u, kAhead = 1u;
const bool kScalesFirst = true, kWide = true;
#define MATRIX_IDS_FROM_8
#include "lib/matrix.glsl"
const bool kTurnsFirst = kTurned;
#include "lib/matrix_tile.glsl"
#include "lib/matmul_factors.glsl"

// Rows that invocations store side by side, eight each, are four apart: they are of 80 bytes, so that others would share banks. kWidth is a multiple of 64.
uint own_number() {
  const uint n = gl_LocalInvocationID.x;
  return kLanes == 8u ? n : (n & ~40u) | (n & 8u) << 2 | (n >> 2 & 8u);
}

float largest_a[kRowsOfA], largest_b[kRowsOfB];

bool begin_tile() { return !is_idle(); }
uint first_group() { return 0u; }
uint end_group() { return (p.depth + 31u) / 32u; }
uint under_way;  // the group that is loaded as it is stored, first the one factor, then the other, with kLoadsLate
void load_group(uint group, uint set) {
  under_way = group;
  if (!kLoadsLate) load_factors(group);
}

// From item to item of an invocation, vectors of a tile that lie between them, where rows grow by a constant.
const uint kRowsOfItem = kWidth / kRowQuads;
const uint kAStep = kTurnsFirst ? kRowsOfItem / 8u * (4u * kFourPairs) : kRowsOfItem * kStride, kBStep = kRowsOfItem * kStride;
const bool kAGrows = kALies != 2u && kAItems % kWidth == 0u, kBGrows = kBLies != 2u && kBItems % kWidth == 0u;

void store_a(uint to, uvec2 place, vec4 x) {
  if (kTurnsFirst) store_turned_quad(to, place.x, place.y, x);
  else store_quad(to, place.x, place.y, x);
}
void store_b(uint to, uvec2 place, vec4 x) { store_quad(to, kM + place.x, place.y, x); }

const uint kAtATime = 4u;  // items that are loaded late before they are stored

void store_group(uint tile, uint set, bool scaled) {
  [[unroll]] for (uint i = 0u; i < kAs; ++i) {
    if (kReckonsAnew && i % kAtATime == 0u) unknown_zero = under_way >> 30;
    if (kLoadsLate && i % kAtATime == 0u) {
      [[unroll]] for (uint j = i; j < min(i + kAtATime, kAs); ++j) load_a(under_way, j);
    }
    const uint row = place_of_a(i).x;
    largest_a[i % kRowsOfA] = larger(largest_a[i % kRowsOfA], a_items[i]);
    [[branch]] if (scaled) a_items[i] *= scale_of_first(row);
    if (kAGrows) store_a(tile + i * kAStep, place_of_a(0u), a_items[i]);
    else store_a(tile, place_of_a(i), a_items[i]);
  }
  [[unroll]] for (uint i = 0u; i < kBs; ++i) {
    if (kReckonsAnew && i % kAtATime == 0u) unknown_zero = under_way >> 31;
    if (kLoadsLate && i % kAtATime == 0u) {
      [[unroll]] for (uint j = i; j < min(i + kAtATime, kBs); ++j) load_b(under_way, j);
    }
    const uint row = place_of_b(i).x;
    largest_b[i % kRowsOfB] = larger(largest_b[i % kRowsOfB], b_items[i]);
    [[branch]] if (scaled) b_items[i] *= scale_of_second(row);
    if (kBGrows) store_b(tile + i * kBStep, place_of_b(0u), b_items[i]);
    else store_b(tile, place_of_b(i), b_items[i]);
  }
}

void clear_magnitudes() {
  [[unroll]] for (uint i = 0u; i < kRowsOfA; ++i) largest_a[i] = 0.0;
  [[unroll]] for (uint i = 0u; i < kRowsOfB; ++i) largest_b[i] = 0.0;
}

void merge_magnitudes() {
  [[unroll]] for (uint i = 0u; i < kRowsOfA; ++i) merge_first(place_of_a(i).x, largest_a[i]);
  [[unroll]] for (uint i = 0u; i < kRowsOfB; ++i) merge_second(place_of_b(i).x, largest_b[i]);
}

int first_exponent(uint row) { return exponent_of(scale_of_first(row)); }

void finish(uint row, uint column, float sum, float up) { store(row, column, sum); }
