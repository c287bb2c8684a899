// 32 elements = 4 words of eight nibbles, E2M1 numbers; a byte of E8M0 scale, four groups a word. The table has the numbers'
// doubles: 0 1 2 3, 4 6 8 12, and their negatives. The scale is half of E8M0's, 2^(byte - 128), which is 0 where f32 has no normal
// number for it (bytes 0 and 1) and NaN for 255.
Chunk chunk_mxfp4(WeightRow row, uint group) {
  const uint exponent = (weight_words[row.scales + (group >> 2)] >> (8u * (group & 3u))) & 255u;
  const float scale = exponent == 255u ? uintBitsToFloat(0x7fc00000u) : uintBitsToFloat(max(exponent, 1u) - 1u << 23);
  return chunk_of(group_bits(row, group), vec2(scale, 0.0));
}
const uvec4 kTableMxfp4 = uvec4(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);
#ifdef RONDO_WEIGHT_BYTES
uint bytes_mxfp4(Chunk c, uint i) { return table_bytes(c.bits, i); }
#endif
vec4 quad_mxfp4(Chunk c, uint i) { return table_quad(c.bits, i, kTableMxfp4); }
