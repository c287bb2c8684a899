// 32 elements = 32 words.
float weight_group_f32(uint row, uint group, out vec4 w[8]) {
  const uint at = (row * weight_layout.row_words >> 2) + group * 8u;
  for (uint i = 0u; i < 8u; ++i) w[i] = uintBitsToFloat(weight_words4[at + i]);
  return 1.0;
}
