// The activations of linears with integer dot products: bytes, scales and sums as lib/rounding.glsl has them, of rows of whole groups of 32 columns. Needs
// p of linear.params.h and lib/linear_experts.glsl. Before including: GL_EXT_spirv_intrinsics.
layout(std430, set = 0, binding = 1) readonly buffer RoundedWords { uint rounded_words[]; };
layout(std430, set = 0, binding = 1) readonly buffer RoundedWords2 { uvec2 rounded_words2[]; };
layout(std430, set = 0, binding = 1) readonly buffer RoundedWords4 { uvec4 rounded_words4[]; };

// The sum of the products of four signed bytes: OpSDot of DotProductInput4x8BitPacked, which glslang 12 has no other name for.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);

// The row of the input that a row of the output is of.
uint input_row(uint row) { return kExperts == 1u && p.input_choice_stride == 0u ? row / p.chosen : row; }

// A group of 32 columns of a row of the input: in order of rows, as whoever makes the input leaves it, or of columns, as quantize.comp does for tiles.
uint group_in_rows(uint row, uint group) { return row * p.groups + group; }
uint group_in_columns(uint row, uint group) { return group * (kExperts == 1u && p.input_choice_stride == 0u ? p.rows / p.chosen : p.rows) + row; }

// 16 columns, half of a group, and the word of their scale; those of both halves of a group.
uvec4 input_bytes(uint half_of_group) { return rounded_words4[(p.input_offset >> 2) + half_of_group]; }
uint input_scale_of(uint half_of_group) { return rounded_words[p.input_stride + half_of_group]; }
uvec2 input_scales_of(uint group) { return rounded_words2[(p.input_stride >> 1) + group]; }

float scale_of(uint word) { return uintBitsToFloat(word & ~0xfffu); }
int sum_of_bytes(uint word) { return bitfieldExtract(int(word), 0, 12); }
