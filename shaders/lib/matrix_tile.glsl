// A tile of rows in f16 (lib/f16_tile.glsl) multiplied by matrix units (lib/matrix.glsl).
// Before including: what that needs but kM, kN, kOutputs and how products are made, kTurnsFirst (the first factor lies as kTurned of lib/matrix.glsl says),
// kLanes, kRowMatrices, kOutputMatrices and kRowSubgroups (of each
// subgroup's matrices with kGlu half are of gates, half of ups), and the shapes of lib/matrix.glsl.
const uint kOutputSubgroups = kWidth / kLanes / kRowSubgroups;
const uint kM = kRowSubgroups * kRowMatrices * kMatrixRows;
const uint kN = kOutputSubgroups * kOutputMatrices * kMatrixColumns;
const uint kOutputs = kN >> kGlu;
const uint kMatrices = kRowMatrices * kOutputMatrices;
// Intel's registers hold 8 matrices of sums and those that are multiplied, or what is loaded meanwhile. Where they hold both no longer, other workgroups of a core multiply while one loads.
// Of two factors that are rounded here there is more to hold: what is loaded with 4 matrices, and with 8 not even places, which are reckoned anew from a zero that compilers don't know.
const uint kFewestLate = kScalesFirst ? 4u : 8u;
const bool kLoadsLate = kFewLanes && kMatrices >= kFewestLate;
const bool kIsFull = kLoadsLate && kMatrices == 8u;
const bool kReckonsAnew = kScalesFirst && kIsFull;

// The first row of the second factor of a subgroup's matrix j.
uint first_of_matrix(uint output_subgroup, uint j) {
  const uint n = kOutputMatrices >> kGlu;  // of gates, or of all
  return (j / n) * kOutputs + (output_subgroup * n + j % n) * kMatrixColumns;
}

// The products of kMatrixDepth columns from eight `k` of the tile's four on.
#define MULTIPLY_COLUMNS(k)                                                                                                                                    \
  {                                                                                                                                                            \
    Left a[kRowMatrices];                                                                                                                                      \
    [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {                                                                                                      \
      if (kTurnsFirst) LOAD_TURNED(a[i], tile + (row_subgroup * kRowMatrices + i) * (4u * kFourPairs) + (k) * kFourPairs, kFourPairs, kWide ? (k) >> 30 : 0u)  \
      else a[i] = load_left(tiles[tile + (row_subgroup * kRowMatrices + i) * kMatrixRows * kStride + (k)], MATRIX_BY_ROW, kStride, MATRIX_VISIBLE);            \
    }                                                                                                                                                          \
    [[unroll]] for (uint j = 0u; j < kOutputMatrices; ++j) {                                                                                                   \
      LOAD_RIGHT(b, tile + (kM + first_of_matrix(output_subgroup + (kReckonsAnew ? (k) >> 30 : 0u), j)) * kStride + (k), kStride)                               \
      [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) sums[i * kOutputMatrices + j] = multiply_add(a[i], b, sums[i * kOutputMatrices + j]);                \
    }                                                                                                                                                          \
  }

// Of one of the two tiles.
#define MULTIPLY(tile)                                                                                                                                           \
  if (kLanes == 8u || kLoadsLate) { /* addresses of all columns take as many registers as there are */                                                           \
    [[dont_unroll]] for (uint k = 0u; k < 4u; k += kMatrixDepth / 8u) MULTIPLY_COLUMNS(k)                                                                       \
  } else {                                                                                                                                                       \
    [[unroll]] for (uint k = 0u; k < 4u; k += kMatrixDepth / 8u) MULTIPLY_COLUMNS(k)                                                                            \
  }

// Element e of a subgroup's matrix (i, j), which lies in shared memory.
#define FINISH(i, j, e)                                                                                                                                          \
  {                                                                                                                                                              \
    const uint row = (row_subgroup * kRowMatrices + i) * kMatrixRows + e / kMatrixColumns, column = first_of_matrix(output_subgroup, j) + e % kMatrixColumns;     \
    if (!row_counts(row)) continue;                                                                                                                              \
    finish(row, column, unscaled(tiles[own + e / 4u][e & 3u], row, column), kGlu == 1u ? unscaled(tiles[own + kMatrixQuads + e / 4u][e & 3u], row, kOutputs + column) : 0.0); \
  }

#define SUMS                                                                                          \
  const uint row_subgroup = gl_SubgroupID / kOutputSubgroups, output_subgroup = gl_SubgroupID % kOutputSubgroups; \
  Sums sums[kMatrices];
#define CLEAR_SUMS [[unroll]] for (uint i = 0u; i < kMatrices; ++i) sums[i] = NO_SUMS;
// The end of a subgroup's matrices, one after the other in shared memory. Which is next is asked for each of them: by an index that is no constant NVIDIA's
// driver keeps all sums in memory, from the first product on.
#define FINISH_SUMS                                                                                                                                              \
  const uint kMatrixQuads = kMatrixRows * kMatrixColumns / 4u, own = gl_SubgroupID * (kMatrixQuads << kGlu), kFinished = kOutputMatrices >> kGlu;                \
  [[dont_unroll]] for (uint next = 0u; next < kRowMatrices * kFinished; ++next) {                                                                                \
    const uint i = next / kFinished, j = next % kFinished;                                                                                                       \
    barrier();                                                                                                                                                   \
    [[unroll]] for (uint m = 0u; m < kMatrices; ++m) {                                                                                                           \
      if (m == i * kOutputMatrices + j) store_sums(tiles[own], sums[m], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE);                                   \
      if (kGlu == 1u && m == i * kOutputMatrices + kFinished + j) store_sums(tiles[own + kMatrixQuads], sums[m], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE); \
    }                                                                                                                                                            \
    barrier();                                                                                                                                                   \
    [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < kMatrixRows * kMatrixColumns; e += kLanes) FINISH(i, j, e)                                        \
  }

#include "lib/f16_tile.glsl"

// store_quad() of the first factor where it lies turned over.
void store_turned_quad(uint tile, uint row, uint quad, vec4 x) {
  const uint place = place_in_pair(row % 8u), at = tile + (row / 8u * (4u * kFourPairs) + (quad >> 1) * kFourPairs + (quad & 1u) * 4u + place / 4u);
  const uvec2 halves = to_halves(x);
  tiles[at][place % 4u] = halves.x;
  tiles[at + 2u][place % 4u] = halves.y;
}
