// 32 elements = 4 words of eight nibbles and a word of fifth bits. A block of 256 has its 32 words of nibbles first, then its 8
// of fifth bits. Value: d scale q - dmin min, whose products are exact.
float weight_group_q5_k(uint row, uint group, out vec4 w[8]) {
  const uint block = quant_row(row) + (group >> 3) * 40u;
  affine_group(weight_words4[(block >> 2) + (group & 7u)], weight_words[block + 32u + (group & 7u)], k_scale_and_min(row, group), w);
  return 1.0;
}
