// 32 elements = 4 words of eight nibbles, value - 8; one f16 scale, returned.
vec4 nibbles(uint word) {
  return vec4(float(word & 15u), float((word >> 4) & 15u), float((word >> 8) & 15u), float((word >> 12) & 15u)) - 8.0;
}

float weight_group_q4_0(uint row, uint group, out vec4 w[8]) {
  const uvec4 words = weight_words4[(row * weight_layout.row_words >> 2) + group];
  for (uint i = 0u; i < 4u; ++i) {
    w[2u * i] = nibbles(words[i]);
    w[2u * i + 1u] = nibbles(words[i] >> 16);
  }
  return group_scale(row, group);
}
