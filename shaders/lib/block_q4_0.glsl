// 32 elements = 4 words of eight nibbles; one f16 scale. Value: scale (q - kCentre).
Chunk chunk_q4_0(WeightRow row, uint group) { return chunk_of(group_bits(row, group), vec2(group_scale(row, group), 0.0)); }
uint bytes_q4_0(Chunk c, uint i) { return nibble_bytes(c.bits, i); }
vec4 quad_q4_0(Chunk c, uint i) { return unsigned_bytes(bytes_q4_0(c, i)); }
