// attention_subgroup.comp and attention_half_subgroup.comp, which defines RONDO_HALF_QUERIES.
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kCacheType = 1u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kCluster = 16u;
layout(constant_id = 4) const uint kRows = 4u;
layout(constant_id = 5) const uint kKeys = 4u;
layout(constant_id = 6) const uint kSplit = 0u;
layout(constant_id = 7) const uint kFeatures = 0u;
layout(constant_id = 8) const uint kRadii = 0u;    // as in attention.comp
layout(constant_id = 9) const uint kBuckets = 0u;
layout(constant_id = 10) const uint kKeyWidth = 128u;    // D
layout(constant_id = 11) const uint kValueWidth = 128u;  // E
layout(constant_id = 12) const uint kRounds = 0u;        // outputs are left in bytes as well (lib/rounding.glsl), where kSplit is 0 and E a multiple of 16
layout(constant_id = 13) const uint kExchange = 0u;      // a shuffle from a lane that is no constant is a loop
layout(constant_id = 14) const uint kJoins = 0u;
layout(constant_id = 15) const uint kGroup = 4u;         // H / G: a constant divides by few instructions
layout(std430, set = 0, binding = 0) coherent buffer Arrived { uint arrived[]; };
layout(std430, set = 0, binding = 1) readonly buffer Query { ELEMENT4 query4[]; };
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
layout(std430, set = 0, binding = 6) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Rounded { uint rounded_words[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 6) writeonly buffer Partials4 { vec4 partials4[]; };
layout(std430, set = 0, binding = 7) readonly buffer OfHeads { float of_heads[]; };
layout(std430, set = 0, binding = 7) coherent buffer Joined { float joined[]; };
layout(std430, set = 0, binding = 7) coherent buffer Joined4 { vec4 joined4[]; };
#include "lib/attention.glsl"
#define RONDO_ROUNDS_BY_LANES
#include "lib/rounding.glsl"

const uint kPairs = kRows * kKeys;
const uint kClusters = kLanes / kCluster;
const uint kRound = kClusters * kKeys;
const uint kParts = kWidth / kCluster;
const uint kClusterElements = 8u * kCluster;
const uint kKeyEights = (kKeyWidth + kClusterElements - 1u) / kClusterElements;
const uint kValueEights = (kValueWidth + kClusterElements - 1u) / kClusterElements;
const uint kMostSteps = 7u;  // halvings of a subgroup

shared vec4 part_sums[kParts * kRows * kValueEights * 2u * kCluster];
shared float part_max[kParts * kRows];
shared float part_weight[kParts * kRows];

const uint kJoinedAtOnce = kLanes >= 32u ? 16u : 4u;  // as many as fit the registers of the keys and values before
shared uint n_before;  // workgroups that came before this one
const uint kRowSplits = kJoins == 1u ? kRows * RONDO_MAX_SPLITS : 1u;  // split s of row r of n: r n + s
shared float split_max[kRowSplits], split_weight[kRowSplits], split_scale[kRowSplits];

uint sequence, kv_head, first_row, end_row;  // rows of this workgroup
Span span;
uint place, cluster, first_lane;  // of this lane in its cluster, of that in the subgroup, and the cluster's first
uint own_query, own_head, own_key;  // of the pair that this lane weighs; the key behind the first of a round
int own_position;
uint key_base, value_base;
#ifdef RONDO_HALF_QUERIES
uvec4 queries[kRows * kKeyEights];  // eight halves each, in units of their row
float own_unit;                     // of the row of the pair that this lane weighs
#else
vec4 queries[kRows * kKeyEights * 2u];
#endif
vec4 sums[kRows * kValueEights * 2u];
Eight keys[kKeys * kKeyEights], vals[kKeys * kValueEights];
uint key_scales[kKeys * kKeyEights], value_scales[kKeys * kValueEights];
float pairs[kPairs];  // products, then weights, of row r and key k at r kKeys + k
float row_max, row_weight;

uint row_at(uint r) { return min(first_row + r, end_row - 1u); }
uint head_of_row(uint row) { return kv_head * kGroup + row % kGroup; }

// False where there is nothing to do.
bool find_rows() {
  sequence = divided(gl_WorkGroupID.y, p.kv_heads);
  kv_head = gl_WorkGroupID.y - sequence * p.kv_heads;
  first_row = gl_WorkGroupID.x * kRows;
  // The state, lengths and offsets are all asked for before any of them is looked at.
  const bool is_active = sequence_active(sequence);
  end_row = min(first_row + kRows, min(p.queries, sequence_count(sequence)) * kGroup);
  span = span_of(sequence, first_row / kGroup, (max(end_row, 1u) - 1u) / kGroup);
  if (!is_active || first_row >= end_row) return false;
  place = gl_SubgroupInvocationID % kCluster;
  cluster = gl_SubgroupInvocationID / kCluster;
  first_lane = gl_SubgroupInvocationID - place;
  const uint own_row = row_at(place / kKeys % kRows);
  own_head = p.first_head + head_of_row(own_row);
  own_query = own_row / kGroup;
  own_position = span.position0 + int(own_query);
  own_key = place % kKeys * kClusters;
  key_base = p.key_offset + sequence * p.key_sequence + kv_head * p.key_head;
  value_base = p.value_offset + sequence * p.value_sequence + kv_head * p.value_head;
  return true;
}

// Quad i of row r's elements that this lane multiplies.
vec4 scaled_query(uint r, uint i) {
  const uint row = row_at(r), at = p.query_offset + sequence * p.query_sequence + head_of_row(row) * p.query_head + (row / kGroup) * p.query_row;
  const uint d = (i >> 1) * kClusterElements + place * 8u + (i & 1u) * 4u;
  const vec4 q = p.scale * from_elements(query4[(at + min(d, kKeyWidth - 4u)) >> 2]);
  return mix(vec4(0.0), q, bvec4(d < kKeyWidth));
}

#ifdef RONDO_HALF_QUERIES
// Multiples of a power of two, of which the largest has 15 bits.
void begin_queries() {
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    vec4 quads[kKeyEights * 2u];
    float largest = 0.0;
    [[unroll]] for (uint i = 0u; i < kKeyEights * 2u; ++i) {
      quads[i] = scaled_query(r, i);
      largest = max(largest, max(max(abs(quads[i].x), abs(quads[i].y)), max(abs(quads[i].z), abs(quads[i].w))));
    }
    [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
      if (1u << i < kCluster) largest = max(largest, subgroupShuffleXor(largest, 1u << i));
    }
    const uint exponent = clamp((floatBitsToUint(largest) >> 23) & 0xffu, 16u, 254u);
    const bool is_finite = floatBitsToUint(largest) < 0x7f800000u;
    const float unit = is_finite ? uintBitsToFloat((exponent - 14u) << 23) : 1.0, inverse = is_finite ? uintBitsToFloat((268u - exponent) << 23) : 1.0;
    [[unroll]] for (uint c = 0u; c < kKeyEights; ++c) queries[r * kKeyEights + c] = uvec4(to_halves(inverse * quads[c * 2u]), to_halves(inverse * quads[c * 2u + 1u]));
    if (r == place / kKeys % kRows) own_unit = unit;
  }
}
#else
void begin_queries() {
  [[unroll]] for (uint i = 0u; i < kRows * kKeyEights * 2u; ++i) queries[i] = scaled_query(i / (kKeyEights * 2u), i % (kKeyEights * 2u));
}
#endif

