// What the weight types share. Quants of fewer than 8 bits lie so that one shift and one mask bring four neighbours into the
// four bytes of a word: with fields of b bits, element e of a word is at bit 8 (e % 4) + b (e / 4).

// As many elements of a row as 16 bytes of it have, of types with fewer than 4 bits a group of 32: what an invocation loads at once.
struct Chunk {
  uvec4 bits;
  uvec2 high;     // bits of quants that lie apart
  vec2 scale;     // of the chunk's first half and of its second; floats have none
  vec2 addend;    // to each scaled quant of the halves
};

Chunk chunk_of(uvec4 bits) { return Chunk(bits, uvec2(0u), vec2(1.0), vec2(0.0)); }
Chunk chunk_of(uvec4 bits, vec2 affine) { return Chunk(bits, uvec2(0u), affine.xx, affine.yy); }

vec4 unsigned_bytes(uint word) {
  return vec4(float(word & 255u), float((word >> 8) & 255u), float((word >> 16) & 255u), float(word >> 24));
}

vec4 signed_bytes(uint word) {
  const int bits = int(word);
  return vec4(float((bits << 24) >> 24), float((bits << 16) >> 24), float((bits << 8) >> 24), float(bits >> 24));
}

// Where a row has its quants, in fours of words, and its scales, in words.
struct WeightRow { uint quads, scales; };
WeightRow row_at(uint row) { return WeightRow(row * weight_layout.row_words >> 2, weight_layout.scale_offset_words + row * weight_layout.scale_row_words); }

// With RONDO_HALF_CHUNKS, for tiles that invocations bring 16 elements at a time (load_sixteen() of lib/weight.glsl), what is loaded of a chunk of 32 is the half that half_of_chunk
// says, in the place of the first. Else the same functions give whole chunks.
#ifdef RONDO_HALF_CHUNKS
uint half_of_chunk;
uvec4 four_words(uint quad) { return uvec4(weight_words2[2u * quad + half_of_chunk], 0u, 0u); }
uvec2 two_words(uint pair) { return uvec2(weight_words[2u * pair + half_of_chunk], 0u); }
uint eight_fields(uint word) { return word >> (4u * half_of_chunk); }
uint byte_of_half(uint bytes) { return bytes >> (8u * half_of_chunk); }
vec2 signed_bytes_of_halves(uint bytes) { return signed_bytes(byte_of_half(bytes)).xx; }
uvec2 bytes_of_halves(uint bytes) { return uvec2(byte_of_half(bytes)); }
#else
uvec4 four_words(uint quad) { return weight_words4[quad]; }
uvec2 two_words(uint pair) { return weight_words2[pair]; }
uint eight_fields(uint word) { return word; }
vec2 signed_bytes_of_halves(uint bytes) { return signed_bytes(bytes).xy; }
uvec2 bytes_of_halves(uint bytes) { return uvec2(bytes, bytes >> 8); }
#endif

// Of a row that has 16 bytes for each chunk, and nothing else; for 32 elements.
uvec4 chunk_bits(WeightRow row, uint chunk) { return weight_words4[row.quads + chunk]; }
uvec4 group_bits(WeightRow row, uint group) { return four_words(row.quads + group); }

// The scale of a group of 32, where they are f16 numbers, two a word.
float group_scale(WeightRow row, uint group) {
  return unpackHalf2x16(weight_words[row.scales + (group >> 1)] >> (16u * (group & 1u))).x;
}

// The quants of the i-th four of 32 elements, a byte each, from nibbles and from pairs of bits.
uint nibble_bytes(uvec4 nibbles, uint i) { return (nibbles[i >> 1] >> (4u * (i & 1u))) & 0x0f0f0f0fu; }
uint pair_bytes(uvec2 pairs, uint i) { return (pairs[i >> 2] >> (2u * (i & 3u))) & 0x03030303u; }
// Adds the fifth bits of the same elements. By +, not |, which compilers take apart again where the bytes are.
uint fifth_bits(uint bytes, uint fifth, uint i) { return bytes + (((fifth >> i) & 0x01010101u) << 4); }

// The values that four nibbles stand for, places in a table of 16 signed bytes. Kernels that define RONDO_SHARED_TABLE have it as
// floats in shared memory, once fill_table() of lib/weight.glsl was called: a third of the instructions. With RONDO_WEIGHT_BYTES, for
// products of bytes, it holds the bytes of all pairs.
#if defined(RONDO_SHARED_TABLE) && defined(RONDO_WEIGHT_BYTES)
shared uint table_pairs[256];  // of two places, the second in the higher half of the byte
uint table_bytes(uvec4 nibbles, uint i) {
  const uint places = nibble_bytes(nibbles, i), pairs = places | places >> 4;
  return table_pairs[pairs & 255u] + (table_pairs[(pairs >> 16) & 255u] << 16);
}
vec4 table_quad(uvec4 nibbles, uint i, uvec4 table) { return signed_bytes(table_bytes(nibbles, i)); }
#elif defined(RONDO_SHARED_TABLE)
shared float table_values[16];
vec4 table_quad(uvec4 nibbles, uint i, uvec4 table) {
  const uint bytes = nibble_bytes(nibbles, i);
  return vec4(table_values[bytes & 255u], table_values[(bytes >> 8) & 255u], table_values[(bytes >> 16) & 255u], table_values[bytes >> 24]);  // a whole byte is an instruction less to take out
}
#else
vec4 table_quad(uvec4 nibbles, uint i, uvec4 table) {
  const uint word = nibbles[i >> 1] >> (4u * (i & 1u));
  const uvec4 places = uvec4(word, word >> 8, word >> 16, word >> 24);
  const bvec4 odd = notEqual(places & 4u, uvec4(0u));
  const uvec4 chosen = mix(mix(uvec4(table.x), uvec4(table.y), odd), mix(uvec4(table.z), uvec4(table.w), odd), notEqual(places & 8u, uvec4(0u)));
  return vec4(ivec4(chosen << (24u - 8u * (places & 3u))) >> 24);
}
#endif

// Scale and negative minimum of a group of 32, for q4_K and q5_K: 8 groups share four words, which are f16 d and dmin, the low
// four bits of 8 scales, of 8 mins, and their high two bits, the mins' above the scales'.
vec2 k_scale_and_min(WeightRow row, uint group) {
  const uvec4 scales = weight_words4[(row.scales >> 2) + (group >> 3)];
  const uint place = group & 7u;
  const uvec2 low = (scales.yz >> (4u * place)) & 15u, high = (uvec2(scales.w, scales.w >> 16) >> (2u * place)) & 3u;
  return unpackHalf2x16(scales.x) * vec2(1.0, -1.0) * vec2(low | (high << 4));
}

// The first of the five words of scales of a group's block, for q2_K, q3_K and q6_K; the others are bytes for 16 elements each.
uint k_scales(WeightRow row, uint group) { return row.scales + (group >> 3) * 5u; }
// The two bytes of a group, in the low half.
uint k_scale_bytes(uint scales, uint group) { return weight_words[scales + 1u + ((group >> 1) & 3u)] >> (16u * (group & 1u)); }
// Of q3_K and q6_K: f16 d times the signed bytes.
vec2 k_signed_scales(WeightRow row, uint group) {
  const uint scales = k_scales(row, group);
  return unpackHalf2x16(weight_words[scales]).x * signed_bytes_of_halves(k_scale_bytes(scales, group));
}
