// 32 elements = 2 words of pairs of bits. A block of 256 has five words of scales: f16 d and dmin, then a byte for 16 elements
// each, the scale in its low half and the minimum in its high one. Value: d scale q - dmin min. The products are exact.
Chunk chunk_q2_k(WeightRow row, uint group) {
  const uint scales = k_scales(row, group), bytes = k_scale_bytes(scales, group);
  const vec2 d = unpackHalf2x16(weight_words[scales]);
  const uvec2 packed = bytes_of_halves(bytes);
  return Chunk(uvec4(0u), two_words(2u * row.quads + group), d.x * vec2(packed & 15u), -d.y * vec2((packed >> 4) & 15u));
}
uint bytes_q2_k(Chunk c, uint i) { return pair_bytes(c.high, i); }
vec4 quad_q2_k(Chunk c, uint i) { return unsigned_bytes(bytes_q2_k(c, i)); }
