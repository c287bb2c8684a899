// 32 elements = 4 words of eight nibbles; two words: f16 scale and minimum, fifth bits. Value: scale q + minimum.
Chunk chunk_q5_1(WeightRow row, uint group) {
  const uvec2 scales = weight_words2[(row.scales >> 1) + group];
  const vec2 affine = unpackHalf2x16(scales.x);
  return Chunk(group_bits(row, group), uvec2(eight_fields(scales.y), 0u), affine.xx, affine.yy);
}
uint bytes_q5_1(Chunk c, uint i) { return fifth_bits(nibble_bytes(c.bits, i), c.high.x, i); }
vec4 quad_q5_1(Chunk c, uint i) { return unsigned_bytes(bytes_q5_1(c, i)); }
