// 32 elements = 4 words of eight nibbles, places in a table; one f16 scale, returned.
float weight_group_iq4_nl(uint row, uint group, out vec4 w[8]) {
  // -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113
  table_group(group_nibbles(row, group), uvec4(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u), w);
  return group_scale(row, group);
}
