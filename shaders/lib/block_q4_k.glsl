// 32 elements = 4 words of eight nibbles. Value: d scale q - dmin min, whose products are exact.
float weight_group_q4_k(uint row, uint group, out vec4 w[8]) {
  affine_group(group_nibbles(row, group), 0u, k_scale_and_min(row, group), w);
  return 1.0;
}
