// 32 elements = 2 words of pairs of bits and a word of third bits. A block of 256 has its 16 words of pairs first, then its 8
// of third bits. Value: d scale (q - 4), with scales as in block_q6_k.glsl. The products are exact.
Chunk chunk_q3_k(WeightRow row, uint group) {
  const uint block = 4u * row.quads + (group >> 3) * 24u, third = weight_words[block + 16u + (group & 7u)];
  const vec2 scales = k_signed_scales(row, group);
  return Chunk(uvec4(eight_fields(third), uvec3(0u)), two_words((block >> 1) + (group & 7u)), scales, -4.0 * scales);
}
uint bytes_q3_k(Chunk c, uint i) { return pair_bytes(c.high, i) + (((c.bits.x >> i) & 0x01010101u) << 2); }
vec4 quad_q3_k(Chunk c, uint i) { return unsigned_bytes(bytes_q3_k(c, i)); }