void begin() {
  begin_queries();
  [[unroll]] for (uint i = 0u; i < kRows * kValueEights * 2u; ++i) sums[i] = vec4(0.0);
  row_max = kLowest;
  row_weight = 0.0;
  // A sink is a key whose value is zero, in one cluster of all.
  if (has(RONDO_ATTENTION_SINKS) && gl_WorkGroupID.z == 0u && gl_SubgroupID == 0u && cluster == 0u) {
    row_max = sink_of(own_head);
    if (place % kKeys == 0u) row_weight = 1.0;
  }
}

// Key k of a cluster's is first_key + k kClusters.
void load(uint first_key) {
  [[unroll]] for (uint k = 0u; k < kKeys; ++k) {
    const uint row = stored_row(min(first_key + k * kClusters, span.reach - 1u));
    [[unroll]] for (uint c = 0u; c < kKeyEights; ++c) {
      const uint d = min(c * kClusterElements + place * 8u, kKeyWidth - 8u);
      RONDO_LOAD_EIGHT(key4, key2, key_base + row * p.key_row + d, keys[k * kKeyEights + c])
      if (kCacheType == 2u) key_scales[k * kKeyEights + c] = key[scale_at(row, p.key_row, d)];
    }
    [[unroll]] for (uint c = 0u; c < kValueEights; ++c) {
      const uint e = min(c * kClusterElements + place * 8u, kValueWidth - 8u);
      RONDO_LOAD_EIGHT(value4, value2, value_base + row * p.value_row + e, vals[k * kValueEights + c])
      if (kCacheType == 2u) value_scales[k * kValueEights + c] = value[scale_at(row, p.value_row, e)];
    }
  }
}

