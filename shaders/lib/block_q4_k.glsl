// 32 elements = 4 words of eight nibbles: byte b of word j has element 8 j + b in its low half, 8 j + 4 + b in its high one.
// Value: d scale q - dmin min, of which 8 groups share four words: f16 d and dmin; the low four bits of 8 scales, of 8 mins;
// their high two bits, the mins' above the scales'. The products are exact.
vec4 unsigned_bytes(uint word) {
  return vec4(float(word & 255u), float((word >> 8) & 255u), float((word >> 16) & 255u), float(word >> 24));
}

void weight_group_q4_k(uint row, uint group, out vec4 w[8]) {
  const uvec4 words = weight_words4[(row * weight_layout.row_words >> 2) + group];
  const uvec4 scales = weight_words4[(weight_layout.scale_offset_words + row * weight_layout.scale_row_words >> 2) + (group >> 3)];
  const uint place = group & 7u;
  const uvec2 low = (scales.yz >> (4u * place)) & 15u, high = (uvec2(scales.w, scales.w >> 16) >> (2u * place)) & 3u;
  const vec2 factors = unpackHalf2x16(scales.x) * vec2(low | (high << 4));
  for (uint i = 0u; i < 4u; ++i) {
    w[2u * i] = unsigned_bytes(words[i] & 0x0f0f0f0fu) * factors.x - factors.y;
    w[2u * i + 1u] = unsigned_bytes((words[i] >> 4) & 0x0f0f0f0fu) * factors.x - factors.y;
  }
}
