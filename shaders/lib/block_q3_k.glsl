// 32 elements = 2 words of pairs of bits and a word of third bits. A block of 256 has its 16 words of pairs first, then its 8
// of third bits. Value: d scale (q - 4), with scales as in block_q6_k.glsl. The products are exact.
float weight_group_q3_k(uint row, uint group, out vec4 w[8]) {
  const uint block = quant_row(row) + (group >> 3) * 24u;
  const uvec2 pairs = weight_words2[(block >> 1) + (group & 7u)];
  const uint thirds = weight_words[block + 16u + (group & 7u)], scales = k_scales(row, group);
  const vec2 factors = unpackHalf2x16(weight_words[scales]).x * signed_bytes(k_scale_bytes(scales, group)).xy;
  for (uint i = 0u; i < 8u; ++i) {
    const uint q = ((pairs[i >> 2] >> (2u * (i & 3u))) & 0x03030303u) | (((thirds >> i) & 0x01010101u) << 2);
    w[i] = (unsigned_bytes(q) - 4.0) * factors[i >> 2];
  }
  return 1.0;
}
