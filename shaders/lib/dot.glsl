// Integer dot products, and activations rounded to bytes for them: those that share a scale have that of their largest magnitude / 127.
// Before including: GL_EXT_spirv_intrinsics, GL_KHR_shader_subgroup_shuffle.

// The sum of the products of four signed bytes: OpSDot of DotProductInput4x8BitPacked, which glslang 12 has no other name for.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);

struct Rounding {
  float factor;  // to a number
  float scale;   // to a byte; NaN where there is an infinity or NaN
};

// In the order of bits infinity is above all numbers, and NaN above it.
uint largest_bits(vec4 x) {
  const uvec4 magnitudes = floatBitsToUint(x) & 0x7fffffffu;
  return max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
}

// Of lanes side by side, 4 or 8, that share a scale. All lanes of the subgroup call. No loops, which older compilers leave as they are.
Rounding rounding_of(uint largest, uint lanes) {
  largest = max(largest, subgroupShuffleXor(largest, 1u));
  largest = max(largest, subgroupShuffleXor(largest, 2u));
  if (lanes == 8u) largest = max(largest, subgroupShuffleXor(largest, 4u));
  const float most = uintBitsToFloat(largest);
  return Rounding(mix(127.0 / most, 0.0, most < 1e-36), mix(uintBitsToFloat(0x7fc00000u), most * (1.0 / 127.0), largest < 0x7f800000u));
}

int sum_of_lanes(int sum, uint lanes) {
  sum += subgroupShuffleXor(sum, 1u);
  sum += subgroupShuffleXor(sum, 2u);
  if (lanes == 8u) sum += subgroupShuffleXor(sum, 4u);
  return sum;
}

uint rounded_bytes(vec4 x, Rounding rounding) {
  const uvec4 rounded = floatBitsToUint(x * rounding.factor + 12582912.0) & 255u;  // 1.5 2^23: the last bits of the sum are the nearest integer
  return (rounded.x | rounded.y << 8) | (rounded.z << 16 | rounded.w << 24);
}
