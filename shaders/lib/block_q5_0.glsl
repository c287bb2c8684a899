// 32 elements = 4 words of eight nibbles. Two groups share three words of scales: f16 scales, then the fifth bits of each.
// Value: scale (q - kCentre).
Chunk chunk_q5_0(WeightRow row, uint group) {
  const uint scales = row.scales + (group >> 1) * 3u;
  const float scale = unpackHalf2x16(weight_words[scales])[group & 1u];
  return Chunk(group_bits(row, group), uvec2(eight_fields(weight_words[scales + 1u + (group & 1u)]), 0u), vec2(scale), vec2(0.0));
}
uint bytes_q5_0(Chunk c, uint i) { return fifth_bits(nibble_bytes(c.bits, i), c.high.x, i); }
vec4 quad_q5_0(Chunk c, uint i) { return unsigned_bytes(bytes_q5_0(c, i)); }
