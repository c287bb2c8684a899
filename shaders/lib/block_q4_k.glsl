// 32 elements = 4 words of eight nibbles. Value: d scale q - dmin min, whose products are exact.
Chunk chunk_q4_k(WeightRow row, uint group) { return chunk_of(group_bits(row, group), k_scale_and_min(row, group)); }
uint bytes_q4_k(Chunk c, uint i) { return nibble_bytes(c.bits, i); }
vec4 quad_q4_k(Chunk c, uint i) { return unsigned_bytes(bytes_q4_k(c, i)); }
