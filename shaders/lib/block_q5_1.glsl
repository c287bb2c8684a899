// 32 elements = 4 words of eight nibbles; two words: f16 scale and minimum, fifth bits. Value: scale q + minimum.
float weight_group_q5_1(uint row, uint group, out vec4 w[8]) {
  const uvec2 scales = weight_words2[(scale_row(row) >> 1) + group];
  affine_group(group_nibbles(row, group), scales.y, unpackHalf2x16(scales.x), w);
  return 1.0;
}
