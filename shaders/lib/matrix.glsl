// Matrices that a subgroup holds together and multiplies by an instruction (SPV_KHR_cooperative_matrix): kMatrixRows x kMatrixDepth
// by kMatrixDepth x kMatrixColumns of f16, sums in f32. What is multiplied lies in shared memory, in rows of uvec4.
// Before including: the three specialization constants, with constant_ids 11, 12 and 13, or with MATRIX_IDS_FROM_8 from there. GLSL's own
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

// Zeros, as a product: sums in a loop that begin with a constant are taken apart by Mesa's compilers, which then move each element.
#define NO_SUMS multiply_add(left_of(float16_t(0.0)), right_of(float16_t(0.0)), sums_of(0.0))

// Intel's devices, whose registers take halves where they are to lie.
#define RONDO_PACKS_HALVES (kLanes <= 16u)
#include "lib/halves.glsl"
