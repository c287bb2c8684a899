// Scaled dot-product attention with online softmax for many rows, with matrix units (lib/matrix.glsl); formula, inputs and features as
// attention.comp, but relative keys and values. A workgroup takes kM rows (a row is one query of one head of a KV head's group) and walks
// the keys in blocks of 64. Queries lie in shared memory as halves; of keys and then of values come 64 columns at a time, the next while
// these are multiplied. Scores go through shared memory, where kWidth / kM invocations share a row and weigh it; sums stay in
// registers, and are scaled where a row's maximum moves. Grid (row tiles times kParts, B * G, n_splits); split keys (kSplit 1, where kParts is 1) as in
// attention.comp.
// Queries, weights and values are rounded to f16, sums are f32. A row of queries is multiplied by a power of two that makes its
// largest number 256 or more, weights by 2^15, keys and values of f32 and q8_0 by 2^4. Where those don't suit f16, or a value
// is not finite, which must not reach rows that don't see it, the workgroup does its rows once more without matrices.
// Needs: subgroups of exactly kLanes invocations, subgroupShuffleXor, cooperative matrices, Vulkan's memory model; head widths, strides and
// offsets of keys and values multiples of 8.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRowMatrices = 2u;     // of a subgroup
layout(constant_id = 4) const uint kColumnMatrices = 2u;  // of keys, and of 64 columns of values
layout(constant_id = 5) const uint kRowSubgroups = 2u;
layout(constant_id = 6) const uint kSplit = 0u;
layout(constant_id = 7) const uint kFeatures = 0u;
layout(constant_id = 8) const uint kBuckets = 0u;        // as in attention.comp
layout(constant_id = 9) const uint kKeyWidth = 128u;     // D
layout(constant_id = 10) const uint kValueWidth = 128u;  // E
layout(constant_id = 11) const uint kMatrixRows = 16u;
layout(constant_id = 12) const uint kMatrixColumns = 16u;
layout(constant_id = 13) const uint kMatrixDepth = 16u;
layout(constant_id = 14) const uint kColumnsInLanes = 0u;  // lib/matrix.glsl
layout(constant_id = 15) const uint kParts = 1u;           // lib/attention_rows.glsl
layout(constant_id = 16) const uint kGroup = 4u;           // H / G
const uint kRadii = 0u;
layout(std430, set = 0, binding = 1) readonly buffer Query { ELEMENT query[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uint key[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key2 { uvec2 key2[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key4 { uvec4 key4[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value { uint value[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value2 { uvec2 value2[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value4 { uvec4 value4[]; };
layout(std430, set = 0, binding = 4) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 4) readonly buffer Tables { float tables[]; };
layout(std430, set = 0, binding = 5) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask { uint mask[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask4 { uvec4 mask4[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 7) readonly buffer OfHeads { float of_heads[]; };
#include "lib/matrix.glsl"
#include "lib/attention.glsl"

const uint kBlock = 64u;  // of keys, and of columns
const uint kM = kRowSubgroups * kRowMatrices * kMatrixRows;
const uint kColumnSubgroups = kWidth / kLanes / kRowSubgroups;
const uint kMatrices = kRowMatrices * kColumnMatrices;
const uint kKeyChunks = (kKeyWidth + kBlock - 1u) / kBlock;
const uint kDepth = (kKeyWidth + kMatrixDepth - 1u) / kMatrixDepth * kMatrixDepth;
const uint kShares = kWidth / kM;  // invocations that share a row
const uint kOwnScores = kBlock / kShares;
const uint kEights = kBlock * kBlock / 8u / kWidth;  // of a chunk that an invocation brings
const bool kLoadsLate = kFewLanes;  // whose registers hold no chunk that is on its way besides sums and what is multiplied

// uvec4 of shared memory, with 16 bytes a row that move the next row to other banks: queries, 64 keys or values by 64 columns, and the
// scores of a row, in place of which come its weights, in its first half, and behind them how the row's sums are scaled. With kTurned queries and weights lie
// so, eight rows in the place of eight; behind their weights is how their sums are scaled.
const uint kQueryStride = (kDepth + 7u) / 8u + 1u, kTileStride = kBlock / 8u + 1u, kScoreStride = kBlock / 4u + 1u;
const uint kTile = kM * kQueryStride, kScores = kTile + kBlock * kTileStride;
const uint kScales = kTurned ? kBlock / 8u * kFourPairs : kBlock / 8u, kScalesStride = kTurned ? 4u : kScoreStride;
shared uvec4 tiles[kScores + kM * kScoreStride];
shared uint moved[2];  // a row's maximum did, in this block or the one before
shared uint largest_bits[2];  // of keys and of values
shared float row_total[kM];
shared float row_highest[kM];

#include "lib/attention_rows.glsl"

const float kWeightScale = 32768.0;
float cache_scale() { return float(kCacheType == 1u ? 1u : 16u); }

float own_scale;  // of products
Eight eights[kEights];
uint eight_scales[kEights];
uint largest_key, largest_value;  // bits of the largest magnitude; of f16 bits 15 and 31 say that a value is not finite
Sums sums[kMatrices * kValueChunks];

float query_element(uint at, uint d) { return mix(0.0, from_element(query[at + min(d, kKeyWidth - 1u)]), d < kKeyWidth); }

// Rows beyond the last are the last.
void load_queries() {
  const uint row = min(first_row + own_row, end_row - 1u), at = query_at(row);
  begin_row(row);
  float highest = 0.0;
  for (uint d = share; d < kKeyWidth; d += kShares) highest = max(highest, abs(query_element(at, d)));
  [[unroll]] for (uint i = 1u; i < kShares; i *= 2u) highest = max(highest, subgroupShuffleXor(highest, i));
  const uint exponent = floatBitsToUint(highest) >> 23;
  const int up = exponent == 0u || exponent == 255u ? 0 : clamp(135 - int(exponent), -126, 126);
  const float by = uintBitsToFloat(uint(127 + up) << 23);
  own_scale = p.scale * (uintBitsToFloat(uint(127 - up) << 23) / cache_scale());
  for (uint d = share * 4u; d < kDepth; d += kShares * 4u) {
    const uvec2 halves = to_halves(by * vec4(query_element(at, d), query_element(at, d + 1u), query_element(at, d + 2u), query_element(at, d + 3u)));
    if (kTurned) {
      const uint place = place_in_pair(own_row % 8u), to = own_row / 8u * (8u * kQueryStride) + d + place / 4u;
      tiles[to][place % 4u] = halves.x;
      tiles[to + 2u][place % 4u] = halves.y;
      continue;
    }
    const uint to = own_row * kQueryStride + d / 8u;
    tiles[to][(d >> 1) & 2u] = halves.x;
    tiles[to][((d >> 1) & 2u) + 1u] = halves.y;
  }
}

// Eight i of an invocation's: eight columns of a key, or of one of a pair of neighbouring values.
uint key_of_eight(uint i, uint first_key) { return first_key + (i * kWidth + self) / 8u; }
uint value_of_eight(uint i, uint first_key) { return first_key + (i / 2u * kWidth + self) / 8u * 2u + i % 2u; }
uint column_of_eights(uint chunk) { return chunk * kBlock + self % 8u * 8u; }

// Instead of keys or values beyond the last comes the last, and of columns likewise.
void load_keys(uint first_key, uint chunk) {
  const uint d = min(column_of_eights(chunk), kKeyWidth - 8u);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint row = stored_row(min(key_of_eight(i, first_key), span.reach - 1u));
    RONDO_LOAD_EIGHT(key4, key2, key_base + row * p.key_row + d, eights[i])
    if (kCacheType == 2u) eight_scales[i] = key[scale_at(row, p.key_row, d)];
  }
}
void load_values(uint first_key, uint chunk) {
  const uint e = min(first_value() + column_of_eights(chunk), kValueWidth - 8u);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const uint row = stored_row(min(value_of_eight(i, first_key), span.reach - 1u));
    RONDO_LOAD_EIGHT(value4, value2, value_base + row * p.value_row + e, eights[i])
    if (kCacheType == 2u) eight_scales[i] = value[scale_at(row, p.value_row, e)];
  }
}

// An eight as halves; zeros unless it is there.
uvec4 halves_of(uint i, bool is_there, uint column, inout uint largest) {
  if (kCacheType == 1u) return is_there ? eights[i].low : uvec4(0u);
  const float scale = kCacheType == 2u ? group_scale(eight_scales[i], column) : 1.0;
  const vec4 low = is_there ? scale * low_half(eights[i]) : vec4(0.0), high = is_there ? scale * high_half(eights[i]) : vec4(0.0);
  largest = larger(larger(largest, low), high);
  return uvec4(to_halves(low * cache_scale()), to_halves(high * cache_scale()));
}

void store_keys(uint first_key, uint chunk) {
  const uint column = column_of_eights(chunk);
  [[unroll]] for (uint i = 0u; i < kEights; ++i) {
    const bool is_there = key_of_eight(i, first_key) < span.reach && column < kKeyWidth;
    tiles[kTile + (i * kWidth + self) / 8u * kTileStride + self % 8u] = halves_of(i, is_there, column, largest_key);
  }
}

// Column 8 a + b of a chunk lies in row 8 b + a, which is another bank for each of eight invocations that store side by side.
uint column_of_row(uint row) { return row % 8u * 8u + row / 8u; }

void store_values(uint first_key, uint chunk) {
  const uint column = first_value() + column_of_eights(chunk);
  [[unroll]] for (uint i = 0u; i < kEights; i += 2u) {
    uvec4 pair[2];
    [[unroll]] for (uint n = 0u; n < 2u; ++n) {
      pair[n] = halves_of(i + n, value_of_eight(i + n, first_key) < span.reach && column < kValueWidth, column, largest_value);
      if (kCacheType == 1u) {
        const uvec4 carries = (pair[n] & 0x7fff7fffu) + 0x04000400u;  // into the sign where all bits of the exponent are set
        largest_value |= carries.x | carries.y | carries.z | carries.w;
      }
    }
    const uint place = (i / 2u * kWidth + self) / 8u;  // of the pair
    [[unroll]] for (uint n = 0u; n < 8u; ++n) {
      const uint a = pair[0][n / 2u], b = pair[1][n / 2u];
      tiles[kTile + (n * 8u + self % 8u) * kTileStride + place / 4u][place % 4u] = n % 2u == 0u ? (a & 0xffffu) | b << 16 : a >> 16 | (b & 0xffff0000u);
    }
  }
}

uint first_row_of_subgroup() { return gl_SubgroupID / kColumnSubgroups * kRowMatrices * kMatrixRows; }
uint first_column_of_subgroup() { return gl_SubgroupID % kColumnSubgroups * kColumnMatrices * kMatrixColumns; }

// A zero that compilers don't know: else they keep all addresses that chunks share in registers.
uint zero_of(uint block, uint chunk) { return (block + chunk) >> 30; }

// Adds to `sums` the products of this subgroup's matrices of rows, from eight columns `first` on, and of the tile, whose rows are columns of the product. Rows lie
// from `from` on in `row_stride` uvec4 each; with kTurned eight rows in the place of eight, each eight of their columns in `four_pairs` uvec4.
#define MULTIPLY(sums, from, first, row_stride, four_pairs, depth)                                                                               \
  [[unroll]] for (uint k = 0u; k < (depth); k += kMatrixDepth) {                                                                                 \
    Left a[kRowMatrices];                                                                                                                        \
    [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {                                                                                        \
      const uint at = zero + (from) + (first_row_of_subgroup() + i * kMatrixRows) * (row_stride), eight = (first) + k / 8u;                      \
      if (kTurned) LOAD_TURNED(a[i], at + eight * (four_pairs), four_pairs, kLanes == 8u ? 0u : zero)                                            \
      else a[i] = load_left(tiles[at + eight], MATRIX_BY_ROW, row_stride, MATRIX_VISIBLE);                                                       \
    }                                                                                                                                            \
    [[unroll]] for (uint j = 0u; j < kColumnMatrices; ++j) {                                                                                     \
      LOAD_RIGHT(b, zero + kTile + (first_column_of_subgroup() + j * kMatrixColumns) * kTileStride + k / 8u, kTileStride)                        \
      [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) sums[i * kColumnMatrices + j] = multiply_add(a[i], b, sums[i * kColumnMatrices + j]);  \
    }                                                                                                                                            \
  }

// The scores of this invocation's share of its row to weights, and how the row's sums are scaled from now on.
void weigh(uint first_key, uint parity) {
  const uint row_at = kScores + own_row * kScoreStride;
  float scores[kOwnScores];
  float highest = row_max;
  [[unroll]] for (uint i = 0u; i < kOwnScores; i += 4u) {
    const vec4 products = uintBitsToFloat(tiles[row_at + i / 4u * kShares + share]);
    [[unroll]] for (uint n = 0u; n < 4u; ++n) {
      const uint j = first_key + (i / 4u * kShares + share) * 4u + n;
      scores[i + n] = own_score(products[n] * own_scale, j);
      highest = max(highest, scores[i + n]);
    }
  }
  [[unroll]] for (uint i = 1u; i < kShares; i *= 2u) highest = max(highest, subgroupShuffleXor(highest, i));
  const float scale = scale_to(row_max, highest, 0.0);
  if (row_max > kLowest && scale != 1.0) atomicOr(moved[parity], 1u);
  row_max = highest;
  row_weight *= scale;
  if (kTurned) barrier();  // weights come in place of scores, turned over also of other rows'
  else subgroupBarrier();
  const uint rows_at = kScores + own_row / 8u * (8u * kScoreStride), place = place_in_pair(own_row % 8u);
  [[unroll]] for (uint i = 0u; i < kOwnScores; i += 4u) {
    vec4 weights;
    [[unroll]] for (uint n = 0u; n < 4u; ++n) {
      weights[n] = unscaled_weight(scores[i + n], scores[i + n] - highest);
      row_weight += weights[n];
    }
    const uvec2 halves = to_halves(kWeightScale * weights);
    const uint quad = i / 4u * kShares + share;
    if (kTurned) {
      const uint to = rows_at + quad / 2u * kFourPairs + quad % 2u * 4u + place / 4u;
      tiles[to][place % 4u] = halves.x;
      tiles[to + 2u][place % 4u] = halves.y;
    } else {
      tiles[row_at + quad / 2u][(quad & 1u) * 2u] = halves.x;
      tiles[row_at + quad / 2u][(quad & 1u) * 2u + 1u] = halves.y;
    }
  }
  const uint scales_at = kTurned ? rows_at + kScales + own_row % 8u * kScalesStride : row_at + kScales;
  for (uint i = share; i < kMatrixColumns / 4u; i += kShares) tiles[scales_at + i] = uvec4(floatBitsToUint(scale));
}

// The products of a chunk of keys.
#define MULTIPLY_KEYS(chunk, depth)                                         \
  {                                                                         \
    if (kLoadsLate) load_keys(first_key, chunk);                            \
    barrier();                                                              \
    store_keys(first_key, chunk);                                           \
    barrier();                                                              \
    if (!kLoadsLate) {                                                      \
      if (chunk + 1u < kKeyChunks) load_keys(first_key, chunk + 1u);        \
      else load_values(first_key, 0u);                                      \
    }                                                                       \
    const uint zero = zero_of(block, chunk);                                \
    MULTIPLY(products, 0u, chunk * (kBlock / 8u), kQueryStride, 8u, depth)  \
  }

void attend() {
  [[unroll]] for (uint i = 0u; i < kMatrices * kValueChunks; ++i) sums[i] = NO_SUMS;
  const uint step = block_step();
  uint block = first_seen_block(), n_blocks = 0u;
  if (!kLoadsLate && block * kBlock < span.reach) load_keys(block * kBlock, 0u);
  [[dont_unroll]] while (block * kBlock < span.reach) {
    const uint first_key = block * kBlock, parity = (has(RONDO_ATTENTION_MASK) ? n_blocks++ : block / step) & 1u;
    Sums products[kMatrices];
    [[unroll]] for (uint i = 0u; i < kMatrices; ++i) products[i] = sums_of(0.0);
    if (kKeyChunks <= 2u) {
      [[unroll]] for (uint chunk = 0u; chunk < kKeyChunks; ++chunk) MULTIPLY_KEYS(chunk, min(kBlock, kDepth - chunk * kBlock))
    } else {  // what is unrolled takes long to compile
      [[dont_unroll]] for (uint chunk = 0u; chunk < kKeyChunks; ++chunk) MULTIPLY_KEYS(chunk, kDepth % kBlock == 0u ? kBlock : min(kBlock, kDepth - chunk * kBlock))
    }
    [[unroll]] for (uint i = 0u; i < kMatrices; ++i) {
      const uint row = first_row_of_subgroup() + i / kColumnMatrices * kMatrixRows, column = first_column_of_subgroup() + i % kColumnMatrices * kMatrixColumns;
      store_sums(tiles[kScores + row * kScoreStride + column / 4u], products[i], MATRIX_BY_ROW, kScoreStride, MATRIX_AVAILABLE);
    }
    if (self == 0u) moved[parity ^ 1u] = 0u;
    barrier();
    weigh(first_key, parity);
    const uint next = seen_block(block + step);
    [[unroll]] for (uint chunk = 0u; chunk < kValueChunks; ++chunk) {
      if (kLoadsLate) load_values(first_key, chunk);
      barrier();
      store_values(first_key, chunk);
      barrier();
      if (!kLoadsLate) {
        if (chunk + 1u < kValueChunks) load_values(first_key, chunk + 1u);
        else load_keys(min(next, (span.reach - 1u) / kBlock) * kBlock, 0u);  // after the last nobody reads it
      }
      Sums own[kMatrices];  // by constant indices, also where the loop over chunks is not unrolled (lib/matrix_tile.glsl)
      [[unroll]] for (uint n = 0u; n < kMatrices * kValueChunks; ++n) {
        if (n / kMatrices == chunk) own[n % kMatrices] = sums[n];
      }
      if (moved[parity] != 0u) {
        [[unroll]] for (uint i = 0u; i < kRowMatrices; ++i) {
          const Sums scale = load_sums(tiles[kScores + (first_row_of_subgroup() + i * kMatrixRows) * kScoreStride + kScales], MATRIX_BY_ROW, kScalesStride, MATRIX_VISIBLE);
          [[unroll]] for (uint j = 0u; j < kColumnMatrices; ++j) own[i * kColumnMatrices + j] = multiply_elements(own[i * kColumnMatrices + j], scale);
        }
      }
      const uint zero = zero_of(block, chunk + 8u);
      MULTIPLY(own, kScores, 0u, kScoreStride, kFourPairs, kBlock)
      [[unroll]] for (uint n = 0u; n < kMatrices * kValueChunks; ++n) {
        if (n / kMatrices == chunk) sums[n] = own[n % kMatrices];
      }
    }
    block = next;
  }
}

void write(uint row_of_tile, uint e, float sum, float highest, float total) {
  const uint row = first_row + row_of_tile;
  if (kSplit == 0u) {
    values[output_row(row) * kValueWidth + e] = to_element(sees_nothing(highest, total) ? 0.0 : sum / total);
    return;
  }
  const uint to = partials_at(row);
  partials[to + e] = sum;
  if (e == 0u) {
    partials[to + kValueWidth] = highest;
    partials[to + kValueWidth + 1u] = total;
  }
}

void write_rows() {
  [[unroll]] for (uint i = 1u; i < kShares; i *= 2u) row_weight += subgroupShuffleXor(row_weight, i);
  if (share == 0u) {
    row_total[own_row] = row_weight;
    row_highest[own_row] = row_max;
  }
  [[dont_unroll]] for (uint chunk = 0u; chunk < kValueChunks; ++chunk) {
    barrier();
    [[unroll]] for (uint n = 0u; n < kMatrices * kValueChunks; ++n) {
      const uint i = n % kMatrices, row = first_row_of_subgroup() + i / kColumnMatrices * kMatrixRows, column = first_column_of_subgroup() + i % kColumnMatrices * kMatrixColumns;
      if (n / kMatrices == chunk) store_sums(tiles[kScores + row * kScoreStride + column / 4u], sums[n], MATRIX_BY_ROW, kScoreStride, MATRIX_AVAILABLE);
    }
    barrier();
    for (uint item = self; item < (end_row - first_row) * kBlock; item += kWidth) {
      const uint row = item / kBlock, e = first_value() + chunk * kBlock + item % kBlock, column = column_of_row(item % kBlock);  // which is its own inverse
      if (e >= kValueWidth) continue;
      const float sum = uintBitsToFloat(tiles[kScores + row * kScoreStride + column / 4u][column & 3u]);
      write(row, e, sum / (kWeightScale * cache_scale()), row_highest[row], row_total[row]);
    }
  }
}

// Whether f16 has all keys, or values, by what `largest` became.
bool suits_f16(uint of, uint bits) {
  if (kCacheType == 1u) return of == 0u || (bits & 0x80008000u) == 0u;
  return bits == 0u || (bits >= 0x3a800000u && bits < 0x457fe000u);  // 2^-10, below which much would be subnormal, to 65504 / 16
}

// The same rows by scalars in f32, one after the other.
void attend_in_f32() {
  const uint kOwnValues = (kValueChunks * kBlock + kWidth - 1u) / kWidth;
  const uint end_value = min(first_value() + kValueChunks * kBlock, kValueWidth);
  for (uint row = first_row; row < end_row; ++row) {
    const uint at = query_at(row);
    begin_row(row);
    float total = has(RONDO_ATTENTION_SINKS) && gl_WorkGroupID.z == 0u ? 1.0 : 0.0;
    float own[kOwnValues];
    [[unroll]] for (uint i = 0u; i < kOwnValues; ++i) own[i] = 0.0;
    for (uint block = seen_block(first_block()); block * kBlock < span.reach; block = seen_block(block + block_step())) {
      barrier();
      if (self < kBlock) {
        const uint j = block * kBlock + self, stored = stored_row(min(j, span.reach - 1u));
        float product = 0.0;
        for (uint first = 0u; first < kKeyWidth; first += 8u) {
          [[unroll]] for (uint d = first; d < first + 8u; d += 2u) {
            const vec2 pair = key_scale(stored, d) * load_key(key_base + stored * p.key_row + d, true);
            product += p.scale * (from_element(query[at + d]) * pair.x + from_element(query[at + d + 1u]) * pair.y);
          }
        }
        tiles[kScores + self / 4u][self % 4u] = floatBitsToUint(own_score(product, j));
      }
      barrier();
      float highest = row_max;
      for (uint i = 0u; i < kBlock / 4u; ++i) {
        const vec4 scores = uintBitsToFloat(tiles[kScores + i]);
        highest = max(max(highest, max(scores.x, scores.y)), max(scores.z, scores.w));
      }
      const float scale = scale_to(row_max, highest, 0.0);
      row_max = highest;
      total *= scale;
      [[unroll]] for (uint i = 0u; i < kOwnValues; ++i) own[i] *= scale;
      for (uint first = 0u; first < kBlock; first += 4u) {
        const vec4 scores = uintBitsToFloat(tiles[kScores + first / 4u]);
        [[unroll]] for (uint n = 0u; n < 4u; ++n) {
          const float weight = unscaled_weight(scores[n], scores[n] - highest);
          total += weight;
          if (weight == 0.0) continue;  // a masked value never leaks, be it infinite
          const uint stored = stored_row(min(block * kBlock + first + n, span.reach - 1u));
          [[unroll]] for (uint i = 0u; i < kOwnValues; ++i) {
            const uint e = min(first_value() + i * kWidth + self, end_value - 1u);
            own[i] += weight * value_scale(stored, e) * load_value(value_base + stored * p.value_row + (e & ~1u), true)[e & 1u];
          }
        }
      }
    }
    [[unroll]] for (uint i = 0u; i < kOwnValues; ++i) {
      const uint e = first_value() + i * kWidth + self;
      if (e < end_value) write(row - first_row, e, own[i], row_max, total);
    }
  }
}

void main() {
  self = gl_SubgroupID * kLanes + gl_SubgroupInvocationID;
  if (!find_rows()) return;
  load_queries();
  if (self < 2u) {
    moved[self] = 0u;
    largest_bits[self] = 0u;
  }
  largest_key = largest_value = 0u;
  attend();
  barrier();
  if (kCacheType == 1u) {
    if ((largest_value & 0x80008000u) != 0u) atomicOr(largest_bits[1], largest_value & 0x80008000u);
  } else {
    atomicMax(largest_bits[0], largest_key);
    atomicMax(largest_bits[1], largest_value);
  }
  barrier();
  if (suits_f16(0u, largest_bits[0]) && suits_f16(1u, largest_bits[1])) write_rows();
  else attend_in_f32();
}