// Whether a mask lets some row see some key of a round; for all lanes of a subgroup.
bool mask_shows(uint first_key) {
  const uint at = mask_row_at(sequence, own_head, own_query) + (has(RONDO_ATTENTION_MASK_KEYS) ? min(first_key + own_key, span.reach - 1u) : 0u);
  uint shows = mask[at] != kMaskForbids ? 1u : 0u;
  [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
    if (1u << i < kLanes) shows |= subgroupShuffleXor(shows, 1u << i);
  }
  return shows != 0u;
}

// Products of this lane's elements.
#ifdef RONDO_HALF_QUERIES
void multiply(uint first_key) {
  [[unroll]] for (uint i = 0u; i < kPairs; ++i) pairs[i] = 0.0;
  [[unroll]] for (uint i = 0u; i < kKeys * kKeyEights; ++i) {
    const uint k = i / kKeyEights, c = i % kKeyEights;
    uvec4 halves = keys[i].low;
    if (kKeyWidth % kClusterElements != 0u) halves = mix(uvec4(0u), halves, bvec4(c * kClusterElements + place * 8u < kKeyWidth));  // what is read for lanes behind the head may be an infinity
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      [[unroll]] for (uint n = 0u; n < 4u; ++n) pairs[r * kKeys + k] = add_dot(pair_of(queries[r * kKeyEights + c][n]), pair_of(halves[n]), pairs[r * kKeys + k]);
    }
  }
}
#else
void multiply(uint first_key) {
  [[unroll]] for (uint i = 0u; i < kPairs; ++i) pairs[i] = 0.0;
  [[unroll]] for (uint i = 0u; i < kKeys * kKeyEights; ++i) {
    const uint k = i / kKeyEights, c = i % kKeyEights, d = c * kClusterElements + place * 8u;
    vec4 low = low_half(keys[i]), high = high_half(keys[i]);
    if (kKeyWidth % kClusterElements != 0u) {  // what is read for lanes behind the head may be an infinity
      low = mix(vec4(0.0), low, bvec4(d < kKeyWidth));
      high = mix(vec4(0.0), high, bvec4(d < kKeyWidth));
    }
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      const vec4 q_low = queries[(r * kKeyEights + c) * 2u], q_high = queries[(r * kKeyEights + c) * 2u + 1u];
      float sum = kCacheType == 2u ? 0.0 : pairs[r * kKeys + k];
      sum += low.x * q_low.x;
      sum += low.y * q_low.y;
      sum += low.z * q_low.z;
      sum += low.w * q_low.w;
      sum += high.x * q_high.x;
      sum += high.y * q_high.y;
      sum += high.z * q_high.z;
      sum += high.w * q_high.w;
      if (kCacheType == 2u) sum = pairs[r * kKeys + k] + sum * group_scale(key_scales[i], d);
      if (has(RONDO_ATTENTION_RELATIVE_KEY)) {
        const uint at = relative_key_at(int(first_key + k * kClusters) - span.position0 - int(row_at(r) / kGroup)) + min(d, kKeyWidth - 8u);
        [[unroll]] for (uint n = 0u; n < 4u; ++n) sum += tables[at + n] * q_low[n] + tables[at + 4u + n] * q_high[n];
      }
      pairs[r * kKeys + k] = sum;
    }
  }
}
#endif

