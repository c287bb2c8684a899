// Matrices that a subgroup holds together and multiplies by an instruction (SPV_KHR_cooperative_matrix): kMatrixRows x kMatrixDepth
// by kMatrixDepth x kMatrixColumns of f16, sums in f32. What is multiplied lies in shared memory, in rows of uvec4.
// Before including: kLanes, kColumnsInLanes, and the three specialization constants, with constant_ids 11, 12 and 13, or with MATRIX_IDS_FROM_8 from there. GLSL's own
// extension takes newer compilers; literals become what the instruction needs by cmake/matrix_types.cpp: bits, scope (3: subgroup), constant_ids,
// use.
#define MATRIX(bits, rows, columns, use) \
  spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022, 9, 5345], id = 4456, bits, 3, rows, columns, use)
#ifdef MATRIX_IDS_FROM_8
#define Left MATRIX(16, 8, 10, 0)
#define Right MATRIX(16, 10, 9, 1)
#define Sums MATRIX(32, 8, 9, 2)
#else
#define Left MATRIX(16, 11, 13, 0)
#define Right MATRIX(16, 13, 12, 1)
#define Sums MATRIX(32, 11, 12, 2)
#endif

// Memory operands of accesses to shared memory, whose scope follows: visible, or available, and not private.
#define MATRIX_VISIBLE 0x30, 2u
#define MATRIX_AVAILABLE 0x28, 2u
#define MATRIX_BY_ROW 0u
#define MATRIX_BY_COLUMN 1u
// stride: uvec4 from row to row, or from column to column.
spirv_instruction(id = 4457) Left load_left(spirv_by_reference uvec4 first, uint order, uint stride, spirv_literal int operands, uint scope);
spirv_instruction(id = 4457) Right load_right(spirv_by_reference uvec4 first, uint order, uint stride, spirv_literal int operands, uint scope);
spirv_instruction(id = 4457) Sums load_sums(spirv_by_reference uvec4 first, uint order, uint stride, spirv_literal int operands, uint scope);
spirv_instruction(id = 4458) void store_sums(spirv_by_reference uvec4 first, Sums sums, uint order, uint stride, spirv_literal int operands, uint scope);
spirv_instruction(id = 4459) Sums multiply_add(Left a, Right b, Sums c);
spirv_instruction(id = 133) Sums multiply_elements(Sums a, Sums b);
spirv_instruction(id = 80) Sums sums_of(float value);
spirv_instruction(id = 80) Left left_of(float16_t value);
spirv_instruction(id = 80) Right right_of(float16_t value);

// Intel's devices, whose registers take halves where they are to lie; and CPU drivers of as many lanes, which cut off either way.
const bool kFewLanes = kLanes <= 16u;

// load_right() by columns of 16 halves, from `tiles` at `first` on. Where lanes have columns (kColumnsInLanes: lane n has element k of column n
// as its k-th) each loads its own by two vectors; runtime/quirks.cpp says for whom. Others' modules have no insertions (runtime/kernel.cpp).
spirv_instruction(id = 82) Right with_element(float16_t value, Right matrix, spirv_literal int element);
#define WITH_PAIR(matrix, word, first, second)                      \
  matrix = with_element(unpackFloat2x16(word).x, matrix, first);    \
  matrix = with_element(unpackFloat2x16(word).y, matrix, second);
#define LOAD_RIGHT(matrix, first, stride)                                                                                                  \
  Right matrix;                                                                                                                            \
  if (kColumnsInLanes == 1u) {                                                                                                             \
    const uint column_at = (first) + gl_SubgroupInvocationID * (stride);                                                                   \
    const uvec4 low = tiles[column_at], high = tiles[column_at + 1u];                                                                      \
    matrix = right_of(float16_t(0.0));                                                                                                     \
    WITH_PAIR(matrix, low.x, 0, 1) WITH_PAIR(matrix, low.y, 2, 3) WITH_PAIR(matrix, low.z, 4, 5) WITH_PAIR(matrix, low.w, 6, 7)            \
    WITH_PAIR(matrix, high.x, 8, 9) WITH_PAIR(matrix, high.y, 10, 11) WITH_PAIR(matrix, high.z, 12, 13) WITH_PAIR(matrix, high.w, 14, 15)  \
  } else {                                                                                                                                 \
    matrix = load_right(tiles[first], MATRIX_BY_COLUMN, stride, MATRIX_VISIBLE);                                                           \
  }

// Where lanes have columns, they have the first factor by pairs: of eight rows of 16 halves lane n has pair n % 8 of rows n / 8, n / 8 + kLanes / 8 and so on, one after the
// other. Such a matrix may lie turned over, pair behind pair, so that each lane loads its own by a vector or two (kTurned). Four pairs of eight rows are eight uvec4, or kFourPairs, whose 16
// bytes more move the next four to other banks. `zero` is one, and may be one that compilers don't know, which keep no lane's place in registers then.
const bool kTurned = kColumnsInLanes == 1u && kMatrixRows == 8u && kMatrixDepth == 16u && kFewLanes;
const uint kFourPairs = 9u;
// Where the word of a row is among the eight of a pair.
uint place_in_pair(uint row) { return kLanes == 16u ? row % 2u * 4u + row / 2u : row; }
spirv_instruction(id = 82) Left with_left_element(float16_t value, Left matrix, spirv_literal int element);
#define WITH_LEFT_PAIR(matrix, word, first, second)                     \
  matrix = with_left_element(unpackFloat2x16(word).x, matrix, first);   \
  matrix = with_left_element(unpackFloat2x16(word).y, matrix, second);
#define LOAD_TURNED(matrix, first, four_pairs, zero)                                                                                                             \
  {                                                                                                                                                              \
    const uint lane = gl_SubgroupInvocationID + (zero), pair_at = (first) + lane % 8u / 4u * (four_pairs) + lane % 4u * 2u + lane / 8u;                          \
    const uvec4 low = tiles[pair_at];                                                                                                                            \
    matrix = left_of(float16_t(0.0));                                                                                                                            \
    WITH_LEFT_PAIR(matrix, low.x, 0, 1) WITH_LEFT_PAIR(matrix, low.y, 2, 3) WITH_LEFT_PAIR(matrix, low.z, 4, 5) WITH_LEFT_PAIR(matrix, low.w, 6, 7)              \
    if (kLanes == 8u) {                                                                                                                                          \
      const uvec4 high = tiles[pair_at + 1u];                                                                                                                    \
      WITH_LEFT_PAIR(matrix, high.x, 8, 9) WITH_LEFT_PAIR(matrix, high.y, 10, 11) WITH_LEFT_PAIR(matrix, high.z, 12, 13) WITH_LEFT_PAIR(matrix, high.w, 14, 15)  \
    }                                                                                                                                                            \
  }

// Zeros, as a product: sums in a loop that begin with a constant are taken apart by Mesa's compilers, which then move each element.
#define NO_SUMS multiply_add(left_of(float16_t(0.0)), right_of(float16_t(0.0)), sums_of(0.0))

#define RONDO_PACKS_HALVES kFewLanes
#include "lib/halves.glsl"
