// Products of many rows in f16: what an invocation brings into a tile of kM x kN (lib/f16_tile.glsl) of both factors of matmul, and what becomes of its sums. By matrix
// units, or with RONDO_HALF_TILE by dot products of two. Needs what these need, p of matmul.params.h, lib/step_state.glsl, kLanes and what lib/matmul_factors.glsl needs but kRowQuads.
const uint kGlu = 0u, kRowQuads = 8u, kAhead = 1u;
const bool kScalesFirst = true, kWide = true;
#ifdef RONDO_HALF_TILE
#include "lib/half_tile.glsl"
const bool kReckonsAnew = false;
const uint kEightRowsOfA = 8u * kStride;
#else
const bool kTurnsFirst = kTurned;
#include "lib/matrix_tile.glsl"
const uint kEightRowsOfA = kTurnsFirst ? 4u * kFourPairs : 8u * kStride;
#endif
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
const uint kAStep = kRowsOfItem / 8u * kEightRowsOfA, kBStep = kRowsOfItem * kStride;
const bool kAGrows = kALies != 2u && kAItems % kWidth == 0u, kBGrows = kBLies != 2u && kBItems % kWidth == 0u;

void store_a(uint to, uvec2 place, vec4 x) {
#ifndef RONDO_HALF_TILE
  if (kTurnsFirst) {
    store_turned_quad(to, place.x, place.y, x);
    return;
  }
#endif
  store_quad(to, place.x, place.y, x);
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
    if (kReckonsAnew && i % kAtATime == 0u) unknown_zero = under_way >> 31;  // another, or places of the first factor were kept for these
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
