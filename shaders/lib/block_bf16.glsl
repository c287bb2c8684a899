// 8 elements = 4 words of two: the upper halves of f32.
Chunk chunk_bf16(WeightRow row, uint chunk) { return chunk_of(chunk_bits(row, chunk)); }
vec4 quad_bf16(Chunk c, uint i) {
  const uvec2 words = uvec2(c.bits[2u * i], c.bits[2u * i + 1u]), low = words << 16, high = words & 0xffff0000u;
  return uintBitsToFloat(uvec4(low.x, high.x, low.y, high.y));
}