// The product of this lane's pair: of each two lanes one keeps the upper half of the pairs and one the lower, until each has one, and
// those that have the same add what they have.
float add_up() {
  [[unroll]] for (uint i = 1u; i <= kMostSteps; ++i) {
    const uint half_pairs = kPairs >> i;
    if (half_pairs != 0u) {
      const bool upper = (gl_SubgroupInvocationID & half_pairs) != 0u;
      [[unroll]] for (uint n = 0u; n < half_pairs; ++n) {
        const float kept = upper ? pairs[n + half_pairs] : pairs[n], given = upper ? pairs[n] : pairs[n + half_pairs];
        pairs[n] = kept + subgroupShuffleXor(given, half_pairs);
      }
    }
  }
  float sum = pairs[0];
  [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
    if (kPairs << i < kCluster) sum += subgroupShuffleXor(sum, kPairs << i);
  }
#ifdef RONDO_HALF_QUERIES
  sum *= own_unit;
#endif
  return sum;
}

// What each lane has of its pair, to all of them, and what it has of its row: lanes exchange what they have with ever more distant ones.
void exchange(float weight, float rescale, out float scales[kRows]) {
  pairs[0] = weight;
  scales[0] = rescale;
  [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
    const bool upper = (gl_SubgroupInvocationID & (1u << i)) != 0u, upper_row = (gl_SubgroupInvocationID & (kKeys << i)) != 0u;
    // By bounds that don't depend on i, or compilers leave the loops as they are.
    [[unroll]] for (uint n = 0u; n < kPairs / 2u; ++n) {
      if (n < 1u << i && 1u << i < kPairs) {
        const float own = pairs[n], other = subgroupShuffleXor(own, 1u << i);
        pairs[n] = upper ? other : own;
        pairs[n + (1u << i)] = upper ? own : other;
      }
    }
    [[unroll]] for (uint n = 0u; n < kRows / 2u; ++n) {
      if (n < 1u << i && 1u << i < kRows) {
        const float own = scales[n], other = subgroupShuffleXor(own, kKeys << i);
        scales[n] = upper_row ? other : own;
        scales[n + (1u << i)] = upper_row ? own : other;
      }
    }
  }
}

// Products to weights; sums so far follow the new maxima.
void weigh(float product, uint first_key) {
  const uint j = first_key + own_key;
  const float score = j < span.reach ? finished_score(product, sequence, own_head, own_query, own_position, int(j)) : kLowest;
  float highest = score;
  [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
    if (1u << i < kKeys) highest = max(highest, subgroupShuffleXor(highest, 1u << i));
  }
  highest = max(row_max, highest);
  const float rescale = scale_to(row_max, highest, 0.0), weight = unscaled_weight(score, score - highest);
  row_max = highest;
  row_weight = row_weight * rescale + weight;
  float scales[kRows];
  if (kExchange == 1u) {
    exchange(weight, rescale, scales);
  } else {
    [[unroll]] for (uint i = 0u; i < kPairs; ++i) pairs[i] = subgroupShuffle(weight, first_lane + i);
    [[unroll]] for (uint r = 0u; r < kRows; ++r) scales[r] = subgroupShuffle(rescale, first_lane + r * kKeys);
  }
  [[unroll]] for (uint r = 0u; r < kRows; ++r) {
    [[unroll]] for (uint i = 0u; i < kValueEights * 2u; ++i) sums[r * kValueEights * 2u + i] *= scales[r];
  }
}

void add_values(uint first_key) {
  [[unroll]] for (uint i = 0u; i < kKeys * kValueEights; ++i) {
    const uint k = i / kValueEights, c = i % kValueEights, e = c * kClusterElements + place * 8u;
    // A masked value never leaks, be it infinite: where all rows see the same keys, it is taken for zeros.
    uint seen = 0u;
    [[unroll]] for (uint r = 0u; r < kRows; ++r) seen |= floatBitsToUint(pairs[r * kKeys + k]);
    Eight words = vals[i];
    const uint kept = seen != 0u ? ~0u : 0u;
    if (kCacheType == 2u) value_scales[i] &= kept;  // the bytes are finite
    else words.low &= kept;
    if (kCacheType == 0u) words.high &= kept;
    const vec4 low = low_half(words), high = high_half(words);
    [[unroll]] for (uint r = 0u; r < kRows; ++r) {
      const uint to = (r * kValueEights + c) * 2u;
      const float weight = pairs[r * kKeys + k];
      if (!has(RONDO_ATTENTION_ROWS_DIFFER) || weight != 0.0) {
        const float scaled = kCacheType == 2u ? weight * group_scale(value_scales[i], e) : weight;
        sums[to] += scaled * low;
        sums[to + 1u] += scaled * high;
        if (has(RONDO_ATTENTION_RELATIVE_VALUE)) {
          const uint at = relative_value_at(int(first_key + k * kClusters) - span.position0 - int(row_at(r) / kGroup)) + min(e, kValueWidth - 8u);
          sums[to] += weight * vec4(tables[at], tables[at + 1u], tables[at + 2u], tables[at + 3u]);
          sums[to + 1u] += weight * vec4(tables[at + 4u], tables[at + 5u], tables[at + 6u], tables[at + 7u]);
        }
      }
    }
  }
}

