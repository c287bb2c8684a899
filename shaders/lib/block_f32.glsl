// 4 elements = 4 words.
Chunk chunk_f32(WeightRow row, uint chunk) { return chunk_of(chunk_bits(row, chunk)); }
vec4 quad_f32(Chunk c, uint i) { return uintBitsToFloat(c.bits); }
