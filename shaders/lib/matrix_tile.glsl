// A tile of kM x kN products of rows by matrix units (lib/matrix.glsl): 32 columns at a time are rounded to f16 in shared memory, the next kAhead times
// 32 are on their way meanwhile. Sums in f32.
// Rows whose largest magnitude does not suit f16 are multiplied by a power of two: then all is done once more. So bits depend on nothing but the
// two rows of a product.
// Before including: kWidth, kLanes, kAhead (1 to 3: groups of 32 columns that are under way), kRowMatrices, kOutputMatrices, kRowSubgroups, kGlu (of
// each subgroup's matrices half are of gates, half of ups; kOutputs gates come before their ups), kWide (the second factor's rows may not suit f16
// either), and the shapes of lib/matrix.glsl. The includer defines what is declared here.

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

const uint kOutputSubgroups = kWidth / kLanes / kRowSubgroups;
const uint kM = kRowSubgroups * kRowMatrices * kMatrixRows;
const uint kN = kOutputSubgroups * kOutputMatrices * kMatrixColumns;
const uint kOutputs = kN >> kGlu;
const uint kMatrices = kRowMatrices * kOutputMatrices;
const uint kStride = 5u;  // uvec4: 32 halves, and 16 bytes that move the next row to other banks
const uint kTile = (kM + kN) * kStride;
// Two tiles, each with kM rows of the first factor and kN of the second; in the end a matrix of sums of each subgroup, with GLU two.
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

// The first row of the second factor of a subgroup's matrix j.
uint first_of_matrix(uint output_subgroup, uint j) {
  const uint n = kOutputMatrices >> kGlu;  // of gates, or of all
  return (j / n) * kOutputs + (output_subgroup * n + j % n) * kMatrixColumns;
}

// The products of columns k to k + kMatrixDepth.
#define MULTIPLY(k)                                                                                                                                              \
  {                                                                                                                                                              \
    Left a[kRowMatrices];                                                                                                                                        \
    [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {                                                                                                        \
      a[i] = load_left(tiles[tile + (row_subgroup * kRowMatrices + i) * kMatrixRows * kStride + (k) / 8u], MATRIX_BY_ROW, kStride, MATRIX_VISIBLE);               \
    }                                                                                                                                                            \
    [[unroll]] for (uint j = 0u; j < kOutputMatrices; ++j) {                                                                                                     \
      const Right b = load_right(tiles[tile + (kM + first_of_matrix(output_subgroup, j)) * kStride + (k) / 8u], MATRIX_BY_COLUMN, kStride, MATRIX_VISIBLE);       \
      [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) sums[i * kOutputMatrices + j] = multiply_add(a[i], b, sums[i * kOutputMatrices + j]);                   \
    }                                                                                                                                                            \
  }

// Group i, the set-th of kAhead; what comes kAhead groups later is loaded into that set, what comes next is stored.
#define STEP(i, set)                                                                                                                                             \
  {                                                                                                                                                              \
    const uint tile = (kAhead == 2u ? set : (i) & 1u) * kTile; /* as two groups are an iteration, a constant */                                                  \
    barrier();                                                                                                                                                   \
    load_group(min((i) + kAhead, n_groups() - 1u), set);                                                                                                         \
    if (kLanes == 8u) { /* addresses of all columns take as many registers as there are */                                                                       \
      [[dont_unroll]] for (uint k = 0u; k < 32u; k += kMatrixDepth) MULTIPLY(k)                                                                                  \
    } else {                                                                                                                                                     \
      [[unroll]] for (uint k = 0u; k < 32u; k += kMatrixDepth) MULTIPLY(k)                                                                                       \
    }                                                                                                                                                            \
    store_group(kTile - tile, (set + 1u) % kAhead, pass == 1u);                                                                                                  \
  }

// Element e of a subgroup's matrix (i, j), which lies in shared memory.
#define FINISH(i, j, e)                                                                                                                                          \
  {                                                                                                                                                              \
    const uint row = (row_subgroup * kRowMatrices + i) * kMatrixRows + e / kMatrixColumns, column = first_of_matrix(output_subgroup, j) + e % kMatrixColumns;     \
    if (!row_counts(row)) continue;                                                                                                                              \
    finish(row, column, unscaled(tiles[own + e / 4u][e & 3u], row, column), kGlu == 1u ? unscaled(tiles[own + kMatrixQuads + e / 4u][e & 3u], row, kOutputs + column) : 0.0); \
  }

void main() {
  if (!begin_tile()) return;
  const uint row_subgroup = gl_SubgroupID / kOutputSubgroups, output_subgroup = gl_SubgroupID % kOutputSubgroups;

  Sums sums[kMatrices];
  [[dont_unroll]] for (uint pass = 0u; pass < 2u; ++pass) {
    [[unroll]] for (uint i = 0u; i < kMatrices; ++i) sums[i] = NO_SUMS;
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

  const uint kMatrixQuads = kMatrixRows * kMatrixColumns / 4u, own = gl_SubgroupID * (kMatrixQuads << kGlu);
  [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {
    [[unroll]] for (uint j = 0u; j < kOutputMatrices >> kGlu; ++j) {
      barrier();
      store_sums(tiles[own], sums[i * kOutputMatrices + j], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE);
      if (kGlu == 1u) store_sums(tiles[own + kMatrixQuads], sums[i * kOutputMatrices + kOutputMatrices / 2u + j], MATRIX_BY_ROW, kMatrixColumns / 4u, MATRIX_AVAILABLE);
      barrier();
      if (kLanes < 32u) {  // unrolled it is most of the kernel's code
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < kMatrixRows * kMatrixColumns; e += kLanes) FINISH(i, j, e)
      } else {  // of a loop in these Mesa's compiler for NVIDIA leaves the sums in memory
        [[unroll]] for (uint e = gl_SubgroupInvocationID; e < kMatrixRows * kMatrixColumns; e += kLanes) FINISH(i, j, e)
      }
    }
  }
}
