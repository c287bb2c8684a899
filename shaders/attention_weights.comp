// The softmax weights of attention: one query of one head beside all keys; 0 of keys that are not allowed.
// Grid (Q * group, B * G, 1), a row of the output (B, H, Q, S) a workgroup. It walks the keys three times: scores and their
// maximum, weights and their sum, the quotients. Between the walks the row holds what the next one takes; an invocation reads what it wrote.
// f32 accumulation in fixed order; keys f32, f16 in pairs, or q8_0 in planes. Inputs, tables and features as in attention.comp;
// column c of keys in a ring is the key that is stored in row c.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kFeatures = 0u;
layout(constant_id = 3) const uint kRadii = 0u;    // R of the relative keys
layout(constant_id = 4) const uint kBuckets = 0u;  // of T5's bias, and from which distance on the last one is used in the upper half
layout(std430, set = 0, binding = 1) readonly buffer Query { ELEMENT query[]; };
layout(std430, set = 0, binding = 2) readonly buffer Key { uint key[]; };
layout(std430, set = 0, binding = 3) readonly buffer Offset { int query_offset[]; };
layout(std430, set = 0, binding = 3) readonly buffer Tables { float tables[]; };
layout(std430, set = 0, binding = 4) readonly buffer Lengths { int lengths[]; };
layout(std430, set = 0, binding = 4) readonly buffer Mask { uint mask[]; };
layout(std430, set = 0, binding = 5) buffer Weights { float weights[]; };
layout(std430, set = 0, binding = 6) readonly buffer OfHeads { float of_heads[]; };
#define RONDO_ATTENTION_WITHOUT_VALUES
#include "lib/attention.glsl"

shared float scaled_query[512];  // the widest head, padded to 8
shared float partial[kWidth];

// The key in column c; none where it is negative or not below `length`.
int key_in(uint c, int length) {
  if (!has(RONDO_ATTENTION_RING)) return int(c);
  const int behind = length - 1 - int(c), rows = int(p.keys);
  return behind >= 0 ? int(c) + behind / rows * rows : int(c) - rows;
}

void load_query(uint at) {
  for (uint d = gl_LocalInvocationID.x; d < ((p.head_dim + 7u) & ~7u); d += kWidth) {
    scaled_query[d] = mix(0.0, from_element(query[at + min(d, p.head_dim - 1u)]) * p.scale, d < p.head_dim);
  }
}

// The product of the query with the key of row c, which begins at `at`, and with the relative key for this distance.
float product_of(uint c, uint at, int distance) {
  float sum = 0.0;
  for (uint first = 0u; first < p.head_dim; first += 8u) {
    const float scale = key_scale(c, first);
    for (uint i = 0u; i < 8u; i += 2u) {
      const uint d = min(first + i, (p.head_dim - 1u) & ~1u);  // the padded query is zero
      const vec2 k = load_key(at + d, d + 1u < p.head_dim) * scale;
      sum += scaled_query[first + i] * k.x + scaled_query[first + i + 1u] * k.y;
    }
  }
  if (has(RONDO_ATTENTION_RELATIVE_KEY)) {
    const uint relative = relative_key_at(distance);
    for (uint d = 0u; d < p.head_dim; ++d) sum += scaled_query[d] * tables[relative + d];
  }
  return sum;
}

void main() {
  const uint self = gl_LocalInvocationID.x;
  const uint sequence = gl_WorkGroupID.y / p.kv_heads, kv_head = gl_WorkGroupID.y % p.kv_heads;
  const uint row = gl_WorkGroupID.x / p.group, head_of_group = gl_WorkGroupID.x % p.group;
  if (!sequence_active(sequence) || row >= min(p.queries, sequence_count(sequence))) return;
  const uint head = p.first_head + kv_head * p.group + head_of_group;
  const Span span = span_of(sequence, row, row);
  const int length = span.n_keys, position = span.position0 + int(row);

  load_query(p.query_offset + sequence * p.query_sequence + (kv_head * p.group + head_of_group) * p.query_head + row * p.query_row);
  barrier();
  const uint to = ((sequence * p.heads + head) * p.queries + row) * p.keys;
  float highest = kLowest;
  for (uint c = self; c < p.keys; c += kWidth) {
    const int j = key_in(c, length);
    const float product = product_of(c, p.key_offset + sequence * p.key_sequence + kv_head * p.key_head + c * p.key_row, j - position);
    const float score = j >= 0 && j < length ? finished_score(product, sequence, head, row, position, max(j, 0)) : kLowest;
    weights[to + c] = score;
    highest = max(highest, score);
  }
  partial[self] = highest;
  barrier();
  highest = has(RONDO_ATTENTION_SINKS) ? sink_of(head) : kLowest;
  for (uint i = 0u; i < kWidth; ++i) highest = max(highest, partial[i]);
  barrier();

  float total = 0.0;
  for (uint c = self; c < p.keys; c += kWidth) {
    const float score = weights[to + c];
    const float weight = unscaled_weight(score, score - highest);
    total += weight;
    weights[to + c] = score == kLowest ? kLowest : weight;
  }
  partial[self] = total;
  barrier();
  total = has(RONDO_ATTENTION_SINKS) ? unscaled_weight(sink_of(head), sink_of(head) - highest) : 0.0;
  for (uint i = 0u; i < kWidth; ++i) total += partial[i];

  for (uint c = self; c < p.keys; c += kWidth) {
    const float weight = weights[to + c];
    weights[to + c] = weight == kLowest ? 0.0 : weight / total;
  }
}
