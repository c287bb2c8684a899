// What the weight types share. Quants of fewer than 8 bits lie so that one shift and one mask bring four neighbours into the
// four bytes of a word: with fields of b bits, element e of a word is at bit 8 (e % 4) + b (e / 4).
vec4 unsigned_bytes(uint word) {
  return vec4(float(word & 255u), float((word >> 8) & 255u), float((word >> 16) & 255u), float(word >> 24));
}

vec4 signed_bytes(uint word) {
  const int bits = int(word);
  return vec4(float((bits << 24) >> 24), float((bits << 16) >> 24), float((bits << 8) >> 24), float(bits >> 24));
}

uint quant_row(uint row) { return row * weight_layout.row_words; }
uint scale_row(uint row) { return weight_layout.scale_offset_words + row * weight_layout.scale_row_words; }

// The scale of a group, where they are f16 numbers, two a word.
float group_scale(uint row, uint group) {
  const vec2 scales = unpackHalf2x16(weight_words[scale_row(row) + (group >> 1)]);
  return (group & 1u) == 0u ? scales.x : scales.y;
}

// 32 elements of nibbles and, where `high` is not 0, of fifth bits: q factor + addend.
void affine_group(uvec4 low, uint high, vec2 affine, out vec4 w[8]) {
  for (uint i = 0u; i < 4u; ++i) {
    const uint fifth = high >> (2u * i);
    w[2u * i] = unsigned_bytes((low[i] & 0x0f0f0f0fu) | ((fifth & 0x01010101u) << 4)) * affine.x + affine.y;
    w[2u * i + 1u] = unsigned_bytes(((low[i] >> 4) & 0x0f0f0f0fu) | ((fifth & 0x02020202u) << 3)) * affine.x + affine.y;
  }
}

// Of a row of nibbles of which each group has its scales, and of nothing else.
uvec4 group_nibbles(uint row, uint group) { return weight_words4[(quant_row(row) >> 2) + group]; }

// The values that 32 nibbles stand for: 16 signed bytes.
void table_group(uvec4 low, uvec4 table, out vec4 w[8]) {
  for (uint i = 0u; i < 8u; ++i) {
    const uint word = low[i >> 1] >> (4u * (i & 1u));
    const uvec4 places = uvec4(word, word >> 8, word >> 16, word >> 24);
    const bvec4 odd = notEqual(places & 4u, uvec4(0u));
    const uvec4 chosen = mix(mix(uvec4(table.x), uvec4(table.y), odd), mix(uvec4(table.z), uvec4(table.w), odd), notEqual(places & 8u, uvec4(0u)));
    w[i] = vec4(ivec4(chosen << (24u - 8u * (places & 3u))) >> 24);
  }
}

// Scale and negative minimum of a group of 32, for q4_K and q5_K: 8 groups share four words, which are f16 d and dmin, the low
// four bits of 8 scales, of 8 mins, and their high two bits, the mins' above the scales'.
vec2 k_scale_and_min(uint row, uint group) {
  const uvec4 scales = weight_words4[(scale_row(row) >> 2) + (group >> 3)];
  const uint place = group & 7u;
  const uvec2 low = (scales.yz >> (4u * place)) & 15u, high = (uvec2(scales.w, scales.w >> 16) >> (2u * place)) & 3u;
  return unpackHalf2x16(scales.x) * vec2(1.0, -1.0) * vec2(low | (high << 4));
}

// The first of the five words of scales of a group's block, for q2_K, q3_K and q6_K; the others are bytes for 16 elements each.
uint k_scales(uint row, uint group) { return scale_row(row) + (group >> 3) * 5u; }
// The two bytes of a group, in the low half.
uint k_scale_bytes(uint scales, uint group) { return weight_words[scales + 1u + ((group >> 1) & 3u)] >> (16u * (group & 1u)); }
