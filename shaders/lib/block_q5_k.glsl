// 32 elements = 4 words of eight nibbles and a word of fifth bits. A block of 256 has its 32 words of nibbles first, then its 8
// of fifth bits. Value: d scale q - dmin min, whose products are exact.
Chunk chunk_q5_k(WeightRow row, uint chunk) {
  const uint block = 4u * row.quads + (chunk >> 3) * 40u;
  const vec2 affine = k_scale_and_min(row, chunk);
  return Chunk(weight_words4[(block >> 2) + (chunk & 7u)], uvec2(weight_words[block + 32u + (chunk & 7u)], 0u), affine.xx, affine.yy);
}
uint bytes_q5_k(Chunk c, uint i) { return fifth_bits(nibble_bytes(c.bits, i), c.high.x, i); }
vec4 quad_q5_k(Chunk c, uint i) { return unsigned_bytes(bytes_q5_k(c, i)); }
