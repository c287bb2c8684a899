// 32 elements = 4 words of eight nibbles; a word of f16 scale and minimum. Value: scale q + minimum.
Chunk chunk_q4_1(WeightRow row, uint group) { return chunk_of(group_bits(row, group), unpackHalf2x16(weight_words[row.scales + group])); }
uint bytes_q4_1(Chunk c, uint i) { return nibble_bytes(c.bits, i); }
vec4 quad_q4_1(Chunk c, uint i) { return unsigned_bytes(bytes_q4_1(c, i)); }
