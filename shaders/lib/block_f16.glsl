// 32 elements = 16 words of two.
float weight_group_f16(uint row, uint group, out vec4 w[8]) {
  const uint at = (row * weight_layout.row_words >> 2) + group * 4u;
  for (uint i = 0u; i < 4u; ++i) {
    const uvec4 words = weight_words4[at + i];
    w[2u * i] = vec4(unpackHalf2x16(words.x), unpackHalf2x16(words.y));
    w[2u * i + 1u] = vec4(unpackHalf2x16(words.z), unpackHalf2x16(words.w));
  }
  return 1.0;
}
