// 32 elements = 4 words of eight nibbles; a word of f16 scale and minimum. Value: scale q + minimum.
float weight_group_q4_1(uint row, uint group, out vec4 w[8]) {
  affine_group(group_nibbles(row, group), 0u, unpackHalf2x16(weight_words[scale_row(row) + group]), w);
  return 1.0;
}
