// A tile of kM x kN products of rows that are rounded to f16 in shared memory, 32 columns at a time, the next kAhead times 32 on their way
// meanwhile. Sums in f32.
// Rows whose largest magnitude does not suit f16 are multiplied by a power of two: then all is done once more. So bits depend on nothing but the
// two rows of a product.
// Before including: kM, kN, kWidth, kAhead (1 to 3: groups of 32 columns that are under way), kGlu (of the second factor's rows kOutputs are of gates,
// then come as many of ups), kWide (the second factor's rows may not suit f16 either), lib/halves.glsl, and how products are made: SUMS declares the
// sums, CLEAR_SUMS, MULTIPLY(tile) and FINISH_SUMS. The includer defines what is declared here.

// Whether this workgroup has something to do; the first that is called.
bool begin_tile();
// How many times 32 columns there are.
uint n_groups();
// What this invocation brings of group i of 32 columns: from memory into registers, of which there are kAhead sets, and from these to where a
// tile begins.
void load_group(uint i, uint set);
void store_group(uint tile, uint set, bool scaled);
// The magnitudes of what it has stored are 0; are merged into the tile's.
void clear_magnitudes();
void merge_magnitudes();
// Whether a row of the tile's first factor decides whether all is done again.
bool row_counts(uint row);
// With kGlu sum is the gate.
void finish(uint row, uint column, float sum, float up);

const uint kStride = 5u;  // uvec4: 32 halves, and 16 bytes that move the next row to other banks
const uint kTile = (kM + kN) * kStride;
// Two tiles, each with kM rows of the first factor and kN of the second; in the end of matrix_tile.glsl a matrix of sums of each subgroup, with GLU two.
shared uvec4 tiles[2u * kTile];
// Bits of the largest number of each row, with kWide of the second factor's as well; then of what the row is multiplied by.
shared uint magnitudes[kM + kN];
shared uint some_unsuited;

// Rows whose largest number is beyond f16's don't suit it, and those below 2^-6, of which much may lie below 2^-14, which devices may
// take for 0. Of rows with an infinity or NaN the result is one as well.
bool suits_f16(uint magnitude) { return magnitude == 0u || (magnitude >= 0x3c800000u && magnitude < 0x477fe000u) || magnitude >= 0x7f800000u; }

float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }
// A row's largest number becomes 256 or more where it does not suit f16.
float scale_for(uint magnitude) { return suits_f16(magnitude) ? 1.0 : power_of_two(clamp(135 - int(magnitude >> 23), -126, 126)); }
// Of a row of a tile, the second factor's behind the first's: what it is multiplied by, a power of two, and the exponent of that.
float scale_of(uint row_of_tile) { return uintBitsToFloat(magnitudes[row_of_tile]); }
int scale_exponent(uint row_of_tile) { return int(magnitudes[row_of_tile] >> 23) - 127; }

// A NaN, and with it what came before, may get lost: of such a row the result is one, however it is scaled.
float larger(float largest, vec4 x) { return max(max(largest, max(abs(x.x), abs(x.y))), max(abs(x.z), abs(x.w))); }
void merge_magnitude(uint row_of_tile, float largest) { atomicMax(magnitudes[row_of_tile], floatBitsToUint(largest) & 0x7fffffffu); }

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
  int exponent = -scale_exponent(row);
  if (!kWide) return uintBitsToFloat(bits) * power_of_two(exponent);
  exponent -= scale_exponent(kM + weight_row);
  return uintBitsToFloat(bits) * power_of_two(exponent / 2) * power_of_two(exponent - exponent / 2);
}

// Group i, the set-th of kAhead; what comes kAhead groups later is loaded into that set, what comes next is stored.
#define STEP(i, set)                                                                                                                                             \
  {                                                                                                                                                              \
    const uint tile = (kAhead == 2u ? set : (i) & 1u) * kTile; /* as two groups are an iteration, a constant */                                                  \
    barrier();                                                                                                                                                   \
    load_group(min((i) + kAhead, n_groups() - 1u), set);                                                                                                         \
    MULTIPLY(tile)                                                                                                                                               \
    store_group(kTile - tile, (set + 1u) % kAhead, pass == 1u);                                                                                                  \
  }

void main() {
  if (!begin_tile()) return;
  SUMS
  [[dont_unroll]] for (uint pass = 0u; pass < 2u; ++pass) {
    CLEAR_SUMS
    clear_magnitudes();
    // Groups behind the last are the last, and nobody reads them.
    load_group(0u, 0u);
    if (kAhead > 1u) load_group(min(1u, n_groups() - 1u), 1u);
    if (kAhead > 2u) load_group(min(2u, n_groups() - 1u), 2u);
    store_group(0u, 0u, pass == 1u);
    for (uint group = 0u; group < n_groups(); group += kAhead) {
      STEP(group, 0u)
      if (kAhead > 1u) {
        if (group + 1u >= n_groups()) break;
        STEP(group + 1u, 1u)
      }
      if (kAhead > 2u) {
        if (group + 2u >= n_groups()) break;
        STEP(group + 2u, 2u)
      }
    }
    if (pass == 1u) break;
    const uint n_rows = kWide ? kM + kN : kM;
    for (uint row = gl_LocalInvocationID.x; row < n_rows; row += kWidth) magnitudes[row] = 0u;
    if (gl_LocalInvocationID.x == 0u) some_unsuited = 0u;
    barrier();
    merge_magnitudes();
    barrier();
    for (uint row = gl_LocalInvocationID.x; row < n_rows; row += kWidth) {
      const float scale = scale_for(magnitudes[row]);
      const bool counts = row < kM ? row_counts(row) : true;
      if (counts && scale != 1.0) atomicOr(some_unsuited, 1u);
      magnitudes[row] = floatBitsToUint(scale);
    }
    barrier();
    if (some_unsuited == 0u) break;
  }
  FINISH_SUMS
}
