// 32 elements = 2 words of pairs of bits. A block of 256 has five words of scales: f16 d and dmin, then a byte for 16 elements
// each, the scale in its low half and the minimum in its high one. Value: d scale q - dmin min. The products are exact.
float weight_group_q2_k(uint row, uint group, out vec4 w[8]) {
  const uvec2 pairs = weight_words2[(quant_row(row) >> 1) + group];
  const uint scales = k_scales(row, group), bytes = k_scale_bytes(scales, group);
  const vec2 d = unpackHalf2x16(weight_words[scales]);
  for (uint i = 0u; i < 2u; ++i) {
    const uint packed = bytes >> (8u * i);
    const float scale = d.x * float(packed & 15u), minimum = d.y * float((packed >> 4) & 15u);
    for (uint j = 0u; j < 4u; ++j) w[4u * i + j] = unsigned_bytes((pairs[i] >> (2u * j)) & 0x03030303u) * scale - minimum;
  }
  return 1.0;
}
