// 16 elements = 4 words of four signed bytes; one f16 scale for two such chunks.
Chunk chunk_q8_0(WeightRow row, uint chunk) { return chunk_of(chunk_bits(row, chunk), vec2(group_scale(row, chunk >> 1), 0.0)); }
uint bytes_q8_0(Chunk c, uint i) { return c.bits[i]; }
vec4 quad_q8_0(Chunk c, uint i) { return signed_bytes(c.bits[i]); }
