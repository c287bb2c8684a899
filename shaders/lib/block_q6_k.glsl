// 32 elements = 4 words of low nibbles and 2 words of high pairs of bits. A block of 256 has its 32 words of nibbles first, then
// its 16 of pairs. Value: d scale (q - 32), with a signed byte of scale for 16 elements. A block has five words of scales: f16 d,
// the bytes. The products are exact.
Chunk chunk_q6_k(WeightRow row, uint group) {
  const uint block = row.quads + (group >> 3) * 12u;
  const vec2 scales = k_signed_scales(row, group);
  return Chunk(four_words(block + (group & 7u)), two_words(2u * block + 16u + (group & 7u)), scales, -32.0 * scales);
}
uint bytes_q6_k(Chunk c, uint i) { return nibble_bytes(c.bits, i) + (pair_bytes(c.high, i) << 4); }
vec4 quad_q6_k(Chunk c, uint i) { return unsigned_bytes(bytes_q6_k(c, i)); }
