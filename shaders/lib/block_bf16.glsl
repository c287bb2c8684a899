// 32 elements = 16 words of two: the upper halves of f32.
float weight_group_bf16(uint row, uint group, out vec4 w[8]) {
  const uint at = (quant_row(row) >> 2) + group * 4u;
  for (uint i = 0u; i < 4u; ++i) {
    const uvec4 words = weight_words4[at + i], low = words << 16, high = words & 0xffff0000u;
    w[2u * i] = uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y));
    w[2u * i + 1u] = uintBitsToFloat(uvec4(low.z, high.z, low.w, high.w));
  }
  return 1.0;
}