// What this cluster has of each row, for all invocations.
void keep_part() {
  [[unroll]] for (uint i = 0u; i < kMostSteps; ++i) {
    if (1u << i < kKeys) row_weight += subgroupShuffleXor(row_weight, 1u << i);
  }
  const uint part = gl_SubgroupID * kClusters + cluster;
  [[unroll]] for (uint i = 0u; i < kRows * kValueEights * 2u; ++i) part_sums[(part * kRows * kValueEights * 2u + i) * kCluster + place] = sums[i];
  if (place < kPairs && place % kKeys == 0u) {
    part_max[part * kRows + place / kKeys] = row_max;
    part_weight[part * kRows + place / kKeys] = row_weight;
  }
}

uint row_of_output(uint r) { return (sequence * p.queries + (first_row + r) / kGroup) * p.heads + p.first_head + head_of_row(first_row + r); }
uint partials_of(uint r, uint split) { return (row_of_output(r) * p.n_splits + split) * RONDO_PARTIAL_STRIDE(kValueWidth); }

// Four elements of row `first_row + r` from element e on, unless they are those of another lane. With kRounds all lanes of a subgroup call.
void write_output(uint r, uint e, bool own, vec4 sum, float total, float highest) {
  // Zeros where no key is allowed; 0 / 0 where all scores are minus infinity.
  if (total == 0.0 && highest == kLowest) total = 1.0;
  sum /= total;
  RoundedQuad rounded;
  if (kRounds == 1u) rounded = round_quad(sum, 4u);
  if (!own) return;
  const uint out_row = row_of_output(r);
  [[unroll]] for (uint n = 0u; n < 4u; ++n) values[out_row * kValueWidth + e + n] = to_element(sum[n]);
  if (kRounds == 1u) {
    const uint elements = gl_NumWorkGroups.y / p.kv_heads * p.queries * p.heads * kValueWidth, at = out_row * kValueWidth + e;
    rounded_words[byte_word(elements, at)] = rounded.bytes;
    if ((at & 15u) == 0u) rounded_words[scale_word_of(elements, at)] = rounded.scale;
  }
}

// Those of this workgroup, which are all that there are if it is alone.
void write_elements(uint r, uint e, bool own, bool alone) {
  float highest = kLowest, total = 0.0;
  for (uint part = 0u; part < kParts; ++part) highest = max(highest, part_max[part * kRows + r]);
  vec4 sum = vec4(0.0);
  for (uint part = 0u; part < kParts; ++part) {
    const float scale = scale_to(part_max[part * kRows + r], highest, 1.0);
    total += scale * part_weight[part * kRows + r];
    sum += scale * part_sums[((part * kRows + r) * kValueEights * 2u + e / kClusterElements * 2u + (e >> 2) % 2u) * kCluster + (e >> 3) % kCluster];
  }
  if (alone) {
    write_output(r, e, own, sum, total, highest);
    return;
  }
  if (!own) return;
  const uint to = partials_of(r, gl_WorkGroupID.z);
  if (kJoins == 1u) {
    joined4[(to + e) >> 2] = sum;
    if (e != 0u) return;
    joined[to + kValueWidth] = highest;
    joined[to + kValueWidth + 1u] = total;
  } else {
    if (total != 0.0) partials4[(to + e) >> 2] = sum;  // else nobody reads it
    if (e != 0u) return;
    partials[to + kValueWidth] = highest;
    partials[to + kValueWidth + 1u] = total;
  }
}

