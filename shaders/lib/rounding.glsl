// Activations as bytes, made by whoever makes the activations, for linears with integer dot products (lib/rounded_input.glsl). 16 elements of a tensor
// side by side share a scale of largest magnitude / 127, or 32 two equal ones; where one of them is an infinity or NaN, it is NaN. A tensor of n elements, a multiple of 32,
// has n / 4 words of bytes, and behind them n / 16 words whose upper 20 bits are those of a scale as f32, to nearest, and whose lower 12 are the sum of its bytes.

// Where, behind n elements in f32, the word is that begins with the byte of element i, a multiple of 4, or has its scale.
uint byte_word(uint n, uint i) { return n + (i >> 2); }
uint scale_word_of(uint n, uint i) { return n + (n >> 2) + (i >> 4); }

// In the order of bits infinity is above all numbers, and NaN above it.
uint largest_bits(vec4 x) {
  const uvec4 magnitudes = floatBitsToUint(x) & 0x7fffffffu;
  return max(max(magnitudes.x, magnitudes.y), max(magnitudes.z, magnitudes.w));
}

// The bits of the scale.
uint scale_bits(uint largest) {
  const uint nearest = (floatBitsToUint(uintBitsToFloat(largest) * (1.0 / 127.0)) + 0x800u) & ~0xfffu;
  return largest < 0x7f800000u ? uintBitsToFloat(largest) < 1e-36 ? 0u : nearest : 0x7fc00000u;
}

// What turns a number into one that is to be rounded.
float byte_factor(uint scale) { return scale == 0u || scale > 0x7f800000u ? 0.0 : 1.0 / uintBitsToFloat(scale); }

ivec4 rounded_to_bytes(vec4 x, float factor) { return ivec4(floatBitsToUint(x * factor + 12582912.0)) - 0x4b400000; }  // 1.5 2^23: the last bits of the sum are the nearest integer
int sum_of(ivec4 bytes) { return (bytes.x + bytes.y) + (bytes.z + bytes.w); }
uint packed_bytes(ivec4 bytes) {
  const uvec4 word = uvec4(bytes) & 255u;
  return (word.x | word.y << 8) | (word.z << 16 | word.w << 24);
}

uint scale_word(uint scale, int sum) { return scale | (uint(sum) & 0xfffu); }

#ifdef RONDO_ROUNDS_BY_LANES
// A quad of each lane: its bytes and, alike for 4 lanes side by side, the word of their scale, which `sharing` lanes have in common, 4 or 8. All of them call.
struct RoundedQuad { uint bytes, scale; };
RoundedQuad round_quad(vec4 x, uint sharing) {
  uint largest = largest_bits(x);
  largest = max(largest, subgroupShuffleXor(largest, 1u));
  largest = max(largest, subgroupShuffleXor(largest, 2u));
  if (sharing == 8u) largest = max(largest, subgroupShuffleXor(largest, 4u));
  const uint scale = scale_bits(largest);
  const ivec4 bytes = rounded_to_bytes(x, byte_factor(scale));
  int sum = sum_of(bytes);
  sum += subgroupShuffleXor(sum, 1u);
  sum += subgroupShuffleXor(sum, 2u);
  return RoundedQuad(packed_bytes(bytes), scale_word(scale, sum));
}
#else
// All 16 elements by one invocation.
struct RoundedSixteen { uvec4 bytes; uint scale; };
RoundedSixteen round_sixteen(vec4 x[4]) {
  const uint scale = scale_bits(max(max(largest_bits(x[0]), largest_bits(x[1])), max(largest_bits(x[2]), largest_bits(x[3]))));
  const float factor = byte_factor(scale);
  uvec4 words;
  int sum = 0;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    const ivec4 bytes = rounded_to_bytes(x[i], factor);
    words[i] = packed_bytes(bytes);
    sum += sum_of(bytes);
  }
  return RoundedSixteen(words, scale_word(scale, sum));
}
#endif
