// 32 elements = 4 words of low nibbles and 2 words of high pairs of bits. A block of 256 has its 32 words of nibbles first, then
// its 16 of pairs.
// Value: d scale (q - 32), with a signed byte of scale for 16 elements. A block has five words of scales: f16 d, the bytes.
// The products are exact.
float weight_group_q6_k(uint row, uint group, out vec4 w[8]) {
  const uint block = (quant_row(row) >> 2) + (group >> 3) * 12u;
  const uvec4 low = weight_words4[block + (group & 7u)];
  const uvec2 high = weight_words2[2u * block + 16u + (group & 7u)];
  const uint scales = k_scales(row, group);
  const vec2 factors = unpackHalf2x16(weight_words[scales]).x * signed_bytes(k_scale_bytes(scales, group)).xy;
  for (uint i = 0u; i < 4u; ++i) {
    const uint pairs = high[i >> 1] >> (4u * (i & 1u));
    const float factor = factors[i >> 1];
    w[2u * i] = (unsigned_bytes((low[i] & 0x0f0f0f0fu) | ((pairs & 0x03030303u) << 4)) - 32.0) * factor;
    w[2u * i + 1u] = (unsigned_bytes(((low[i] >> 4) & 0x0f0f0f0fu) | ((pairs & 0x0c0c0c0cu) << 2)) - 32.0) * factor;
  }
  return 1.0;
}
