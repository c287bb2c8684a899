// Second half of sampling: top-k, top-p (Holtzman et al. 2020), min-p (Nguyen et al. 2024), temperature, draw. No sort: a
// threshold is the largest key with enough elements, or enough probability, at or above it, found 4 bits at a time from
// sums in fixed order. Chunks whose largest key is below the threshold so far are left out. The draw inverts the cumulative
// distribution over the kept ids in ascending order with Philox4x32-10 (Salmon et al. 2011) of the token's position.
// Temperature 0: the lowest id of the largest key. One workgroup per sequence; grid (1, B). f32.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "sample.params.h"
#include "lib/philox.glsl"
#include "lib/sample_key.glsl"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;  // a power of two; 16 kWidth is at least p.chunks
layout(std430, set = 0, binding = 1) readonly buffer Keys { uvec4 keys4[]; };
layout(std430, set = 0, binding = 1) readonly buffer KeyWords { uint keys[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { int token[]; };

const uint kChunk = RONDO_SAMPLE_CHUNK;
shared uint chunk_list[1024];  // chunks still of interest, ascending
shared float partial[16u * kWidth];
shared uint counts[kWidth];

uint sequence_at;  // first key of the sequence
uint n_listed;
uint max_key;
float max_value;

// The largest value weighs 1, also where it is infinite.
float weight_of(uint key, float temperature) { return key >= max_key ? 1.0 : exp((sample_value(key) - max_value) / temperature); }

// Lists the chunks that hold a key of at least `threshold`.
void list_chunks(uint threshold) {
  const uint self = gl_LocalInvocationID.x;
  const uint each = (p.chunks + kWidth - 1u) / kWidth;
  const uint maxima = sequence_at + p.chunks * kChunk;
  const uint first = self * each, last = min(first + each, p.chunks);
  uint n = 0u;
  for (uint c = first; c < last; ++c) n += keys[maxima + c] >= threshold ? 1u : 0u;
  barrier();
  counts[self] = n;
  barrier();
  uint at = 0u;
  n_listed = 0u;
  for (uint i = 0u; i < kWidth; ++i) {
    at += i < self ? counts[i] : 0u;
    n_listed += counts[i];
  }
  for (uint c = first; c < last; ++c) {
    if (keys[maxima + c] >= threshold) chunk_list[at++] = c;
  }
  barrier();
}

// Sums over the listed keys >= floor_key at or above each of 16 candidates, prefix + (j << shift), into partial[j kWidth].
void sum_candidates(uint prefix, uint shift, uint floor_key, bool by_mass) {
  const uint self = gl_LocalInvocationID.x;
  float sums[16];
  for (uint j = 0u; j < 16u; ++j) sums[j] = 0.0;
  for (uint i = self; i < n_listed * (kChunk / 4u); i += kWidth) {
    const uvec4 four = keys4[(sequence_at + chunk_list[i / (kChunk / 4u)] * kChunk) / 4u + i % (kChunk / 4u)];
    for (uint c = 0u; c < 4u; ++c) {
      const uint key = four[c];
      float weight = key >= floor_key ? 1.0 : 0.0;
      if (by_mass) weight = key >= floor_key ? weight_of(key, 1.0) : 0.0;
      for (uint j = 0u; j < 16u; ++j) sums[j] += key >= prefix + (j << shift) ? weight : 0.0;
    }
  }
  for (uint j = 0u; j < 16u; ++j) partial[j * kWidth + self] = sums[j];
  barrier();
  for (uint step = kWidth / 2u; step > 0u; step /= 2u) {
    if (self < step) {
      for (uint j = 0u; j < 16u; ++j) partial[j * kWidth + self] += partial[j * kWidth + self + step];
    }
    barrier();
  }
}

// The largest threshold at which the listed keys >= floor_key number at least `target`, or have that share of their mass.
uint select_threshold(float target, uint floor_key, bool by_mass) {
  uint prefix = 0u;
  for (uint pass = 0u; pass < 8u; ++pass) {
    const uint shift = 28u - 4u * pass;
    sum_candidates(prefix, shift, floor_key, by_mass);
    if (by_mass && pass == 0u) target *= partial[0];
    uint digit = 0u;
    for (uint j = 1u; j < 16u; ++j) digit += partial[j * kWidth] >= target ? 1u : 0u;
    prefix += digit << shift;
    barrier();
  }
  return max(prefix, floor_key);
}

// The kept id at which the cumulative weight passes u of the total; ids in ascending order.
uint draw(float u, uint threshold, float temperature) {
  const uint self = gl_LocalInvocationID.x;
  for (uint c = self; c < n_listed; c += kWidth) {
    float sum = 0.0;
    for (uint i = 0u; i < kChunk / 4u; ++i) {
      const uvec4 four = keys4[(sequence_at + chunk_list[c] * kChunk) / 4u + i];
      for (uint e = 0u; e < 4u; ++e) sum += four[e] >= threshold ? weight_of(four[e], temperature) : 0.0;
    }
    partial[c] = sum;
  }
  barrier();
  if (self != 0u || n_listed == 0u) return 0u;
  float total = 0.0;
  for (uint c = 0u; c < n_listed; ++c) total += partial[c];
  float before = 0.0;
  uint chosen = 0u;
  while (chosen + 1u < n_listed && !(before + partial[chosen] > u * total)) before += partial[chosen++];
  uint id = 0u;
  float within = 0.0;
  for (uint i = 0u; i < kChunk; ++i) {
    const uint key = keys[sequence_at + chunk_list[chosen] * kChunk + i];
    if (key < threshold) continue;
    id = chunk_list[chosen] * kChunk + i;  // the last kept one where rounding leaves the end uncovered
    within += weight_of(key, temperature);
    if (before + within > u * total) break;
  }
  return id;
}

void main() {
  const uint sequence = gl_WorkGroupID.y;
  if (!sequence_active(sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  const uint state = sequence * RONDO_STATE_WORDS;
  const float temperature = uintBitsToFloat(step_state[state + RONDO_STATE_TEMPERATURE]);
  const uint top_k = step_state[state + RONDO_STATE_TOP_K];
  const float top_p = uintBitsToFloat(step_state[state + RONDO_STATE_TOP_P]);
  const float min_p = uintBitsToFloat(step_state[state + RONDO_STATE_MIN_P]);
  const bool greedy = temperature == 0.0;
  sequence_at = sequence * p.sequence_keys;

  // The largest key, from the chunks' own; 0 where every logit is NaN.
  uint best = 0u;
  for (uint c = self; c < p.chunks; c += kWidth) best = max(best, keys[sequence_at + p.chunks * kChunk + c]);
  counts[self] = best;
  barrier();
  max_key = 0u;
  for (uint i = 0u; i < kWidth; ++i) max_key = max(max_key, counts[i]);
  max_value = sample_value(max_key);

  uint threshold = greedy ? max(max_key, 1u) : 1u;
  const bool use_top_k = !greedy && top_k > 0u && top_k < p.vocabulary;
  // 0: the k-th largest chunk maximum, a lower bound that leaves few chunks. 1: top-k. 2: top-p.
  for (uint stage = 0u; stage < 3u; ++stage) {
    const bool wanted = stage == 0u ? use_top_k && top_k <= p.chunks : stage == 1u ? use_top_k : !greedy && top_p < 1.0;
    if (!wanted) continue;
    if (stage == 0u) {
      // The maxima follow the keys as chunks of their own.
      n_listed = (p.chunks + kChunk - 1u) / kChunk;
      if (self < n_listed) chunk_list[self] = p.chunks + self;
      barrier();
    } else {
      list_chunks(threshold);
    }
    threshold = select_threshold(stage == 2u ? top_p : float(top_k), threshold, stage == 2u);
  }
  if (!greedy && min_p > 0.0) {
    const float lowest = max_value + log(min_p);
    threshold = max(threshold, min(sample_key(lowest), max_key));
  }
  list_chunks(threshold);

  const uvec4 random = philox4x32_10(uvec4(step_state[state + RONDO_STATE_POSITION] + step_state[state + RONDO_STATE_COUNT], 0u, 0u, 0u),
                                     uvec2(step_state[state + RONDO_STATE_SEED_LOW], step_state[state + RONDO_STATE_SEED_HIGH]));
  const float u = greedy ? 0.0 : float(random.x >> 8) * (1.0 / 16777216.0);
  const uint id = draw(u, threshold, greedy ? 1.0 : temperature);
  if (self == 0u) token[sequence] = int(id);
}
