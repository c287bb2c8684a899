// Linears of many rows in f16: what an invocation brings into a tile of kM x kN outputs (lib/f16_tile.glsl), and what becomes of its sums. By matrix
// units, or with RONDO_HALF_TILE by dot products of two. Needs what these need, p of linear.params.h,
// lib/step_state.glsl, kWeightType, and kPairs: values of weights are made two at a time, in f16, where they can.
#define RONDO_SHARED_TABLE
#define RONDO_HALF_CHUNKS
#define RONDO_WEIGHT_BINDING 2
#define weight_layout p
#include "lib/weight.glsl"
#include "lib/linear_output.glsl"
#include "lib/weight_halves.glsl"

const bool kScalesFirst = false;  // lib/halved_input.glsl
const bool kWide = kWeightType == RONDO_WEIGHT_F32 || kWeightType == RONDO_WEIGHT_BF16 || kWeightType == RONDO_WEIGHT_MXFP4;
#ifdef RONDO_HALF_TILE
#include "lib/half_tile.glsl"
const bool kTurnsFirst = false, kPairsOfRows = false;
#else
const uint kMostLanesThatTurn = kWide ? 8u : 16u;  // of 16 lanes, registers have no room for that and for magnitudes
const bool kFewEnough = kLanes <= kMostLanesThatTurn;  // a constant of its own: of && and more than a name glslang makes a branch
const bool kTurnsFirst = kTurned && kFewEnough;
const bool kPairsOfRows = kLanes == 16u;
#include "lib/matrix_tile.glsl"
#endif
#include "lib/linear_tile.glsl"
#include "lib/halved_input.glsl"

// What an invocation brings into a tile: every kWidth-th eight of the input, of which there may be fewer than invocations, and 16 elements of a weight at a time.
const uint kInputEights = kM * 4u;
const uint kInputs = (kInputEights + kWidth - 1u) / kWidth;
const uint kWeights = kN * 2u / kWidth;
uvec4 x[kAhead * kInputs];
Chunk chunks[kAhead * kWeights * kChunksOfSixteen];
float largest_weights[kWeights];
shared uint input_rows_of_tile[kExperts == 1u ? kM : 1u];  // in registers on Intel's devices they would be too many

// The row of the input of a row of the tile; of one beyond the last it is the last.
uint input_row_of(uint row) { return input_row(min(tile_row(row), p.rows - 1u)); }
// Of eight rows, another order: eight invocations side by side, which store 16 bytes each at a time, then have other banks each, as rows are 80 bytes apart. In fours they store two
// rows, which must be four apart, in twos four rows: 0, 1, 4 and 5. With kTurnsFirst they store words: of every second row, whose words lie together where lanes are 16.
uint row_of_fours(uint four) {
  if (kTurnsFirst) return kPairsOfRows ? (four & ~7u) | (four & 3u) << 1 | (four >> 2 & 1u) : four;
  return (four & ~5u) | (four & 1u) << 2 | (four >> 2 & 1u);
}
uint row_of_twos(uint two) { return (two & ~6u) | (two & 2u) << 1 | (two >> 1 & 2u); }
// The row of a tile, and the eight of its four, that an invocation's i-th is. Those beyond the last are the last, and not stored. From item to item rows grow by a constant: compilers
// keep little more than where the first is.
uvec2 place_of_input(uint i) {
  if (kInputEights % kWidth == 0u) return uvec2(i * kWidth / 4u + row_of_fours(gl_LocalInvocationID.x / 4u), gl_LocalInvocationID.x % 4u);
  const uint item = min(i * kWidth + gl_LocalInvocationID.x, kInputEights - 1u);
  return uvec2(row_of_fours(item / 4u), item % 4u);
}
uvec2 place_of_weight(uint i) { return uvec2(i * kWidth / 2u + row_of_twos(gl_LocalInvocationID.x / 2u), gl_LocalInvocationID.x % 2u); }  // and the half of its two

