// Scaled dot-product attention with online softmax (Milakov and Gimelshein 2018; FlashAttention-2, Dao 2023).
// A workgroup takes up to kTile rows, a row being one query of one head of a KV head's group, and walks the keys in blocks
// of 64: scores and running maximum, then weights and their sum, then the values (a pair of elements per invocation).
// Tiled (kSplit 0): grid (row tiles, B * G, 1), writes the output. Split keys (kSplit 1): grid z = n_splits, block b
// belongs to split b mod n_splits, writes partials (sums, maximum, weight) that attention_combine joins.
// f32 accumulation in fixed order; K and V f32, f16 in pairs, or q8_0 in planes. The finite sentinel kLowest stands for minus infinity.
// Masks, windows, biases and the rest are specialised away where absent (kFeatures). Sinks (H) or ALiBi slopes (H; Press et al.
// 2022) come by themselves where nothing else does. With more, small inputs come in one array of tables: query offsets (B),
// lengths (B), then, where present, sinks, slopes, T5's bias (buckets, H) and bucket by distance (Raffel et al. 2020), relative
// keys and values (2 R + 1, D or E; Shaw et al. 2018).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;  // at least kTile
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kTile = 4u;
layout(constant_id = 3) const uint kSplit = 0u;
layout(constant_id = 4) const uint kFeatures = 0u;
layout(constant_id = 5) const uint kRadii = 0u;    // R of the relative keys, and of the values in the upper half
layout(constant_id = 6) const uint kBuckets = 0u;  // of T5's bias, and from which distance on the last one is used in the upper half
layout(constant_id = 7) const uint kGroup = 4u;    // H / G
layout(std430, set = 0, binding = 1) readonly buffer Query { ELEMENT query[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uint key[]; };
layout(std430, set = 0, binding = 3) readonly buffer Value { uint value[]; };
layout(std430, set = 0, binding = 4) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 4) readonly buffer Tables { float tables[]; };
layout(std430, set = 0, binding = 5) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 5) readonly buffer Mask { uint mask[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 7) readonly buffer OfHeads { float of_heads[]; };
#include "lib/attention.glsl"
#include "lib/vote.glsl"

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
  uint start, reach;  // keys that any row may see
};

int position_of(Rows rows, uint r) { return rows.position0 + int((rows.first + r) / kGroup); }
uint head_of(Rows rows, uint r) { return p.first_head + rows.kv_head * kGroup + (rows.first + r) % kGroup; }

// The score of key j for row r, from the product of both; rows beyond the last compute what nobody reads.
float row_score(float product, Rows rows, uint r, int j) {
  const uint row = min(r, rows.count - 1u);
  return finished_score(product, rows.sequence, head_of(rows, row), (rows.first + row) / kGroup, position_of(rows, row), j);
}

// Whether a mask lets some row see this invocation's keys of a block.
bool mask_shows(Rows rows, uint first_key, uint n_keys) {
  bool shows = false;
  for (uint j = gl_LocalInvocationID.x; j < n_keys; j += kWidth) {
    [[unroll]] for (uint r = 0u; r < kTile; ++r) {
      const uint row = min(r, rows.count - 1u), at = mask_row_at(rows.sequence, head_of(rows, row), (rows.first + row) / kGroup);
      shows = mask[at + (has(RONDO_ATTENTION_MASK_KEYS) ? first_key + j : 0u)] != kMaskForbids || shows;
    }
  }
  return shows;
}

// Where the relative key of row r for key j begins.
uint row_relative_key_at(Rows rows, uint r, int j) { return relative_key_at(j - position_of(rows, min(r, rows.count - 1u))); }

void load_queries(Rows rows) {
  for (uint i = gl_LocalInvocationID.x; i < kTile * rows.query_width; i += kWidth) {
    const uint d = i % rows.query_width;
    const uint row = rows.first + min(i / rows.query_width, rows.count - 1u);
    const uint head = rows.kv_head * kGroup + row % kGroup;
    const uint at = p.query_offset + rows.sequence * p.query_sequence + head * p.query_head + (row / kGroup) * p.query_row;
    const float q = from_element(query[at + min(d, p.head_dim - 1u)]);
    queries_tile[i] = mix(0.0, q * p.scale, d < p.head_dim);
  }
  for (uint i = gl_LocalInvocationID.x; i < kTile * rows.value_width; i += kWidth) sums[i] = 0.0;
  if (gl_LocalInvocationID.x < kTile) {
    // A sink is a key whose value is zero: in the first split, or the only one.
    const bool sink = has(RONDO_ATTENTION_SINKS) && gl_WorkGroupID.z == 0u;
    const uint head = head_of(rows, min(gl_LocalInvocationID.x, rows.count - 1u));
    row_max[gl_LocalInvocationID.x] = sink ? sink_of(head) : kLowest;
    row_sum[gl_LocalInvocationID.x] = sink ? 1.0 : 0.0;
  }
}

