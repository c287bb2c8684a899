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
layout(constant_id = 0) const uint kWidth = 128u;  // a power of two from 8 to 128; 16 kWidth is at least p.chunks
layout(std430, set = 0, binding = 1) readonly buffer Keys { uvec4 keys4[]; };
layout(std430, set = 0, binding = 1) readonly buffer KeyWords { uint keys[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { int token[]; };

const uint kChunk = RONDO_SAMPLE_CHUNK;
const uint kAdders = (kWidth + 15u) / 16u;  // invocations that add up one of 16 sums
const uint kStride = kWidth + kAdders;      // of these sums' terms, so that neighbours read different banks
const uint kShare = (kWidth + 7u) / 8u;     // invocations that share a chunk in draw
const uint kGroup = kChunk / 16u;
shared uint chunk_list[1024];  // chunks still of interest, ascending
shared float partial[16u * kStride];
shared float parts[16u * kAdders];
shared float candidates[16];
shared float shares[kWidth + 16u];
shared float in_chunk[kChunk];
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

// Sums over the listed keys >= floor_key at or above each of 16 candidates, prefix + (j << shift), into candidates[j].
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
  for (uint j = 0u; j < 16u; ++j) partial[j * kStride + self] = sums[j];
  barrier();
  for (uint i = self; i < 16u * kAdders; i += kWidth) {
    float sum = 0.0;
    for (uint k = i % kAdders; k < kWidth; k += kAdders) sum += partial[i / kAdders * kStride + k];
    parts[i] = sum;
  }
  barrier();
  for (uint j = self; j < 16u; j += kWidth) {
    float sum = 0.0;
    for (uint k = 0u; k < kAdders; ++k) sum += parts[j * kAdders + k];
    candidates[j] = sum;
  }
  barrier();
}

// The largest threshold at which the listed keys >= floor_key number at least `target`, or have that share of their mass.
uint select_threshold(float target, uint floor_key, bool by_mass) {
  uint prefix = 0u;
  for (uint pass = 0u; pass < 8u; ++pass) {
    const uint shift = 28u - 4u * pass;
    sum_candidates(prefix, shift, floor_key, by_mass);
    if (by_mass && pass == 0u) target *= candidates[0];
    uint digit = 0u;
    for (uint j = 1u; j < 16u; ++j) digit += candidates[j] >= target ? 1u : 0u;
    prefix += digit << shift;
  }
  return max(prefix, floor_key);
}

// What the kept keys of each listed chunk weigh, into partial.
void weigh_chunks(uint threshold, float temperature) {
  const uint self = gl_LocalInvocationID.x, place = self % kShare;
  for (uint first = 0u; first < n_listed; first += kWidth / kShare) {
    const uint c = first + self / kShare;
    float sum = 0.0;
    if (c < n_listed) {
      for (uint i = place; i < kChunk / 4u; i += kShare) {
        const uvec4 four = keys4[(sequence_at + chunk_list[c] * kChunk) / 4u + i];
        for (uint e = 0u; e < 4u; ++e) sum += four[e] >= threshold ? weight_of(four[e], temperature) : 0.0;
      }
    }
    shares[self] = sum;
    barrier();
    if (place == 0u && c < n_listed) {
      for (uint i = 1u; i < kShare; ++i) sum += shares[self + i];
      partial[c] = sum;
    }
    barrier();
  }
}

// The kept id at which the cumulative weight passes u of the total; ids in ascending order. All invocations find the same.
uint draw(float u, uint threshold, float temperature) {
  const uint self = gl_LocalInvocationID.x;
  weigh_chunks(threshold, temperature);
  if (n_listed == 0u) return 0u;
  // By runs of chunks, by chunks of a run, by groups of a chunk's keys, by keys of a group.
  const uint run = (n_listed + kWidth - 1u) / kWidth, n_runs = (n_listed + run - 1u) / run;
  float sum = 0.0;
  for (uint c = self * run; c < min((self + 1u) * run, n_listed); ++c) sum += partial[c];
  shares[self] = sum;
  barrier();
  float total = 0.0;
  for (uint i = 0u; i < n_runs; ++i) total += shares[i];
  // At each level the last that weighs something is taken where rounding leaves the end uncovered.
  const float end = u * total;
  uint chosen_run = 0u, chosen = 0u;
  float before = 0.0, within = 0.0;
  for (uint i = 0u; i < n_runs; ++i) {
    if (shares[i] == 0.0) continue;
    chosen_run = i;
    before = within;
    within += shares[i];
    if (within > end) break;
  }
  within = before;
  for (uint c = chosen_run * run; c < min((chosen_run + 1u) * run, n_listed); ++c) {
    if (partial[c] == 0.0) continue;
    chosen = c;
    before = within;
    within += partial[c];
    if (within > end) break;
  }

  const uint first_id = chunk_list[chosen] * kChunk;
  for (uint i = self; i < kChunk; i += kWidth) {
    const uint key = keys[sequence_at + first_id + i];
    in_chunk[i] = key >= threshold ? weight_of(key, temperature) : 0.0;
  }
  barrier();
  for (uint group = self; group < 16u; group += kWidth) {
    sum = 0.0;
    for (uint i = 0u; i < kGroup; ++i) sum += in_chunk[group * kGroup + i];
    shares[group] = sum;
  }
  barrier();
  uint group = 0u;
  within = before;
  for (uint g = 0u; g < 16u; ++g) {
    if (shares[g] == 0.0) continue;
    group = g;
    before = within;
    within += shares[g];
    if (within > end) break;
  }
  uint id = first_id;
  for (uint i = group * kGroup; i < (group + 1u) * kGroup; ++i) {
    if (in_chunk[i] == 0.0) continue;
    id = first_id + i;
    before += in_chunk[i];
    if (before > end) break;
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
