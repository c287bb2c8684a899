// 32 elements = 4 words of eight E2M1 numbers; a byte of E8M0 scale, four groups a word. The table has the numbers' doubles:
// 0 1 2 3, 4 6 8 12, and their negatives. Returns half the scale, 2^(byte - 128), which is 0 where f32 has no normal number for
// it (bytes 0 and 1) and NaN for 255.
float weight_group_mxfp4(uint row, uint group, out vec4 w[8]) {
  table_group(group_nibbles(row, group), uvec4(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu), w);
  const uint exponent = (weight_words[scale_row(row) + (group >> 2)] >> (8u * (group & 3u))) & 255u;
  return exponent == 255u ? uintBitsToFloat(0x7fc00000u) : uintBitsToFloat(max(exponent, 1u) - 1u << 23);
}
