// Which keys a row sees, what they score, and how caches are read. Include after the buffers query_offset, lengths, key, value (or
// RONDO_ATTENTION_WITHOUT_VALUES), tables, of_heads and mask, the push constants `p` of attention.params.h, and the constants
// kCacheType, kFeatures, kRadii and kBuckets. Grid y is B * G of the dispatch.
#ifndef RONDO_ATTENTION_GLSL
#define RONDO_ATTENTION_GLSL

#include "lib/online_softmax.glsl"

bool has(uint feature) { return (kFeatures & feature) != 0u; }
int chunk_of(int position) { return position >= 0 ? position / int(p.chunk) : -((int(p.chunk) - 1 - position) / int(p.chunk)); }

// Where each of the tables begins.
uint sinks_at() { return 2u * (gl_NumWorkGroups.y / p.kv_heads); }
uint slopes_at() { return sinks_at() + (has(RONDO_ATTENTION_SINKS) ? p.heads : 0u); }
uint bias_at() { return slopes_at() + (has(RONDO_ATTENTION_SLOPES) ? p.heads : 0u); }
uint bucket_at() { return bias_at() + (kBuckets & 0xffffu) * p.heads; }
uint relative_keys_at() { return (bucket_at() + (has(RONDO_ATTENTION_BIAS) ? (kBuckets >> 16) + 1u : 0u) + 3u) & ~3u; }  // vectors

float sink_of(uint head) { return has(RONDO_ATTENTION_TABLES) ? tables[sinks_at() + head] : of_heads[p.of_heads_offset + head]; }
float slope_of(uint head) { return has(RONDO_ATTENTION_TABLES) ? tables[slopes_at() + head] : of_heads[p.of_heads_offset + head]; }

// The row of a relative table for a key at this distance from the query.
uint relative_row(int distance, uint radius) { return uint(clamp(distance, -int(radius), int(radius)) + int(radius)); }
// Where the relative key or value for this distance begins.
uint relative_key_at(int distance) { return relative_keys_at() + relative_row(distance, kRadii & 0xffffu) * p.head_dim; }
uint relative_values_at() { return relative_keys_at() + (has(RONDO_ATTENTION_RELATIVE_KEY) ? (2u * (kRadii & 0xffffu) + 1u) * p.head_dim : 0u); }
uint relative_value_at(int distance) { return relative_values_at() + relative_row(distance, kRadii >> 16) * p.value_dim; }

int first_stored = 0;  // of a ring

// Where query 0 of a sequence is, how many keys there are, and those, [start, reach), that some of its queries see.
struct Span {
  int position0, n_keys;
  uint start, reach;
};

// For queries `first` to `last`.
Span span_of(uint sequence, uint first, uint last) {
  Span span;
  int n_valid = int(p.keys);
  span.position0 = int(p.keys) - int(p.queries);
  if (has(RONDO_ATTENTION_TABLES)) {
    span.position0 = query_offset[sequence];
    n_valid = query_offset[gl_NumWorkGroups.y / p.kv_heads + sequence];
  } else {
    if (p.n_lengths != 0u) n_valid = lengths[min(sequence, p.n_lengths - 1u)];
    if (p.n_offsets != 0u) span.position0 = query_offset[min(sequence, p.n_offsets - 1u)];
  }
  const int length = has(RONDO_ATTENTION_RING) ? max(n_valid, 0) : clamp(n_valid, 0, int(p.keys));
  span.n_keys = length;
  const int first_position = span.position0 + int(first), last_position = span.position0 + int(last);
  int start = 0, reach = p.causal != 0u ? last_position + 1 : length;
  if (has(RONDO_ATTENTION_RANGES)) {
    if (p.window_ahead >= 0) reach = min(reach, last_position + p.window_ahead + 1);
    if (p.window_back >= 0) start = max(start, first_position - p.window_back);
    if (p.chunk != 0u) {
      reach = min(reach, (chunk_of(last_position) + 1) * int(p.chunk));
      start = max(start, (chunk_of(first_position) - int(p.chunks_back)) * int(p.chunk));
    }
    reach = max(reach, int(p.prefix));
    if (p.prefix != 0u) start = 0;
  }
  first_stored = length - int(p.keys);
  if (has(RONDO_ATTENTION_RING)) start = max(start, first_stored);
  span.reach = uint(clamp(reach, 0, length));
  span.start = uint(start);
  return span;
}

bool in_range(int j, int position) {
  bool allowed = p.causal == 0u || j <= position;
  if (has(RONDO_ATTENTION_RING)) allowed = allowed && j >= first_stored;
  if (!has(RONDO_ATTENTION_RANGES)) return allowed;
  if (p.window_back >= 0) allowed = allowed && j >= position - p.window_back;
  if (p.window_ahead >= 0) allowed = allowed && j <= position + p.window_ahead;
  if (p.chunk != 0u) {
    const int behind = chunk_of(position) - j / int(p.chunk);
    allowed = allowed && behind >= 0 && behind <= int(p.chunks_back);
  }
  return allowed || j < int(p.prefix);
}

// Where a mask has the words of a query's keys, one after the other, or the one word that all of them have.
uint mask_row_at(uint sequence, uint head, uint query) {
  uint at = has(RONDO_ATTENTION_MASK_SEQUENCES) ? sequence : 0u;
  at = has(RONDO_ATTENTION_MASK_HEADS) ? at * p.heads + head : at;
  at = has(RONDO_ATTENTION_MASK_QUERIES) ? at * p.queries + query : at;
  return has(RONDO_ATTENTION_MASK_KEYS) ? at * p.keys : at;
}
const uint kMaskForbids = (kFeatures & RONDO_ATTENTION_MASK_IS_BOOL) != 0u ? 0u : 0xff800000u;  // the word: false, or minus infinity