bool begin_tile() {
  fill_table();
  if (!take_tile()) return false;
  if (kExperts == 1u) {
    for (uint i = gl_LocalInvocationID.x; i < kM; i += kWidth) input_rows_of_tile[i] = input_row_of(i);
    barrier();
  }
  return true;
}

void load_group(uint group, uint set) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uvec2 place = place_of_weight(i);
    const uint row = weight_row(place.x) + p.weight_offset_rows;
    [[unroll]] for (uint c = 0u; c < kChunksOfSixteen; ++c) {
      chunks[(set * kWeights + i) * kChunksOfSixteen + c] = load_sixteen(row_at(row), group, place.y, c);
    }
  }
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    const uvec2 place = place_of_input(i);
    x[set * kInputs + i] = input_eight(kExperts == 1u ? input_rows_of_tile[place.x] : input_row_of(place.x), group, place.y);
  }
}

void store_group(uint tile, uint set, bool scaled) {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) {
    const uvec2 place = place_of_weight(i);
    const uint at = tile + ((kM + place.x) * kStride + place.y * 2u), first = (set * kWeights + i) * kChunksOfSixteen;
    [[unroll]] for (uint half_of_item = 0u; half_of_item < 2u; ++half_of_item) {
      if (kWeightType == RONDO_WEIGHT_F16) {
        tiles[at + half_of_item] = chunks[first + half_of_item].bits;
      } else {
        uvec2 halves[2];
        [[unroll]] for (uint j = 0u; j < 2u; ++j) {
          const uint quad = half_of_item * 2u + j;
          const Chunk chunk = chunks[first + quad / kQuads];
          if (kPairs == 1u && kHasQuants) {
            halves[j] = scaled_halves(chunk, quad % kQuads);
            continue;
          }
          vec4 w = scaled_quad(chunk, quad % kQuads);
          if (kWide) {
            largest_weights[i] = larger(largest_weights[i], w);
            [[branch]] if (scaled) w *= scale_of_second(place.x);
          }
          halves[j] = to_halves(w);
        }
        tiles[at + half_of_item] = uvec4(halves[0], halves[1]);
      }
    }
  }
  const uvec2 first = place_of_input(0u);
#ifndef RONDO_HALF_TILE
  if (kTurnsFirst) {
    const uint place = place_in_pair(first.x % 8u), to = tile + (first.x / 8u * (4u * kFourPairs) + first.y * kFourPairs + place / 4u);
    [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
      if (kInputEights % kWidth != 0u && i * kWidth + gl_LocalInvocationID.x >= kInputEights) break;
      [[unroll]] for (uint n = 0u; n < 4u; ++n) tiles[to + i * (kWidth / 32u * (4u * kFourPairs)) + n * 2u][place % 4u] = x[set * kInputs + i][n];
    }
    return;
  }
#endif
  const uint to = tile + (first.x * kStride + first.y);
  [[unroll]] for (uint i = 0u; i < kInputs; ++i) {
    if (kInputEights % kWidth == 0u || i * kWidth + gl_LocalInvocationID.x < kInputEights) tiles[to + i * (kWidth / 4u * kStride)] = x[set * kInputs + i];
  }
}

void clear_magnitudes() {
  [[unroll]] for (uint i = 0u; i < kWeights; ++i) largest_weights[i] = 0.0;
}

void merge_magnitudes() {
  if (kWide) {
    [[unroll]] for (uint i = 0u; i < kWeights; ++i) merge_second(place_of_weight(i).x, largest_weights[i]);
  }
}

int first_exponent(uint row) { return exponent_of(input_scale(input_row(tile_row(row)))); }
bool row_counts(uint row) { return row_is_there(tile_row(row)); }

void finish(uint row, uint column, float sum, float up) {
  const uint n = first_output() + column;
  if (n >= p.outputs) return;
  store_sums_of(tile_row(row), n, sum, up);
}
