// Scaled dot-product attention with online softmax (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023).
// A workgroup takes up to kTile rows, a row being one query of one head of a KV head's group, and walks the keys in blocks
// of 64: scores and running maximum, then weights and their sum, then the values (a pair of elements per invocation).
// Tiled (kSplit 0): grid (row tiles, B * G, 1), writes the output. Split keys (kSplit 1): grid z = n_splits, block b
// belongs to split b mod n_splits, writes partials (sums, maximum, weight) that attention_combine joins.
// f32 accumulation in fixed order; K and V f32 or f16 in pairs. The finite sentinel -3e38 stands for minus infinity.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "attention.params.h"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;  // at least kTile
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kTile = 4u;
layout(constant_id = 3) const uint kSplit = 0u;
layout(std430, set = 0, binding = 1) readonly buffer Query { float query[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uint key[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value { uint value[]; };
layout(std430, set = 0, binding = 4) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 5) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output { float values[]; };

const float kLowest = -3e38;
const uint kBlock = 64u;
// kTile times the width of a head is at most 1024: the host chooses kTile so.
shared float queries_tile[1024];
shared float sums[1024];
shared float weights[kTile * kBlock];
shared float partial[kTile * kWidth];
shared float row_max[kTile];
shared float row_sum[kTile];
shared float row_scale[kTile];

// What the workgroup works on.
struct Rows {
  uint sequence, kv_head;
  uint first, count;  // of the rows (query, head of the group) of this tile
  uint query_width, value_width;  // padded to 8 and to pairs
  int position0;      // of query 0
  uint reach;         // keys that any row may see
};

vec2 load_key(uint element, bool both) {
  if (kCacheType == 1u) return unpackHalf2x16(key[element >> 1]);
  return vec2(uintBitsToFloat(key[element]), both ? uintBitsToFloat(key[element + 1u]) : 0.0);
}

vec2 load_value(uint element, bool both) {
  if (kCacheType == 1u) return unpackHalf2x16(value[element >> 1]);
  return vec2(uintBitsToFloat(value[element]), both ? uintBitsToFloat(value[element + 1u]) : 0.0);
}

void load_queries(Rows rows) {
  for (uint i = gl_LocalInvocationID.x; i < kTile * rows.query_width; i += kWidth) {
    const uint d = i % rows.query_width;
    const uint row = rows.first + min(i / rows.query_width, rows.count - 1u);
    const uint head = rows.kv_head * p.group + row % p.group;
    const uint at = p.query_offset + rows.sequence * p.query_sequence + head * p.query_head + (row / p.group) * p.query_row;
    const float q = query[at + min(d, p.head_dim - 1u)];
    queries_tile[i] = mix(0.0, q * p.scale, d < p.head_dim);
  }
  for (uint i = gl_LocalInvocationID.x; i < kTile * rows.value_width; i += kWidth) sums[i] = 0.0;
  if (gl_LocalInvocationID.x < kTile) {
    row_max[gl_LocalInvocationID.x] = kLowest;
    row_sum[gl_LocalInvocationID.x] = 0.0;
  }
}

// Scores of this invocation's keys into `weights`, their maxima into `partial`.
void score(Rows rows, uint first_key, uint n_keys) {
  float highest[kTile];
  for (uint r = 0u; r < kTile; ++r) highest[r] = kLowest;
  for (uint j = gl_LocalInvocationID.x; j < n_keys; j += kWidth) {
    const uint at = p.key_offset + rows.sequence * p.key_sequence + rows.kv_head * p.key_head + (first_key + j) * p.key_row;
    float scores[kTile];
    for (uint r = 0u; r < kTile; ++r) scores[r] = 0.0;
    for (uint first = 0u; first < rows.query_width; first += 8u) {
      for (uint i = 0u; i < 8u; i += 2u) {
        const uint d = min(first + i, (p.head_dim - 1u) & ~1u);  // the padded queries are zero
        const vec2 k = load_key(at + d, d + 1u < p.head_dim);
        for (uint r = 0u; r < kTile; ++r) {
          const uint q = r * rows.query_width + first + i;
          scores[r] += queries_tile[q] * k.x + queries_tile[q + 1u] * k.y;
        }
      }
    }
    for (uint r = 0u; r < kTile; ++r) {
      const int position = rows.position0 + int((rows.first + r) / p.group);
      const bool allowed = p.causal == 0u || int(first_key + j) <= position;
      const float value = allowed ? scores[r] : kLowest;
      weights[r * kBlock + j] = value;
      highest[r] = max(highest[r], value);
    }
  }
  for (uint r = 0u; r < kTile; ++r) partial[r * kWidth + gl_LocalInvocationID.x] = highest[r];
}

// The weights of this invocation's keys, their sums into `partial`.
void weigh(uint n_keys) {
  float total[kTile];
  for (uint r = 0u; r < kTile; ++r) total[r] = 0.0;
  for (uint j = gl_LocalInvocationID.x; j < n_keys; j += kWidth) {
    for (uint r = 0u; r < kTile; ++r) {
      const float value = weights[r * kBlock + j];
      // A masked key weighs nothing; a NaN stays one.
      const float weight = value > kLowest ? exp(value - row_max[r]) : (isnan(value) ? value : 0.0);
      weights[r * kBlock + j] = weight;
      total[r] += weight;
    }
  }
  for (uint r = 0u; r < kTile; ++r) partial[r * kWidth + gl_LocalInvocationID.x] = total[r];
}

// Adds the block's weighted values; the first kTile invocations also close their row's sum of weights.
void accumulate(Rows rows, uint first_key, uint n_keys) {
  const uint self = gl_LocalInvocationID.x;
  if (self < kTile) {
    float total = row_sum[self] * row_scale[self];
    for (uint i = 0u; i < kWidth; ++i) total += partial[self * kWidth + i];
    row_sum[self] = total;
  }
  const uint at = p.value_offset + rows.sequence * p.value_sequence + rows.kv_head * p.value_head + first_key * p.value_row;
  const uint pairs = rows.value_width / 2u;
  for (uint i = self; i < rows.count * pairs; i += kWidth) {
    const uint r = i / pairs;
    const uint e = 2u * (i % pairs);
    const uint to = r * rows.value_width + e;
    vec2 sum = vec2(sums[to], sums[to + 1u]) * row_scale[r];
    for (uint first = 0u; first < n_keys; first += 4u) {
      for (uint k = 0u; k < 4u; ++k) {
        const uint j = min(first + k, n_keys - 1u);
        const float weight = first + k < n_keys ? weights[r * kBlock + j] : 0.0;
        const vec2 v = load_value(at + j * p.value_row + e, e + 1u < p.value_dim);
        sum += mix(vec2(0.0), weight * v, bvec2(weight != 0.0));  // a masked value never leaks, be it infinite
      }
    }
    sums[to] = sum.x;
    sums[to + 1u] = sum.y;
  }
}

void write_rows(Rows rows) {
  for (uint i = gl_LocalInvocationID.x; i < rows.count * p.value_dim; i += kWidth) {
    const uint r = i / p.value_dim;
    const uint e = i % p.value_dim;
    const uint row = rows.first + r;
    const uint out_row = (rows.sequence * p.queries + row / p.group) * p.heads + p.first_head + rows.kv_head * p.group + row % p.group;
    const float sum = sums[r * rows.value_width + e];
    if (kSplit == 0u) {
      values[out_row * p.value_dim + e] = row_sum[r] == 0.0 ? 0.0 : sum / row_sum[r];
    } else {
      const uint to = (out_row * p.n_splits + gl_WorkGroupID.z) * (p.value_dim + 2u);
      values[to + e] = sum;
      if (e == 0u) {
        values[to + p.value_dim] = row_max[r];
        values[to + p.value_dim + 1u] = row_sum[r];
      }
    }
  }
}

void main() {
  const uint self = gl_LocalInvocationID.x;
  Rows rows;
  rows.sequence = gl_WorkGroupID.y / p.kv_heads;
  rows.kv_head = gl_WorkGroupID.y % p.kv_heads;
  if (!sequence_active(rows.sequence)) return;
  rows.first = gl_WorkGroupID.x * kTile;
  const uint end = min(rows.first + kTile, min(p.queries, sequence_count(rows.sequence)) * p.group);
  if (rows.first >= end) return;
  rows.count = end - rows.first;
  rows.query_width = (p.head_dim + 7u) & ~7u;
  rows.value_width = (p.value_dim + 1u) & ~1u;
  const uint length = p.has_lengths != 0u ? min(uint(max(lengths[rows.sequence], 0)), p.keys) : p.keys;
  rows.position0 = p.has_offset != 0u ? query_offset[rows.sequence] : int(p.keys) - int(p.queries);
  const int last_position = rows.position0 + int((end - 1u) / p.group);
  rows.reach = p.causal != 0u ? uint(clamp(last_position + 1, 0, int(length))) : length;

  load_queries(rows);
  barrier();
  const uint n_blocks = (rows.reach + kBlock - 1u) / kBlock;
  const uint step = kSplit == 1u ? p.n_splits : 1u;
  for (uint block = kSplit == 1u ? gl_WorkGroupID.z : 0u; block < n_blocks; block += step) {
    const uint first_key = block * kBlock;
    const uint n_keys = min(kBlock, rows.reach - first_key);
    score(rows, first_key, n_keys);
    barrier();
    if (self < kTile) {
      float highest = row_max[self];
      for (uint i = 0u; i < kWidth; ++i) highest = max(highest, partial[self * kWidth + i]);
      row_scale[self] = row_max[self] > kLowest ? exp(row_max[self] - highest) : 0.0;
      row_max[self] = highest;
    }
    barrier();
    weigh(n_keys);
    barrier();
    accumulate(rows, first_key, n_keys);
    barrier();
  }
  write_rows(rows);
}
