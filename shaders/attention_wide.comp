// Scaled dot-product attention with online softmax for CPU drivers; formula, partitioning and results as attention.comp.
// A workgroup is one subgroup of kWidth lanes, and takes kTile rows (a row is one query of one head of a KV head's group).
// Keys come in blocks of 4 kWidth: a lane scores four of them, from queries that the lanes load together; then it adds up
// 8 kUnits elements of the output, from values that the lanes load together. What they load they share by subgroupShuffle
// from constant lanes: llvmpipe makes a broadcast of that, and a loop of any other shuffle.
// Grid (row tiles, B * G, n_splits); split keys as in attention.comp. f32 accumulation in fixed order; K and V f32, f16 or q8_0.
// Needs: subgroups of exactly kWidth invocations, subgroupShuffle; head widths, strides and offsets multiples of 8.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 8u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kTile = 4u;
layout(constant_id = 3) const uint kSplit = 0u;
layout(constant_id = 4) const uint kPieces = 4u;  // of 8 columns, scored in one pass: min(4, D / 8)
layout(constant_id = 5) const uint kUnits = 1u;   // ceil(E / (8 kWidth))
layout(constant_id = 6) const uint kFeatures = 0u;  // ranges, of which windows back alone, soft caps, rings
layout(constant_id = 7) const uint kGroup = 4u;   // H / G
const uint kRadii = 0u, kBuckets = 0u;
layout(std430, set = 0, binding = 1) readonly buffer Query { vec4 query4[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uvec4 key4[]; };
layout(std430, set = 0, binding = 2) readonly buffer KeyPairs { uvec2 key2[]; };
layout(std430, set = 0, binding = 2) readonly buffer KeyWords { uint key[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value { uvec4 value4[]; };
layout(std430, set = 0, binding = 3) readonly buffer ValuePairs { uvec2 value2[]; };
layout(std430, set = 0, binding = 3) readonly buffer ValueWords { uint value[]; };
layout(std430, set = 0, binding = 4) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 4) readonly buffer Tables { float tables[]; };
layout(std430, set = 0, binding = 5) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask { uint mask[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output { float values[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output4 { vec4 values4[]; };
layout(std430, set = 0, binding = 7) readonly buffer OfHeads { float of_heads[]; };
#include "lib/attention.glsl"

const uint kKeys = 4u;  // of a lane in a block
const uint kBlock = kKeys * kWidth;
const uint kLoads = kWidth < 8u ? 8u / kWidth : 1u;  // vectors that a lane loads of 32 columns of a query

// 8 elements from element `d` of key `j`, a multiple of 8; the head begins at `base`.
void load_key(uint base, uint j, uint d, out vec4 low, out vec4 high) {
  Eight eight;
  RONDO_LOAD_EIGHT(key4, key2, base + j * p.key_row + d, eight)
  const float scale = key_scale(j, d);
  low = low_half(eight) * scale;
  high = high_half(eight) * scale;
}

void load_value(uint base, uint j, uint e, out uvec4 low, out uvec4 high) {
  Eight eight;
  RONDO_LOAD_EIGHT(value4, value2, base + j * p.value_row + e, eight)
  const float scale = value_scale(j, e);
  low = floatBitsToUint(low_half(eight) * scale);
  high = floatBitsToUint(high_half(eight) * scale);
}

float sum4(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

float subgroup_max(float value) {
  float highest = subgroupShuffle(value, 0u);
  [[unroll]] for (uint l = 1u; l < kWidth; ++l) highest = max(highest, subgroupShuffle(value, l));
  return highest;
}

float subgroup_sum(float value) {
  float sum = subgroupShuffle(value, 0u);
  [[unroll]] for (uint l = 1u; l < kWidth; ++l) sum += subgroupShuffle(value, l);
  return sum;
}

uint sequence, kv_head;
uint first_row, end_row, reach;  // of the tile; keys that any of its rows may see
uint query_at[kTile];
uint row_reach[kTile];  // keys that the row may see, but for those before row_first
uint row_first[kTile];
uint key_base, value_base;
float scores[kTile * kKeys];
float row_max[kTile];
float row_sum[kTile];  // of this lane's keys
vec4 sums[kTile * kUnits * 2u];

// Where the tile's rows, keys and values are; false where there is nothing to do.
bool find_rows() {
  sequence = gl_WorkGroupID.y / p.kv_heads;
  kv_head = gl_WorkGroupID.y % p.kv_heads;
  if (!sequence_active(sequence)) return false;
  first_row = gl_WorkGroupID.x * kTile;
  end_row = min(first_row + kTile, min(p.queries, sequence_count(sequence)) * kGroup);
  if (first_row >= end_row) return false;
  const Span span = span_of(sequence, first_row / kGroup, (end_row - 1u) / kGroup);
  const int position0 = span.position0;
  reach = span.reach;
  [[unroll]] for (uint r = 0u; r < kTile; ++r) {
    const uint row = min(first_row + r, end_row - 1u);
    query_at[r] = p.query_offset + sequence * p.query_sequence + (kv_head * kGroup + row % kGroup) * p.query_head + (row / kGroup) * p.query_row;
    row_reach[r] = p.causal != 0u ? min(uint(max(position0 + int(row / kGroup) + 1, 0)), reach) : reach;
    row_first[r] = has(RONDO_ATTENTION_RANGES) ? uint(max(position0 + int(row / kGroup) - p.window_back, 0)) : 0u;
    if (has(RONDO_ATTENTION_RING)) row_first[r] = max(row_first[r], uint(max(first_stored, 0)));
    row_max[r] = kLowest;
    row_sum[r] = 0.0;
  }
  key_base = p.key_offset + sequence * p.key_sequence + kv_head * p.key_head;
  value_base = p.value_offset + sequence * p.value_sequence + kv_head * p.value_head;
  [[unroll]] for (uint i = 0u; i < kTile * kUnits * 2u; ++i) sums[i] = vec4(0.0);
  return true;
}

// Products of queries and keys, not yet scaled or masked.
void score(uint block) {
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint i = 0u; i < kTile * kKeys; ++i) scores[i] = 0.0;
  for (uint column = 0u; column < p.head_dim; column += 8u * kPieces) {
    vec4 k[kKeys * kPieces * 2u];
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      const uint own_key = stored_row(min(block * kBlock + j * kWidth + lane, reach - 1u));
      [[unroll]] for (uint piece = 0u; piece < kPieces; ++piece) {
        load_key(key_base, own_key, min(column + 8u * piece, p.head_dim - 8u), k[(j * kPieces + piece) * 2u], k[(j * kPieces + piece) * 2u + 1u]);
      }
    }
    [[unroll]] for (uint r = 0u; r < kTile; ++r) {
      [[unroll]] for (uint load = 0u; load < kLoads; ++load) {
        const uint own_column = column + (load * kWidth + lane % 8u) * 4u;
        vec4 own = query4[(query_at[r] + min(own_column, p.head_dim - 4u)) >> 2];
        own = mix(vec4(0.0), own, bvec4(own_column < p.head_dim));  // columns beyond the head repeat others
        [[unroll]] for (uint l = 0u; l < min(8u / kLoads, 2u * kPieces); ++l) {
          if (load * kWidth + l >= 2u * kPieces) continue;
          const vec4 q = subgroupShuffle(own, l);
          [[unroll]] for (uint j = 0u; j < kKeys; ++j) scores[r * kKeys + j] += sum4(q * k[j * kPieces * 2u + load * kWidth + l]);
        }
      }
    }
  }
}

// Scores to weights; sums so far follow the new maxima.
void weigh(uint block) {
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint r = 0u; r < kTile; ++r) {
    float highest = kLowest;
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      const uint key = block * kBlock + j * kWidth + lane;
      const bool allowed = key < row_reach[r] && key >= row_first[r];
      float score = scores[r * kKeys + j] * p.scale;
      if (has(RONDO_ATTENTION_SOFTCAP)) score = isnan(score) ? score : p.softcap * tanh(clamp(score / p.softcap, -15.0, 15.0));
      if (score < kLowestAllowed) score = isinf(score) ? kMinusInfinity : kLowestAllowed;  // NaN stays one
      if (!allowed) score = kLowest;
      scores[r * kKeys + j] = score;
      highest = max(highest, score);
    }
    highest = max(row_max[r], subgroup_max(highest));
    const float scale = scale_to(row_max[r], highest, 0.0);
    row_max[r] = highest;
    row_sum[r] *= scale;
    [[unroll]] for (uint i = 0u; i < kUnits * 2u; ++i) sums[r * kUnits * 2u + i] *= scale;
    [[unroll]] for (uint j = 0u; j < kKeys; ++j) {
      const float score = scores[r * kKeys + j];
      const float weight = unscaled_weight(score, score - highest);
      scores[r * kKeys + j] = weight;
      row_sum[r] += weight;
    }
  }
}

void add_values(uint block) {
  const uint lane = gl_LocalInvocationID.x;
  [[dont_unroll]] for (uint j = 0u; j < kKeys; ++j) {
    float weights[kTile];
    [[unroll]] for (uint r = 0u; r < kTile; ++r) {
      const uint i = r * kKeys;
      weights[r] = j < 2u ? (j == 0u ? scores[i] : scores[i + 1u]) : (j == 2u ? scores[i + 2u] : scores[i + 3u]);
    }
    [[unroll]] for (uint l = 0u; l < kWidth; ++l) {
      const uint key = stored_row(min(block * kBlock + j * kWidth + l, reach - 1u));
      [[unroll]] for (uint unit = 0u; unit < kUnits; ++unit) {
        uvec4 low, high;
        load_value(value_base, key, min((unit * kWidth + lane) * 8u, p.value_dim - 8u), low, high);
        [[unroll]] for (uint r = 0u; r < kTile; ++r) {
          const float weight = subgroupShuffle(weights[r], l);
          const uint mask = weight == 0.0 ? 0u : ~0u;  // a masked value never leaks, be it infinite
          sums[(r * kUnits + unit) * 2u] += weight * uintBitsToFloat(low & mask);
          sums[(r * kUnits + unit) * 2u + 1u] += weight * uintBitsToFloat(high & mask);
        }
      }
    }
  }
}

void write_rows() {
  const uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint r = 0u; r < kTile; ++r) {
    const uint row = first_row + r;
    const float total = subgroup_sum(row_sum[r]);
    if (row >= end_row) continue;
    const uint out_row = (sequence * p.queries + row / kGroup) * p.heads + p.first_head + kv_head * kGroup + row % kGroup;
    [[unroll]] for (uint unit = 0u; unit < kUnits; ++unit) {
      const uint e = (unit * kWidth + lane) * 8u;
      if (e >= p.value_dim) continue;
      const vec4 low = sums[(r * kUnits + unit) * 2u], high = sums[(r * kUnits + unit) * 2u + 1u];
      if (kSplit == 0u) {
        const uint to = (out_row * p.value_dim + e) >> 2;
        const bool nothing = total == 0.0 && row_max[r] == kLowest;
        values4[to] = nothing ? vec4(0.0) : low / total;
        values4[to + 1u] = nothing ? vec4(0.0) : high / total;
      } else {
        const uint to = (out_row * p.n_splits + gl_WorkGroupID.z) * RONDO_PARTIAL_STRIDE(p.value_dim) + e;
        [[unroll]] for (uint c = 0u; c < 4u; ++c) {
          values[to + c] = low[c];
          values[to + 4u + c] = high[c];
        }
      }
    }
    if (kSplit == 1u && lane == 0u) {
      const uint to = (out_row * p.n_splits + gl_WorkGroupID.z) * RONDO_PARTIAL_STRIDE(p.value_dim) + p.value_dim;
      values[to] = row_max[r];
      values[to + 1u] = total;
    }
  }
}

void main() {
  if (!find_rows()) return;
  // Later rows of the tile see no key before the first row's first.
  for (uint block = row_first[0] / kBlock + (kSplit == 1u ? gl_WorkGroupID.z : 0u); block * kBlock < reach; block += kSplit == 1u ? p.n_splits : 1u) {
    score(block);
    weigh(block);
    add_values(block);
  }
  write_rows();
}
