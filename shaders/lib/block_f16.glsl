// 8 elements = 4 words of two.
Chunk chunk_f16(WeightRow row, uint chunk) { return chunk_of(chunk_bits(row, chunk)); }
vec4 quad_f16(Chunk c, uint i) { return vec4(unpackHalf2x16(c.bits[2u * i]), unpackHalf2x16(c.bits[2u * i + 1u])); }