// The score of key j for a query at `position`, which is number `query` of its head, from the product of query and key, and relative
// key, if there is one; kLowest where it is not allowed.
float finished_score(float product, uint sequence, uint head, uint query, int position, int j) {
  const int distance = j - position;
  bool allowed = in_range(j, position);
  float score = product;
  if (has(RONDO_ATTENTION_SOFTCAP)) score = isnan(score) ? score : p.softcap * tanh(clamp(score / p.softcap, -15.0, 15.0));
  if (has(RONDO_ATTENTION_BIAS)) {
    const bool both_ways = has(RONDO_ATTENTION_BIAS_BOTH_WAYS);
    const uint steps = uint(both_ways ? abs(distance) : max(-distance, 0));
    uint bucket = uint(tables[bucket_at() + min(steps, kBuckets >> 16)]);
    if (both_ways && distance > 0) bucket += (kBuckets & 0xffffu) / 2u;
    score += tables[bias_at() + bucket * p.heads + head];
  }
  if (has(RONDO_ATTENTION_SLOPES)) score += slope_of(head) * float(distance);
  if (has(RONDO_ATTENTION_MASK)) {
    const uint word = mask[mask_row_at(sequence, head, query) + (has(RONDO_ATTENTION_MASK_KEYS) ? uint(j) : 0u)];
    allowed = allowed && word != kMaskForbids;
    if (!has(RONDO_ATTENTION_MASK_IS_BOOL)) score += uintBitsToFloat(word);
  }
  score = mix(score, mix(kLowestAllowed, kMinusInfinity, isinf(product)), score < kLowestAllowed);  // NaN stays one
  return mix(kLowest, score, allowed);
}

// The row that has key j.
uint stored_row(uint j) { return has(RONDO_ATTENTION_RING) ? j % p.keys : j; }

// Of q8_0 caches: the scale of element `d` of key or value `j`, behind the quants of all rows, which are `stride` elements long.
uint scale_at(uint j, uint stride, uint d) { return gl_NumWorkGroups.y * p.keys * (stride >> 2) + (gl_WorkGroupID.y * p.keys + j) * ((stride + 63u) >> 6) + (d >> 6); }
float group_scale(uint word, uint d) { return unpackHalf2x16(word >> ((d >> 1) & 16u)).x; }
#ifndef RONDO_ATTENTION_WITHOUT_VALUES
float value_scale(uint j, uint d) { return kCacheType == 2u ? group_scale(value[scale_at(j, p.value_row, d)], d) : 1.0; }
#endif
float key_scale(uint j, uint d) { return kCacheType == 2u ? group_scale(key[scale_at(j, p.key_row, d)], d) : 1.0; }

// The two signed bytes of a word at `element`, which is even.
vec2 byte_pair(uint word, uint element) {
  const int bits = int(word >> ((element & 2u) << 3));
  return vec2(float((bits << 24) >> 24), float((bits << 16) >> 24));
}

// Eight elements of a cache as they are stored, from a multiple of 8 on: of q8_0 in low.xy, without their scale.
struct Eight {
  uvec4 low, high;
};
// The buffer as vectors of 4 and of 2 words.
#define RONDO_LOAD_EIGHT(words4, words2, element, to)                 \
  if (kCacheType == 2u) {                                             \
    to.low.xy = words2[(element) >> 3];                               \
  } else {                                                            \
    to.low = words4[(element) >> (kCacheType == 1u ? 3 : 2)];         \
    if (kCacheType == 0u) to.high = words4[((element) >> 2) + 1u];    \
  }
vec4 signed_bytes(uint word) { return vec4((ivec4(word) << ivec4(24, 16, 8, 0)) >> 24); }
vec4 low_half(Eight eight) {
  if (kCacheType == 2u) return signed_bytes(eight.low.x);
  if (kCacheType == 1u) return vec4(unpackHalf2x16(eight.low.x), unpackHalf2x16(eight.low.y));
  return uintBitsToFloat(eight.low);
}
vec4 high_half(Eight eight) {
  if (kCacheType == 2u) return signed_bytes(eight.low.y);
  if (kCacheType == 1u) return vec4(unpackHalf2x16(eight.low.z), unpackHalf2x16(eight.low.w));
  return uintBitsToFloat(eight.high);
}

// Two elements, of q8_0 without their scale.
vec2 load_key(uint element, bool both) {
  if (kCacheType == 2u) return byte_pair(key[element >> 2], element);
  if (kCacheType == 1u) return mix(unpackHalf2x16(key[element >> 1]), vec2(0.0), bvec2(false, !both));  // what lies behind may be NaN
  return vec2(uintBitsToFloat(key[element]), both ? uintBitsToFloat(key[element + 1u]) : 0.0);
}
#ifndef RONDO_ATTENTION_WITHOUT_VALUES
vec2 load_value(uint element, bool both) {
  if (kCacheType == 2u) return byte_pair(value[element >> 2], element);
  if (kCacheType == 1u) return unpackHalf2x16(value[element >> 1]);
  return vec2(uintBitsToFloat(value[element]), both ? uintBitsToFloat(value[element + 1u]) : 0.0);
}
#endif
#endif
