// 32 elements = 8 words of four signed bytes; one f16 scale, returned.
float weight_group_q8_0(uint row, uint group, out vec4 w[8]) {
  const uint at = (row * weight_layout.row_words >> 2) + group * 2u;
  for (uint i = 0u; i < 2u; ++i) {
    const uvec4 words = weight_words4[at + i];
    w[4u * i] = signed_bytes(words.x);
    w[4u * i + 1u] = signed_bytes(words.y);
    w[4u * i + 2u] = signed_bytes(words.z);
    w[4u * i + 3u] = signed_bytes(words.w);
  }
  return group_scale(row, group);
}
