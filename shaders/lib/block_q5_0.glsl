// 32 elements = 4 words of eight nibbles. Two groups share three words of scales: f16 scales, then the fifth bits of each.
// Value: q - 16; returns the scale.
float weight_group_q5_0(uint row, uint group, out vec4 w[8]) {
  const uint scales = scale_row(row) + (group >> 1) * 3u;
  affine_group(group_nibbles(row, group), weight_words[scales + 1u + (group & 1u)], vec2(1.0, -16.0), w);
  return unpackHalf2x16(weight_words[scales])[group & 1u];
}
