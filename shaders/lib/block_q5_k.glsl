// 32 elements = 4 words of eight nibbles and a word of fifth bits. A block of 256 has its 32 words of nibbles first, then its 8
// of fifth bits. Value: d scale q - dmin min, whose products are exact.
Chunk chunk_q5_k(WeightRow row, uint group) {
  const uint block = row.quads + (group >> 3) * 10u, fifth = weight_words[4u * block + 32u + (group & 7u)];
  const vec2 affine = k_scale_and_min(row, group);
  return Chunk(four_words(block + (group & 7u)), uvec2(eight_fields(fifth), 0u), affine.xx, affine.yy);
}
uint bytes_q5_k(Chunk c, uint i) { return fifth_bits(nibble_bytes(c.bits, i), c.high.x, i); }
vec4 quad_q5_k(Chunk c, uint i) { return unsigned_bytes(bytes_q5_k(c, i)); }