// Scores of this invocation's keys into `weights`, their maxima into `partial`.
void score(Rows rows, uint first_key, uint n_keys) {
  float highest[kTile];
  [[unroll]] for (uint r = 0u; r < kTile; ++r) highest[r] = kLowest;
  for (uint j = gl_LocalInvocationID.x; j < n_keys; j += kWidth) {
    const uint at = p.key_offset + rows.sequence * p.key_sequence + rows.kv_head * p.key_head + stored_row(first_key + j) * p.key_row;
    float scores[kTile];
    [[unroll]] for (uint r = 0u; r < kTile; ++r) scores[r] = 0.0;
    for (uint first = 0u; first < rows.query_width; first += 8u) {
      const float scale = key_scale(stored_row(first_key + j), first);
      for (uint i = 0u; i < 8u; i += 2u) {
        const uint d = min(first + i, (p.head_dim - 1u) & ~1u);  // the padded queries are zero
        const vec2 k = load_key(at + d, d + 1u < p.head_dim) * scale;
        [[unroll]] for (uint r = 0u; r < kTile; ++r) {
          const uint q = r * rows.query_width + first + i;
          scores[r] += queries_tile[q] * k.x + queries_tile[q + 1u] * k.y;
        }
      }
    }
    if (has(RONDO_ATTENTION_RELATIVE_KEY)) {
      for (uint d = 0u; d < p.head_dim; ++d) {
        [[unroll]] for (uint r = 0u; r < kTile; ++r) scores[r] += queries_tile[r * rows.query_width + d] * tables[row_relative_key_at(rows, r, int(first_key + j)) + d];
      }
    }
    [[unroll]] for (uint r = 0u; r < kTile; ++r) {
      const float value = row_score(scores[r], rows, r, int(first_key + j));
      weights[r * kBlock + j] = value;
      highest[r] = max(highest[r], value);
    }
  }
  [[unroll]] for (uint r = 0u; r < kTile; ++r) partial[r * kWidth + gl_LocalInvocationID.x] = highest[r];
}

// The weights of this invocation's keys, their sums into `partial`.
void weigh(uint n_keys) {
  float total[kTile];
  [[unroll]] for (uint r = 0u; r < kTile; ++r) total[r] = 0.0;
  for (uint j = gl_LocalInvocationID.x; j < n_keys; j += kWidth) {
    [[unroll]] for (uint r = 0u; r < kTile; ++r) {
      const float value = weights[r * kBlock + j];
      const float weight = unscaled_weight(value, value - row_max[r]);
      weights[r * kBlock + j] = weight;
      total[r] += weight;
    }
  }
  [[unroll]] for (uint r = 0u; r < kTile; ++r) partial[r * kWidth + gl_LocalInvocationID.x] = total[r];
}

// Adds the block's weighted values; the first kTile invocations also close their row's sum of weights.
void accumulate(Rows rows, uint first_key, uint n_keys) {
  const uint self = gl_LocalInvocationID.x;
  if (self < kTile) {
    float total = row_sum[self] * row_scale[self];
    for (uint i = 0u; i < kWidth; ++i) total += partial[self * kWidth + i];
    row_sum[self] = total;
  }
  const uint at = p.value_offset + rows.sequence * p.value_sequence + rows.kv_head * p.value_head + (has(RONDO_ATTENTION_RING) ? 0u : first_key * p.value_row);
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
        vec2 v = load_value(at + (has(RONDO_ATTENTION_RING) ? stored_row(first_key + j) : j) * p.value_row + e, e + 1u < p.value_dim) * value_scale(stored_row(first_key + j), e);
        if (has(RONDO_ATTENTION_RELATIVE_VALUE)) {
          const int distance = int(first_key + j) - position_of(rows, r);
          const uint relative = relative_value_at(distance) + e;
          v += vec2(tables[relative], e + 1u < p.value_dim ? tables[relative + 1u] : 0.0);
        }
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
    const uint out_row = (rows.sequence * p.queries + row / kGroup) * p.heads + p.first_head + rows.kv_head * kGroup + row % kGroup;
    const float sum = sums[r * rows.value_width + e];
    if (kSplit == 0u) {
      // Zeros where no key is allowed; 0 / 0 where all scores are minus infinity.
      values[out_row * p.value_dim + e] = to_element(row_sum[r] == 0.0 && row_max[r] == kLowest ? 0.0 : sum / row_sum[r]);
    } else {
      const uint to = (out_row * p.n_splits + gl_WorkGroupID.z) * RONDO_PARTIAL_STRIDE(p.value_dim);
      partials[to + e] = sum;
      if (e == 0u) {
        partials[to + p.value_dim] = row_max[r];
        partials[to + p.value_dim + 1u] = row_sum[r];
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
  const uint end = min(rows.first + kTile, min(p.queries, sequence_count(rows.sequence)) * kGroup);
  if (rows.first >= end) return;
  rows.count = end - rows.first;
  rows.query_width = (p.head_dim + 7u) & ~7u;
  rows.value_width = (p.value_dim + 1u) & ~1u;
  const Span span = span_of(rows.sequence, rows.first / kGroup, (end - 1u) / kGroup);
  rows.position0 = span.position0;
  rows.start = span.start;
  rows.reach = span.reach;

  load_queries(rows);
  if (has(RONDO_ATTENTION_MASK)) begin_votes(self == 0u);
  barrier();
  const uint n_blocks = (rows.reach + kBlock - 1u) / kBlock;
  const uint step = kSplit == 1u ? p.n_splits : 1u;
  const uint round = rows.start / kBlock / step * step;  // of blocks, one for each split
  for (uint block = round + (kSplit == 1u ? gl_WorkGroupID.z : 0u); block < n_blocks; block += step) {
    const uint first_key = block * kBlock;
    const uint n_keys = min(kBlock, rows.reach - first_key);
    if (has(RONDO_ATTENTION_MASK) && !vote_some(mask_shows(rows, first_key, n_keys), self == 0u)) continue;
    score(rows, first_key, n_keys);
    barrier();
    if (self < kTile) {
      float highest = row_max[self];
      for (uint i = 0u; i < kWidth; ++i) highest = max(highest, partial[self * kWidth + i]);
      row_scale[self] = scale_to(row_max[self], highest, 0.0);
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
