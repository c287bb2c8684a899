// 32 elements = 4 words of eight nibbles, places in a table; one f16 scale.
Chunk chunk_iq4_nl(WeightRow row, uint group) { return chunk_of(group_bits(row, group), vec2(group_scale(row, group), 0.0)); }
// -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113
const uvec4 kTableIq4Nl = uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
#ifdef RONDO_WEIGHT_BYTES
uint bytes_iq4_nl(Chunk c, uint i) { return table_bytes(c.bits, i); }
#endif
vec4 quad_iq4_nl(Chunk c, uint i) { return table_quad(c.bits, i, kTableIq4Nl); }
