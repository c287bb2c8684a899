// Scaled dot-product attention with online softmax for many rows, in f32; formula, inputs and features as attention.comp. A workgroup takes kM rows
// (lib/attention_rows.glsl) and walks the keys in blocks of 64. Of keys and queries come 32 columns at a time, then of values 32 rows by 64 columns, as f32
// in shared memory, the next while these are multiplied: an invocation makes kRows rows by 4 keys of scores, and sums of as many rows by 4 columns of each 64,
// in registers. Scores go through shared memory, where kShares invocations share a row and weigh it. Grid (row tiles times kParts, B * G, n_splits); split
// keys (kSplit 1) as in attention.comp.
// Relative keys and values depend on the distance of key and query: of these a block has 64, and one more for each position between the tile's queries. Their
// rows of a table are multiplied like keys, 64 at a time, and in each row of the tile a product goes to the score of the key that has this distance; weights
// likewise are read where the key with a distance is. Blocks that are so far away that all their keys have one row, the first or the last, do without: it
// counts once for a row.
// Needs: head widths, strides and offsets of keys and values multiples of 8, of queries of 4.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kSplit = 0u;
layout(constant_id = 3) const uint kFeatures = 0u;
layout(constant_id = 4) const uint kBuckets = 0u;        // as in attention.comp
layout(constant_id = 5) const uint kKeyWidth = 128u;     // D
layout(constant_id = 6) const uint kValueWidth = 128u;   // E
layout(constant_id = 7) const uint kRows = 4u;           // or 2
layout(constant_id = 8) const uint kUnrolled = 8u;       // of 8 steps of the loops over columns and keys: the more, the more registers
layout(constant_id = 9) const uint kParts = 1u;          // lib/attention_rows.glsl
layout(constant_id = 10) const uint kRadii = 0u;         // as in attention.comp
layout(constant_id = 11) const uint kGroup = 4u;         // H / G
layout(std430, set = 0, binding = 1) readonly buffer Query { ELEMENT4 query4[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uint key[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key2 { uvec2 key2[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key4 { uvec4 key4[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value { uint value[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value2 { uvec2 value2[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value4 { uvec4 value4[]; };
layout(std430, set = 0, binding = 4) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 4) readonly buffer Tables { float tables[]; };
layout(std430, set = 0, binding = 4) readonly buffer Tables4 { vec4 tables4[]; };
layout(std430, set = 0, binding = 5) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask { uint mask[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask4 { uvec4 mask4[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output4 { ELEMENT4 values4[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Partials4 { vec4 partials4[]; };
layout(std430, set = 0, binding = 7) readonly buffer OfHeads { float of_heads[]; };
#include "lib/attention.glsl"

const uint kBlock = 64u;
const uint kM = kWidth / 16u * kRows, kShares = 16u / kRows;
const uint kKeyChunks = (kKeyWidth + 31u) / 32u;
const uint kEights = 256u / kWidth, kQuads = kRows / 2u;  // of a chunk of keys or values, and of queries, that an invocation brings
const uint kScores = kRows * 4u;
const uint kUnrolledOfRelatives = kUnrolled > 4u ? 4u : kUnrolled;  // Intel spills with 8
const uint kOwnQuads = 16u / kShares;  // of a row's scores, that it weighs
const bool kRelativeKeys = (kFeatures & RONDO_ATTENTION_RELATIVE_KEY) != 0u, kRelativeValues = (kFeatures & RONDO_ATTENTION_RELATIVE_VALUE) != 0u;

// In vec4: 64 keys by 32 columns, or 32 values by 64; and queries by 32 columns, in whose place come scores and weights. Rows lie
// so that invocations side by side meet other banks.
const uint kKeyStride = 9u, kScoreStride = kRows == 4u ? 17u : 18u;
shared vec4 tile[64u * kKeyStride];
shared vec4 scores[kM * kScoreStride];
shared vec4 queries[kRelativeKeys ? kM * kKeyStride : 1u];  // by 32 columns, where their place has scores
shared vec4 parts[kM * kShares / 4u];  // of a row's maximum, or weight
shared float row_scales[kM];
// [0]: a value of the block is no finite number, and must not reach rows that don't see it. 16 bytes, as vectors may lie right behind
// (tests/simulator/warm_up_test.cpp).
shared uint some_infinite[4];

#include "lib/attention_rows.glsl"

uint tx, first_own;  // the columns of this invocation, and its first row of the tile
uint query_quads[kQuads];  // where the rows begin whose quads it brings
Eight eights[kEights];
uint eight_scales[kEights];
vec4 quads[kQuads];
vec4 sums[kRows * kValueChunks];
float products[kScores];

// With relative keys or values: the position of the tile's last query, how many its first is before that, and how many those of this invocation's rows
// are. Where a block's keys have one row of a table, it is kFirst or kLast.
const uint kFirst = 0u, kLast = 1u, kSeveral = 2u;
int last_position;
uint spread, shifts[kRows];
float end_products[2], end_weights[2];  // of own_row: its query's with the first and the last relative key, and this share's of keys that have these values

int first_distance(uint first_key) { return int(first_key) - last_position; }
uint row_of_table(uint first_key, uint radius) {
  const int first = first_distance(first_key), last = first + int(63u + spread);
  return last <= -int(radius) ? kFirst : first >= int(radius) ? kLast : kSeveral;
}

uint part_at(uint row) { return row * (kShares / 4u); }

uint key_of_eight(uint i) { return (i * kWidth + self) / 4u; }
uint value_of_eight(uint i) { return (i * kWidth + self) / 8u; }

// Instead of keys or values beyond the last comes the last, and of columns likewise.
void load_keys(uint first_key, uint chunk) {
  const uint d = min(chunk * 32u + self % 4u * 8u, kKeyWidth - 8u);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint row = stored_row(min(first_key + key_of_eight(i), span.reach - 1u));
    RONDO_LOAD_EIGHT(key4, key2, key_base + row * p.key_row + d, eights[i])
    if (kCacheType == 2u) eight_scales[i] = key[scale_at(row, p.key_row, d)];
  }
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) quads[i] = from_elements(query4[query_quads[i] + min(chunk * 8u + self % 8u, kKeyWidth / 4u - 1u)]);
}
void load_values(uint first_key, uint chunk) {
  const uint e = min(first_value() + chunk * 64u + self % 8u * 8u, kValueWidth - 8u);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint row = stored_row(min(first_key + value_of_eight(i), span.reach - 1u));
    RONDO_LOAD_EIGHT(value4, value2, value_base + row * p.value_row + e, eights[i])
    if (kCacheType == 2u) eight_scales[i] = value[scale_at(row, p.value_row, e)];
  }
}

void store_keys(uint chunk) {
  const uint eight = self % 4u;
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const bool is_there = kKeyWidth % 32u == 0u || chunk * 32u + eight * 8u < kKeyWidth;
    const float scale = kCacheType == 2u ? group_scale(eight_scales[i], chunk * 32u + eight * 8u) : 1.0;
    const uint at = key_of_eight(i) * kKeyStride + eight * 2u;
    tile[at] = is_there ? low_half(eights[i]) * scale : vec4(0.0);
    tile[at + 1u] = is_there ? high_half(eights[i]) * scale : vec4(0.0);
  }
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    const bool is_there = kKeyWidth % 32u == 0u || chunk * 8u + self % 8u < kKeyWidth / 4u;
    scores[(i * kWidth + self) / 8u * kKeyStride + self % 8u] = is_there ? quads[i] : vec4(0.0);
  }
}

// Of the relative keys from row `first` of the block's on, and of queries, a chunk of columns.
void store_relative_keys(uint first_key, uint first, uint chunk) {
  const uint eight = self % 4u, d = min(chunk * 32u + eight * 8u, kKeyWidth - 8u);
  const bool is_there = kKeyWidth % 32u == 0u || chunk * 32u + eight * 8u < kKeyWidth;
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint from = (relative_key_at(first_distance(first_key) + int(first + key_of_eight(i))) + d) / 4u, at = key_of_eight(i) * kKeyStride + eight * 2u;
    tile[at] = is_there ? tables4[from] : vec4(0.0);
    tile[at + 1u] = is_there ? tables4[from + 1u] : vec4(0.0);
  }
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) {
    const uint quad = chunk * 8u + self % 8u;
    const vec4 q = from_elements(query4[query_quads[i] + min(quad, kKeyWidth / 4u - 1u)]);
    queries[(i * kWidth + self) / 8u * kKeyStride + self % 8u] = kKeyWidth % 32u == 0u || quad < kKeyWidth / 4u ? q : vec4(0.0);
  }
}

// The fours of a row of values, so that eight invocations that store side by side reach all banks.
uint place_of(uint quad) { return quad ^ (quad >> 3); }

void store_values(uint chunk) {
  const uint column = chunk * 64u + self % 8u * 8u;
  uint largest = 0u;
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const float scale = kCacheType == 2u ? group_scale(eight_scales[i], column) : 1.0;
    const vec4 low = low_half(eights[i]) * scale, high = high_half(eights[i]) * scale;
    largest = larger(larger(largest, low), high);
    const uint row = value_of_eight(i) * 16u;
    tile[row + place_of(self % 8u * 2u)] = low;
    tile[row + place_of(self % 8u * 2u + 1u)] = high;
  }
  if (largest >= 0x7f800000u) atomicOr(some_infinite[0], 1u);
}

// 32 relative values from row `first` of the block's on.
void store_relative_values(uint first_key, uint first, uint chunk) {
  const uint e = min(first_value() + chunk * 64u + self % 8u * 8u, kValueWidth - 8u);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint from = (relative_value_at(first_distance(first_key) + int(first + value_of_eight(i))) + e) / 4u, row = value_of_eight(i) * 16u;
    tile[row + place_of(self % 8u * 2u)] = tables4[from];
    tile[row + place_of(self % 8u * 2u + 1u)] = tables4[from + 1u];
  }
}

// The scores of this invocation's share of its row to weights, and how the row's sums are scaled.
void weigh(uint first_key) {
  const uint row_at = own_row * kScoreStride;
  const uint row_of_keys = kRelativeKeys ? row_of_table(first_key, kRadii & 0xffffu) : kSeveral;
  const float of_row = row_of_keys == kFirst ? end_products[0] : row_of_keys == kLast ? end_products[1] : 0.0;
  vec4 own[kOwnQuads];
  float highest = kLowest;
  [[unroll]] for (uint i = 0u; i < kOwnQuads; ++i) {
    own[i] = scores[row_at + i * kShares + share];
    [[unroll]] for (uint n = 0u; n < 4u; ++n) {
      own[i][n] = own_score((kRelativeKeys ? own[i][n] + of_row : own[i][n]) * p.scale, first_key + (i * kShares + share) * 4u + n);
      highest = max(highest, own[i][n]);
    }
  }
  parts[part_at(own_row) + share / 4u][share % 4u] = highest;
  barrier();
  highest = row_max;
  [[unroll]] for (uint i = 0u; i < kShares / 4u; ++i) {
    const vec4 part = parts[part_at(own_row) + i];
    highest = max(max(highest, max(part.x, part.y)), max(part.z, part.w));
  }
  const float scale = scale_to(row_max, highest, 0.0);
  row_max = highest;
  row_weight *= scale;
  float weight = 0.0;
  [[unroll]] for (uint i = 0u; i < kOwnQuads; ++i) {
    [[unroll]] for (uint n = 0u; n < 4u; ++n) {
      own[i][n] = unscaled_weight(own[i][n], own[i][n] - highest);
      if (kRelativeValues) weight += own[i][n];
      row_weight += own[i][n];
    }
    scores[row_at + i * kShares + share] = own[i];
  }
  if (kRelativeValues) {
    const uint row_of_values = row_of_table(first_key, kRadii >> 16);
    [[unroll]] for (uint n = 0u; n < 2u; ++n) end_weights[n] = end_weights[n] * scale + (n == row_of_values ? weight : 0.0);
  }
  if (share == 0u) row_scales[own_row] = scale;
}

// Adds to the sums of a chunk of columns the products of 32 keys' weights, from the quad `first` of keys on, and the values of the tile.
void add_values(uint chunk, uint first) {
  if (some_infinite[0] == 0u) {
    for (uint step = 0u; step < 8u; step += kUnrolled) {
      [[unroll]] for (uint unrolled = 0u; unrolled < kUnrolled; ++unrolled) {
        const uint n = step + unrolled;
        vec4 weights[kRows];
        [[unroll]] for (uint i = 0u; i < kRows; ++i) weights[i] = scores[(first_own + i) * kScoreStride + first + n];
        [[unroll]] for (uint k = 0u; k < 4u; ++k) {
          const vec4 v = tile[(n * 4u + k) * 16u + place_of(tx)];
          [[unroll]] for (uint i = 0u; i < kRows; ++i) sums[chunk * kRows + i] += weights[i][k] * v;
        }
      }
    }
  } else {
    [[dont_unroll]] for (uint k = 0u; k < 32u; ++k) {
      const vec4 v = tile[k * 16u + place_of(tx)];
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        const float weight = scores[(first_own + i) * kScoreStride + first + k / 4u][k % 4u];
        sums[chunk * kRows + i] += mix(vec4(0.0), weight * v, bvec4(weight != 0.0));
      }
    }
  }
}

// The same of relative values: those of a row of the block's belong, in each row of the tile, to the key that is so many before.
void add_relative_values(uint chunk, uint first_key) {
  [[dont_unroll]] for (uint first = 0u; first < 64u + spread; first += 32u) {
    barrier();
    store_relative_values(first_key, first, chunk);
    barrier();
    [[dont_unroll]] for (uint k = 0u; k < 32u; ++k) {
      const vec4 v = tile[k * 16u + place_of(tx)];
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        const uint j = first + k - shifts[i];
        const float weight = j < 64u ? scores[(first_own + i) * kScoreStride + j / 4u][j % 4u] : 0.0;
        sums[chunk * kRows + i] += mix(vec4(0.0), weight * v, bvec4(weight != 0.0));
      }
    }
  }
}

// The same of a chunk and all 64 keys, whose first 32 values are in the tile.
void add_chunk(uint chunk, uint first_key, uint next_key) {
  [[dont_unroll]] for (uint half_of_block = 0u; half_of_block < 2u; ++half_of_block) {
    if (half_of_block == 0u) load_values(first_key + 32u, chunk);
    else if (chunk + 1u < kValueChunks) load_values(first_key, chunk + 1u);
    else load_keys(next_key, 0u);
    add_values(chunk, half_of_block * 8u);
    if (kRelativeValues && half_of_block == 1u && row_of_table(first_key, kRadii >> 16) == kSeveral) add_relative_values(chunk, first_key);
    if (half_of_block == 0u || chunk + 1u < kValueChunks) {
      barrier();
      store_values(chunk + half_of_block);
      barrier();
    }
  }
}

// Adds to this invocation's products those of `n` fours of columns of queries, which lie in `rows`, and of the tile.
#define MULTIPLY_COLUMNS(rows, first, n)                                                                \
  [[unroll]] for (uint of_step = 0u; of_step < n; ++of_step) {                                          \
    const uint quad = first + of_step;                                                                  \
    vec4 q[kRows];                                                                                      \
    [[unroll]] for (uint i = 0u; i < kRows; ++i) q[i] = rows[(first_own + i) * kKeyStride + quad];      \
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {                                                         \
      const vec4 k = tile[(tx + 16u * j) * kKeyStride + quad];                                          \
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {                                                    \
        [[unroll]] for (uint c = 0u; c < 4u; ++c) products[i * 4u + j] += q[i][c] * k[c];               \
      }                                                                                                 \
    }                                                                                                   \
  }

// Long sums are made of those of chunks, which are more exact.
#define SET_ASIDE                                                                                     \
  float before[kScores];                                                                              \
  if (kKeyChunks > 8u) {                                                                              \
    [[unroll]] for (uint i = 0u; i < kScores; ++i) before[i] = products[i], products[i] = 0.0;        \
  }
#define ADD_ASIDE                                                                                     \
  if (kKeyChunks > 8u) {                                                                              \
    [[unroll]] for (uint i = 0u; i < kScores; ++i) products[i] += before[i];                          \
  }

// Adds to scores the products of queries and relative keys: in each row of the tile those of a row of the block's to the score of the key that is so many before.
void add_relative_keys(uint first_key) {
  [[dont_unroll]] for (uint first = 0u; first < 64u + spread; first += 64u) {
    [[unroll]] for (uint i = 0u; i < kScores; ++i) products[i] = 0.0;
    [[dont_unroll]] for (uint chunk = 0u; chunk < kKeyChunks; ++chunk) {
      barrier();
      store_relative_keys(first_key, first, chunk);
      barrier();
      SET_ASIDE
      [[dont_unroll]] for (uint step = 0u; step < 8u; step += kUnrolledOfRelatives) MULTIPLY_COLUMNS(queries, step, kUnrolledOfRelatives)
      ADD_ASIDE
    }
    [[unroll]] for (uint i = 0u; i < kScores; ++i) {
      const uint j = first + tx + i % 4u * 16u - shifts[i / 4u];
      if (j < 64u) scores[(first_own + i / 4u) * kScoreStride + j / 4u][j % 4u] += products[i];
    }
  }
}

void attend() {
  [[unroll]] for (uint i = 0u; i < kRows * kValueChunks; ++i) sums[i] = vec4(0.0);
  uint block = first_seen_block();
  if (block * kBlock < span.reach) load_keys(block * kBlock, 0u);
  [[dont_unroll]] while (block * kBlock < span.reach) {
    const uint first_key = block * kBlock, next = seen_block(block + block_step());
    [[unroll]] for (uint i = 0u; i < kScores; ++i) products[i] = 0.0;
    [[dont_unroll]] for (uint chunk = 0u; chunk < kKeyChunks; ++chunk) {
      barrier();
      store_keys(chunk);
      barrier();
      if (chunk + 1u < kKeyChunks) load_keys(first_key, chunk + 1u);
      else if (!kRelativeKeys) load_values(first_key, 0u);
      SET_ASIDE
      for (uint step = 0u; step < 8u; step += kUnrolled) MULTIPLY_COLUMNS(scores, step, kUnrolled)
      ADD_ASIDE
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < kScores; ++i) {
      const uint j = tx + i % 4u * 16u;
      scores[(first_own + i / 4u) * kScoreStride + j / 4u][j % 4u] = products[i];
    }
    if (kRelativeKeys) {
      if (row_of_table(first_key, kRadii & 0xffffu) == kSeveral) add_relative_keys(first_key);
      load_values(first_key, 0u);
    }
    if (self == 0u) some_infinite[0] = 0u;
    barrier();
    store_values(0u);
    weigh(first_key);
    barrier();
    [[unroll]] for (uint i = 0u; i < kRows; ++i) {
      const float scale = row_scales[first_own + i];
      [[unroll]] for (uint chunk = 0u; chunk < kValueChunks; ++chunk) sums[chunk * kRows + i] *= scale;
    }
    const uint next_key = min(next, (span.reach - 1u) / kBlock) * kBlock;  // after the last nobody reads it
    add_chunk(0u, first_key, next_key);
    if (kValueChunks > 1u) add_chunk(1u, first_key, next_key);
    if (kValueChunks > 2u) add_chunk(2u, first_key, next_key);
    if (kValueChunks > 3u) add_chunk(3u, first_key, next_key);
    if (kValueChunks > 4u) add_chunk(4u, first_key, next_key);
    if (kValueChunks > 5u) add_chunk(5u, first_key, next_key);
    if (kValueChunks > 6u) add_chunk(6u, first_key, next_key);
    if (kValueChunks > 7u) add_chunk(7u, first_key, next_key);
    block = next;
  }
}

// What the shares of a row are together, which all invocations put into `parts` before a barrier.
float total_of(uint row) {
  vec4 part = parts[part_at(row)];
  if (kShares == 8u) part += parts[part_at(row) + 1u];
  return (part.x + part.y) + (part.z + part.w);
}

// The relative values of keys that have the first or the last of them.
void add_end_values() {
  [[unroll]] for (uint n = 0u; n < 2u; ++n) {
    parts[part_at(own_row) + share / 4u][share % 4u] = end_weights[n];
    barrier();
    const uint from = (relative_values_at() + n * 2u * (kRadii >> 16) * kValueWidth) / 4u;
    [[unroll]] for (uint chunk = 0u; chunk < kValueChunks; ++chunk) {
      const vec4 v = tables4[from + min(first_value() / 4u + chunk * 16u + tx, kValueWidth / 4u - 1u)];
      [[unroll]] for (uint i = 0u; i < kRows; ++i) {
        const float weight = total_of(first_own + i);
        sums[chunk * kRows + i] += mix(vec4(0.0), weight * v, bvec4(weight != 0.0));
      }
    }
    barrier();
  }
}

void write_rows() {
  if (kRelativeValues) add_end_values();
  parts[part_at(own_row) + share / 4u][share % 4u] = row_weight;
  if (share == 0u) row_scales[own_row] = row_max;
  barrier();
  [[unroll]] for (uint i = 0u; i < kRows; ++i) {
    const uint row = first_row + first_own + i;
    if (row >= end_row) break;
    const float total = total_of(first_own + i), highest = row_scales[first_own + i];
    const uint at = kSplit == 0u ? output_row(row) * (kValueWidth / 4u) : partials_at(row) / 4u;
    [[unroll]] for (uint chunk = 0u; chunk < kValueChunks; ++chunk) {
      const uint quad = first_value() / 4u + chunk * 16u + tx;
      if (quad >= kValueWidth / 4u) break;
      if (kSplit == 0u) values4[at + quad] = to_elements(sees_nothing(highest, total) ? vec4(0.0) : sums[chunk * kRows + i] / total);
      else partials4[at + quad] = sums[chunk * kRows + i];
    }
    if (kSplit == 1u && tx == 0u && first_value() == 0u) partials4[at + kValueWidth / 4u] = vec4(highest, total, 0.0, 0.0);
  }
}

void find_relatives() {
  const uint last_query = (end_row - 1u) / kGroup;
  last_position = span.position0 + int(last_query);
  spread = last_query - first_row / kGroup;
  [[unroll]] for (uint i = 0u; i < kRows; ++i) shifts[i] = last_query - min(first_row + first_own + i, end_row - 1u) / kGroup;
  end_products[0] = end_products[1] = end_weights[0] = end_weights[1] = 0.0;
  if (!kRelativeKeys) return;
  const uint at = query_at(min(first_row + own_row, end_row - 1u)) / 4u, first = relative_keys_at() / 4u, last = first + 2u * (kRadii & 0xffffu) * (kKeyWidth / 4u);
  [[dont_unroll]] for (uint chunk = 0u; chunk < kKeyChunks; ++chunk) {
    float of_first = 0.0, of_last = 0.0;
    [[dont_unroll]] for (uint d = chunk * 8u; d < min(chunk * 8u + 8u, kKeyWidth / 4u); ++d) {
      const vec4 q = from_elements(query4[at + d]);
      of_first += dot(q, tables4[first + d]);
      of_last += dot(q, tables4[last + d]);
    }
    end_products[0] += of_first;
    end_products[1] += of_last;
  }
}

void main() {
  self = gl_LocalInvocationID.x;
  if (!find_rows()) return;
  if (kShares == 4u) own_row = self / 32u * 8u + self / 8u % 4u + self / 4u % 2u * 4u;  // rows of eight invocations side by side are 4 apart, and other banks
  tx = self % 16u;
  first_own = self / 16u * kRows;
  begin_row(min(first_row + own_row, end_row - 1u));
  if (kRelativeKeys || kRelativeValues) find_relatives();
  [[unroll]] for (uint i = 0u; i < kQuads; ++i) query_quads[i] = query_at(min(first_row + (i * kWidth + self) / 8u, end_row - 1u)) / 4u;
  attend();
  write_rows();
}
