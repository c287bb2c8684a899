// A tile of kM x kN products of rows that are rounded to f16 in shared memory, 32 columns at a time, the next kAhead times 32 on their way
// meanwhile. Sums in f32.
// Rows whose largest magnitude does not suit f16 are multiplied by a power of two (lib/f16_scale.glsl): then all is done once more. So bits depend on
// nothing but the two rows of a product.
// Before including: kM, kN, kWidth, kAhead (1 to 3: groups of 32 columns that are under way), kGlu (of the second factor's rows kOutputs are of gates,
// then come as many of ups), kScalesFirst and kWide (rows of the first factor, or of the second, may not suit f16), lib/halves.glsl, and how products are
// made: SUMS declares the sums, CLEAR_SUMS, MULTIPLY(tile), FINISH_SUMS and kLoadsLate. The includer defines what is declared here.
#include "lib/f16_scale.glsl"

// Whether this workgroup has something to do; the first that is called.
bool begin_tile();
// The groups of 32 columns that are multiplied, one or more.
uint first_group();
uint end_group();
// What this invocation brings of group i of 32 columns: from memory into registers, of which there are kAhead sets, and from these to where a
// tile begins.
void load_group(uint i, uint set);
void store_group(uint tile, uint set, bool scaled);
// The magnitudes of what it has stored are 0; are merged into the tile's.
void clear_magnitudes();
void merge_magnitudes();
// Whether a row of the tile's first factor is wanted, or else does not decide whether all is done again; and the exponent of the power of two by which
// it is multiplied.
bool row_counts(uint row);
int first_exponent(uint row);
// With kGlu sum is the gate.
void finish(uint row, uint column, float sum, float up);

const uint kStride = 5u;  // uvec4: 32 halves, and 16 bytes that move the next row to other banks
const uint kTile = (kM + kN) * kStride;
// Two tiles, each with kM rows of the first factor and kN of the second; in the end of matrix_tile.glsl a matrix of sums of each subgroup, with GLU two.
shared uvec4 tiles[2u * kTile];
const uint kFirstScaled = kScalesFirst ? kM : 0u, kScaled = kFirstScaled + (kWide ? kN : 0u);
// Of each row that may be scaled, the second factor's behind the first's, the bits of its largest number; then of what it is multiplied by.
// Behind them whether some row doesn't suit f16. A multiple of 16 bytes, as the tiles may lie right behind it (tests/simulator/warm_up_test.cpp).
shared uint magnitudes[kScaled + 4u];
const uint kSomeUnsuited = kScaled;

float scale_of_first(uint row) { return uintBitsToFloat(magnitudes[row]); }
float scale_of_second(uint row) { return uintBitsToFloat(magnitudes[kFirstScaled + row]); }

void merge_magnitude(uint at, float largest) { atomicMax(magnitudes[at], floatBitsToUint(largest) & 0x7fffffffu); }
void merge_first(uint row, float largest) { merge_magnitude(row, largest); }
void merge_second(uint row, float largest) { merge_magnitude(kFirstScaled + row, largest); }

// Four columns of a row of a tile, of eight such.
void store_quad(uint tile, uint row_of_tile, uint quad, vec4 x) {
  const uint at = tile + row_of_tile * kStride + (quad >> 1);
  const uvec2 halves = to_halves(x);
  tiles[at][(quad & 1u) * 2u] = halves.x;
  tiles[at][(quad & 1u) * 2u + 1u] = halves.y;
}

// Of the bits of a sum, what it is of rows of a tile as they were. By two factors that are alike: both rows may be far beyond f16, or one far above and one
// far below, where one row's factor after the other's would leave f32 on the way.
float unscaled(uint bits, uint row, uint weight_row) {
  int exponent = -first_exponent(row);
  if (!kWide) return uintBitsToFloat(bits) * power_of_two(exponent);
  exponent -= exponent_of(scale_of_second(weight_row));
  return uintBitsToFloat(bits) * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
}

// Group i, the set-th of kAhead; what comes kAhead groups later is loaded into that set, what comes next is stored. With kLoadsLate nothing is under way while products are made. Needs main()'s `end` and `pass`.
#define STEP(i, set)                                                                                                                                             \
  {                                                                                                                                                              \
    const uint tile = (kAhead == 2u ? set : (i) & 1u) * kTile; /* as two groups are an iteration, a constant */                                                  \
    barrier();                                                                                                                                                   \
    if (!kLoadsLate) load_group(min((i) + kAhead, end - 1u), set);                                                                                               \
    MULTIPLY(tile)                                                                                                                                               \
    if (kLoadsLate) load_group(min((i) + kAhead, end - 1u), set);                                                                                                \
    store_group(kTile - tile, (set + 1u) % kAhead, pass == 1u);                                                                                                  \
  }

void main() {
  if (!begin_tile()) return;
  SUMS
  [[dont_unroll]] for (uint pass = 0u; pass < (kScaled == 0u ? 1u : 2u); ++pass) {
    CLEAR_SUMS
    clear_magnitudes();
    // Groups behind the last are the last, and nobody reads them.
    const uint first = first_group(), end = end_group();
    load_group(first, 0u);
    if (kAhead > 1u) load_group(min(first + 1u, end - 1u), 1u);
    if (kAhead > 2u) load_group(min(first + 2u, end - 1u), 2u);
    store_group((kAhead == 2u ? 0u : first & 1u) * kTile, 0u, pass == 1u);
    for (uint group = first; group < end; group += kAhead) {
      STEP(group, 0u)
      if (kAhead > 1u) {
        if (group + 1u >= end) break;
        STEP(group + 1u, 1u)
      }
      if (kAhead > 2u) {
        if (group + 2u >= end) break;
        STEP(group + 2u, 2u)
      }
    }
    if (pass == 1u || kScaled == 0u) break;
    for (uint row = gl_LocalInvocationID.x; row < kScaled; row += kWidth) magnitudes[row] = 0u;
    if (gl_LocalInvocationID.x == 0u) magnitudes[kSomeUnsuited] = 0u;
    barrier();
    merge_magnitudes();
    barrier();
    for (uint row = gl_LocalInvocationID.x; row < kScaled; row += kWidth) {
      const float scale = scale_for(magnitudes[row]);
      const bool counts = row < kFirstScaled ? row_counts(row) : true;
      if (counts && scale != 1.0) atomicOr(magnitudes[kSomeUnsuited], 1u);
      magnitudes[row] = floatBitsToUint(scale);
    }
    barrier();
    if (magnitudes[kSomeUnsuited] == 0u) break;
  }
  FINISH_SUMS
}
