// Scaled dot-product attention with online softmax (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023).
// A workgroup of 64 takes up to kTile rows, a row being one query of one head of a KV head's group, and walks the keys in
// blocks of 64: scores (one key per invocation), running maximum and sum, then the values (one pair per invocation).
// Tiled (kSplit 0): grid (row tiles, B * G, 1), writes the output. Split keys (kSplit 1): grid z = n_splits, block b
// belongs to split b mod n_splits, writes partials (sums, maximum, weight) that attention_combine joins.
// f32 accumulation in fixed order; K and V f32 or f16 in pairs. The finite sentinel -3e38 stands for minus infinity.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "attention.params.h"
#include "lib/step_state.glsl"

layout(local_size_x = 64) in;
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
// kTile * head width is at most 1024: the host chooses kTile so.
shared float queries_tile[1024];
shared float sums[1024];
shared float weights[kTile * 64];
shared float row_max[kTile];
shared float row_sum[kTile];
shared float row_scale[kTile];

vec2 load_pair(bool is_key, uint element, bool both) {
  if (kCacheType == 1u) return unpackHalf2x16(is_key ? key[element >> 1] : value[element >> 1]);
  const float a = uintBitsToFloat(is_key ? key[element] : value[element]);
  if (!both) return vec2(a, 0.0);
  return vec2(a, uintBitsToFloat(is_key ? key[element + 1u] : value[element + 1u]));
}

void main() {
  const uint self = gl_LocalInvocationID.x;
  const uint kv_heads = p.heads / p.group;
  const uint sequence = gl_WorkGroupID.y / kv_heads;
  const uint kv_head = gl_WorkGroupID.y % kv_heads;
  if (!sequence_active(sequence)) return;
  const uint n_queries = min(p.queries, sequence_count(sequence));
  const uint first_row = gl_WorkGroupID.x * kTile;
  const uint end_row = min(first_row + kTile, n_queries * p.group);
  if (first_row >= end_row) return;
  const uint n_rows = end_row - first_row;

  const uint length = p.has_lengths != 0u ? min(uint(max(lengths[sequence], 0)), p.keys) : p.keys;
  const int position0 = p.has_offset != 0u ? query_offset[sequence] : int(p.keys) - int(p.queries);
  const int last_position = position0 + int((end_row - 1u) / p.group);
  const uint reach = p.causal != 0u ? uint(clamp(last_position + 1, 0, int(length))) : length;
  const uint n_blocks = (reach + kBlock - 1u) / kBlock;

  const uint width = (p.head_dim + 1u) & ~1u;
  for (uint i = self; i < kTile * width; i += 64u) {
    const uint r = i / width;
    const uint d = i % width;
    const uint row = min(first_row + r, end_row - 1u);
    const uint head = kv_head * p.group + row % p.group;
    const uint at = p.query_offset + sequence * p.query_sequence + head * p.query_head + (row / p.group) * p.query_row + d;
    queries_tile[i] = d < p.head_dim ? query[at] * p.scale : 0.0;
  }
  const uint out_width = (p.value_dim + 1u) & ~1u;
  for (uint i = self; i < kTile * out_width; i += 64u) sums[i] = 0.0;
  if (self < kTile) {
    row_max[self] = kLowest;
    row_sum[self] = 0.0;
  }
  barrier();

  const uint step = kSplit == 1u ? p.n_splits : 1u;
  for (uint block = kSplit == 1u ? gl_WorkGroupID.z : 0u; block < n_blocks; block += step) {
    const uint first_key = block * kBlock;
    const uint n_keys = min(kBlock, reach - first_key);

    float scores[kTile];
    for (uint r = 0u; r < kTile; ++r) scores[r] = 0.0;
    if (self < n_keys) {
      const uint at = p.key_offset + sequence * p.key_sequence + kv_head * p.key_head + (first_key + self) * p.key_row;
      for (uint d = 0u; d < width; d += 2u) {
        const vec2 k = load_pair(true, at + d, d + 1u < p.head_dim);
        for (uint r = 0u; r < kTile; ++r) scores[r] += queries_tile[r * width + d] * k.x + queries_tile[r * width + d + 1u] * k.y;
      }
    }
    for (uint r = 0u; r < kTile; ++r) {
      const int position = position0 + int((first_row + r) / p.group);
      const bool allowed = self < n_keys && (p.causal == 0u || int(first_key + self) <= position);
      weights[r * 64u + self] = allowed ? scores[r] : kLowest;
    }
    barrier();
    if (self < kTile) {
      const float before = row_max[self];
      float highest = before;
      for (uint j = 0u; j < n_keys; ++j) highest = max(highest, weights[self * 64u + j]);
      float sum = 0.0;
      for (uint j = 0u; j < n_keys; ++j) {
        const float score = weights[self * 64u + j];
        const float weight = score > kLowest ? exp(score - highest) : (isnan(score) ? score : 0.0);
        weights[self * 64u + j] = weight;
        sum += weight;
      }
      const float scale = before > kLowest ? exp(before - highest) : 0.0;
      row_scale[self] = scale;
      row_max[self] = highest;
      row_sum[self] = row_sum[self] * scale + sum;
    }
    barrier();
    const uint value_at = p.value_offset + sequence * p.value_sequence + kv_head * p.value_head + first_key * p.value_row;
    const uint pairs = out_width / 2u;
    for (uint i = self; i < n_rows * pairs; i += 64u) {
      const uint r = i / pairs;
      const uint e = 2u * (i % pairs);
      vec2 sum = vec2(sums[r * out_width + e], sums[r * out_width + e + 1u]) * row_scale[r];
      for (uint j = 0u; j < n_keys; ++j) {
        const float weight = weights[r * 64u + j];
        if (weight != 0.0) sum += weight * load_pair(false, value_at + j * p.value_row + e, e + 1u < p.value_dim);
      }
      sums[r * out_width + e] = sum.x;
      sums[r * out_width + e + 1u] = sum.y;
    }
    barrier();
  }

  for (uint i = self; i < n_rows * p.value_dim; i += 64u) {
    const uint r = i / p.value_dim;
    const uint e = i % p.value_dim;
    const uint row = first_row + r;
    const uint head = kv_head * p.group + row % p.group;
    const uint out_row = (sequence * p.queries + row / p.group) * p.heads + head;
    const float sum = sums[r * out_width + e];
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