// True in the last of these workgroups to come, which then sees what all of them have written.
bool is_last(uint n_workgroups) {
  const uint at = sequence * RONDO_STATE_WORDS + RONDO_STATE_ARRIVED + gl_WorkGroupID.x * p.kv_heads + kv_head;
  const bool first_invocation = gl_SubgroupID == 0u && gl_SubgroupInvocationID == 0u;
  memoryBarrierBuffer();
  barrier();
  if (first_invocation) n_before = atomicAdd(arrived[at], 1u);
  barrier();
  if (n_before + 1u != n_workgroups) return false;
  memoryBarrierBuffer();
  if (first_invocation) atomicExchange(arrived[at], 0u);
  return true;
}

float highest_split(uint n_splits, uint r) {
  float highest = kLowest;
  for (uint s = 0u; s < n_splits; ++s) highest = max(highest, split_max[r * n_splits + s]);
  return highest;
}

// What each split of each row counts, found by one invocation.
void weigh_splits(uint n_splits, uint own) {
  const uint n = (end_row - first_row) * n_splits;
  for (uint i = own; i < n; i += kWidth) {
    const uint at = partials_of(i / n_splits, i % n_splits) + kValueWidth;
    split_max[i] = joined[at];
    split_weight[i] = joined[at + 1u];
  }
  barrier();
  for (uint i = own; i < n; i += kWidth) {
    const float weight = split_weight[i], scale = scale_of_split(split_max[i], weight, highest_split(n_splits, i / n_splits));
    split_scale[i] = scale;
    split_weight[i] = scale * weight;
  }
  barrier();
}

void join_elements(uint n_splits, uint r, uint e, bool own) {
  float total = 0.0;
  vec4 sum = vec4(0.0);
  for (uint first = 0u; first < n_splits; first += kJoinedAtOnce) {
    vec4 stored[kJoinedAtOnce];
    [[unroll]] for (uint n = 0u; n < kJoinedAtOnce; ++n) stored[n] = joined4[(partials_of(r, min(first + n, n_splits - 1u)) + e) >> 2];
    [[unroll]] for (uint n = 0u; n < kJoinedAtOnce; ++n) {
      const uint split = r * n_splits + min(first + n, n_splits - 1u);
      const float counts = first + n < n_splits ? 1.0 : 0.0;
      total += counts * split_weight[split];
      sum += counts * split_scale[split] * stored[n];
    }
  }
  write_output(r, e, own, sum, total, highest_split(n_splits, r));
}

void main() {
  if (!find_rows()) return;
  const uint kSubgroups = kWidth / kLanes, first_round = span.start / kRound;
  uint n_splits = p.n_splits;
  if (kJoins == 1u) {
    const uint end_round = (span.reach + kRound - 1u) / kRound;
    n_splits = clamp((max(end_round, first_round) - first_round + kSubgroups - 1u) / kSubgroups, 1u, n_splits);
    if (gl_WorkGroupID.z >= n_splits) return;
  }
  begin();
  for (uint round = first_round + gl_SubgroupID * n_splits + gl_WorkGroupID.z; round * kRound < span.reach; round += kSubgroups * n_splits) {
    const uint first_key = round * kRound + cluster;
    if (has(RONDO_ATTENTION_MASK) && !mask_shows(first_key)) continue;
    load(first_key);
    multiply(first_key);
    weigh(add_up(), first_key);
    add_values(first_key);
  }
  keep_part();
  barrier();
  const bool alone = kSplit == 0u || (kJoins == 1u && n_splits == 1u);
  const uint quads = (end_row - first_row) * (kValueWidth / 4u), own_first = gl_SubgroupID * kLanes + gl_SubgroupInvocationID;
  for (uint first = 0u; first < quads; first += kWidth) {
    const uint own = first + own_first, i = min(own, quads - 1u);  // lanes side by side have neighbouring quads
    if (kRounds == 1u || own < quads) write_elements(i / (kValueWidth / 4u), i % (kValueWidth / 4u) * 4u, own < quads, alone);
  }
  if (kJoins == 0u || alone || !is_last(n_splits)) return;
  weigh_splits(n_splits, own_first);
  for (uint first = 0u; first < quads; first += kWidth) {
    const uint own = first + own_first, i = min(own, quads - 1u);
    if (kRounds == 1u || own < quads) join_elements(n_splits, i / (kValueWidth / 4u), i % (kValueWidth / 4u) * 4u, own < quads);
  }
}
