// Second half of sampling: top-k, top-p (Holtzman et al. 2020), min-p (Nguyen et al. 2024), temperature, draw, of the keys and largest keys
// that sample_scores.comp leaves. One workgroup per sequence; grid (1, B). f32. The draw inverts the cumulative distribution over the kept ids in ascending order with Philox4x32-10
// (Salmon et al. 2011) of the token's position. Temperature 0: the lowest id of the largest key.
// Most often few keys can be kept: those above a bound that as many chunks reach as are wanted at least. They are put in order in shared memory, where the rest is
// done. Where they are too many (ties, or a distribution as flat as that), a threshold is the largest key with enough
// elements, or enough probability, at or above it, found 4 bits at a time from sums over all keys of chunks that reach the threshold so far. Sums are in fixed order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "sample.params.h"
#include "lib/philox.glsl"
#include "lib/sample_key.glsl"
#include "lib/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;  // 64 or 128, or 8 where there are at most 64 chunks
layout(std430, set = 0, binding = 1) readonly buffer Keys { uvec4 keys4[]; };
layout(std430, set = 0, binding = 1) readonly buffer KeyWords { uint keys[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { int token[]; };

const uint kChunk = RONDO_SAMPLE_CHUNK;
const uint kMost = kWidth == 8u ? 8u : 1024u / kWidth;  // chunks of an invocation
const uint kCandidates = kWidth == 8u ? 256u : 512u;    // keys that are put in order: of 8 invocations few enough for a CPU driver's bound on loops
const uint kGuess = 64u;  // candidates of top-p without top-k
const uint kBoundDigits = 5u;
const uint kAtOnce = 4u;  // loads of an invocation before it looks at the first
const uint kAdders = (kWidth + 15u) / 16u;  // invocations that add up one of 16 sums
const uint kStride = kWidth + kAdders;      // of these sums' terms, so that neighbours read different banks
const uint kShare = (kWidth + 7u) / 8u;     // invocations that share a chunk in draw
const uint kGroup = kChunk / 16u;
const uint kTerms = 16u * kStride, kInOrder = 2u * kCandidates, kWords = kTerms > 2u * kInOrder ? kTerms : 2u * kInOrder;
shared uint chunk_list[1024];  // chunks still of interest, ascending
// Terms of 16 sums, f32; or what kept keys of chunks weigh; or candidates' keys, then ids, as they were found, and in their place later weights of temperature 1, then of the
// sequence's; and from kInOrder on keys, then ids, in descending order, of equal ones in that of ids.
shared uint words[kWords];
shared float parts[16u * kAdders];
shared float totals[16];
shared float shares[kWidth + 16u];
shared float in_chunk[kChunk];
shared uint counts[kWidth];
shared uint n_found, drawn_id, last_weighing_id;

uint sequence_at;  // first key of the sequence
uint first_chunk;  // of this invocation
uint maxima[kMost];
uint n_listed;
uint max_key;
float max_value;
float sums[16];

float word(uint i) { return uintBitsToFloat(words[i]); }
uint key_in_order(uint i) { return words[kInOrder + i]; }
uint id_in_order(uint i) { return words[kInOrder + kCandidates + i]; }

// The largest value weighs 1, also where it is infinite.
float weight_of(uint key, float temperature) { return key >= max_key ? 1.0 : exp((sample_value(key) - max_value) / temperature); }

// The largest keys of this invocation's chunks, and the largest of all; 0 where every logit is NaN.
void load_maxima() {
  const uint self = gl_LocalInvocationID.x, each = (p.chunks + kWidth - 1u) / kWidth;
  first_chunk = self * each;
  [[unroll]] for (uint i = 0u; i < kMost; ++i) maxima[i] = keys[sequence_at + RONDO_SAMPLE_LARGEST_AT(p.chunks) + min(first_chunk + i, p.chunks - 1u)];
  uint best = 0u;
  [[unroll]] for (uint i = 0u; i < kMost; ++i) {
    if (i >= each || first_chunk + i >= p.chunks) maxima[i] = 0u;
    best = max(best, maxima[i]);
  }
  counts[self] = best;
  barrier();
  max_key = 0u;
  for (uint i = 0u; i < kWidth; ++i) max_key = max(max_key, counts[i]);
  max_value = sample_value(max_key);
}

// A chunk's mass, relative to the largest key of all, with the divisor that masses have.
float mass_of(uint chunk, float divisor) {
  const uint largest = keys[sequence_at + RONDO_SAMPLE_LARGEST_AT(p.chunks) + chunk];
  if (largest == 0u) return 0.0;
  return uintBitsToFloat(keys[sequence_at + RONDO_SAMPLE_MASSES_AT(p.chunks) + chunk]) * weight_of(largest, divisor);
}

// The mass of all keys, with a divisor of 1.
float mass_of_all() {
  const uint self = gl_LocalInvocationID.x;
  float mass = 0.0;
  for (uint c = self; c < p.chunks; c += kWidth) mass += mass_of(c, 1.0);
  shares[self] = mass;
  barrier();
  mass = 0.0;
  for (uint i = 0u; i < kWidth; ++i) mass += shares[i];
  return mass;
}

// Lists the chunks that hold a key of at least `threshold`, which is not 0.
void list_chunks(uint threshold) {
  const uint self = gl_LocalInvocationID.x;
  uint n = 0u;
  [[unroll]] for (uint i = 0u; i < kMost; ++i) n += maxima[i] >= threshold ? 1u : 0u;
  barrier();
  counts[self] = n;
  barrier();
  uint at = 0u;
  n_listed = 0u;
  for (uint i = 0u; i < kWidth; ++i) {
    at += i < self ? counts[i] : 0u;
    n_listed += counts[i];
  }
  [[unroll]] for (uint i = 0u; i < kMost; ++i) {
    if (maxima[i] >= threshold) chunk_list[at++] = first_chunk + i;
  }
  barrier();
}

// All invocations' sums, into totals.
void add_up() {
  const uint self = gl_LocalInvocationID.x;
  [[unroll]] for (uint j = 0u; j < 16u; ++j) words[j * kStride + self] = floatBitsToUint(sums[j]);
  barrier();
  for (uint i = self; i < 16u * kAdders; i += kWidth) {
    float sum = 0.0;
    for (uint k = i % kAdders; k < kWidth; k += kAdders) sum += word(i / kAdders * kStride + k);
    parts[i] = sum;
  }
  barrier();
  for (uint j = self; j < 16u; j += kWidth) {
    float sum = 0.0;
    for (uint k = 0u; k < kAdders; ++k) sum += parts[j * kAdders + k];
    totals[j] = sum;
  }
  barrier();
}

// How many of 15 totals, which descend, reach the target.
uint digit_of(float target) {
  uint digit = 0u;
  for (uint j = 1u; j < 16u; ++j) digit += totals[j] >= target ? 1u : 0u;
  return digit;
}

// A key that at least `target` chunks reach, nearly the largest such; or 1 where not so many have a number.
uint bound_of(float target) {
  uint prefix = 0u;
  for (uint pass = 0u; pass < kBoundDigits; ++pass) {
    const uint shift = 28u - 4u * pass;
    [[unroll]] for (uint j = 0u; j < 16u; ++j) {
      sums[j] = 0.0;
      [[unroll]] for (uint i = 0u; i < kMost; ++i) sums[j] += maxima[i] >= max(prefix + (j << shift), 1u) ? 1.0 : 0.0;
    }
    add_up();
    prefix += digit_of(target) << shift;
  }
  return max(prefix, 1u);
}

// Finds the keys >= threshold of the listed chunks, in no order.
void find_candidates(uint threshold) {
  const uint self = gl_LocalInvocationID.x, n = n_listed * (kChunk / 4u);
  if (self == 0u) n_found = 0u;
  barrier();
  for (uint begin = self; begin < n; begin += kAtOnce * kWidth) {
    uvec4 fours[kAtOnce];
    uint ids[kAtOnce];
    [[unroll]] for (uint r = 0u; r < kAtOnce; ++r) {
      const uint i = min(begin + r * kWidth, n - 1u);
      ids[r] = chunk_list[i / (kChunk / 4u)] * kChunk + i % (kChunk / 4u) * 4u;
      fours[r] = keys4[(sequence_at + ids[r]) / 4u];
    }
    [[unroll]] for (uint r = 0u; r < kAtOnce; ++r) {
      if (begin + r * kWidth >= n) break;
      [[unroll]] for (uint c = 0u; c < 4u; ++c) {
        if (fours[r][c] < threshold) continue;
        const uint slot = atomicAdd(n_found, 1u);
        if (slot >= kCandidates) continue;
        words[slot] = fours[r][c];
        words[kCandidates + slot] = ids[r] + c;
      }
    }
  }
  barrier();
}

// Each has as many places before it as keys are larger, or equal and of lower ids.
void put_in_order() {
  for (uint i = gl_LocalInvocationID.x; i < n_found; i += kWidth) {
    const uint key = words[i], id = words[kCandidates + i];
    uint place = 0u;
    for (uint j = 0u; j < n_found; ++j) {
      const uint other = words[j];
      place += other > key ? 1u : other == key && words[kCandidates + j] < id ? 1u : 0u;
    }
    words[kInOrder + place] = key;
    words[kInOrder + kCandidates + place] = id;
  }
  barrier();
}

// Of n candidates, 1 or more, and those that are equal to the last of them.
uint with_ties(uint n) {
  const uint last = key_in_order(n - 1u);
  while (n < n_found && key_in_order(n) == last) ++n;
  return n;
}

// The largest threshold at which the listed keys >= floor_key number at least `target`, or have that share of their mass.
uint select_threshold(float target, uint floor_key, bool by_mass) {
  const uint self = gl_LocalInvocationID.x;
  uint prefix = 0u;
  for (uint pass = 0u; pass < 8u; ++pass) {
    const uint shift = 28u - 4u * pass;
    [[unroll]] for (uint j = 0u; j < 16u; ++j) sums[j] = 0.0;
    for (uint i = self; i < n_listed * (kChunk / 4u); i += kWidth) {
      const uvec4 four = keys4[(sequence_at + chunk_list[i / (kChunk / 4u)] * kChunk) / 4u + i % (kChunk / 4u)];
      for (uint c = 0u; c < 4u; ++c) {
        const uint key = four[c];
        float weight = key >= floor_key ? 1.0 : 0.0;
        if (by_mass) weight = key >= floor_key ? weight_of(key, 1.0) : 0.0;
        [[unroll]] for (uint j = 0u; j < 16u; ++j) sums[j] += key >= prefix + (j << shift) ? weight : 0.0;
      }
    }
    add_up();
    if (by_mass && pass == 0u) target *= totals[0];
    prefix += digit_of(target) << shift;
  }
  return max(prefix, floor_key);
}

// What the kept keys of each listed chunk weigh, into words.
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
      words[c] = floatBitsToUint(sum);
    }
    barrier();
  }
}

// The kept id at which the cumulative weight passes u of the total; ids in ascending order. All invocations find the same.
uint draw(float u, uint threshold, float temperature, bool of_all) {
  const uint self = gl_LocalInvocationID.x;
  if (!of_all) weigh_chunks(threshold, temperature);
  if (n_listed == 0u) return 0u;
  // By runs of chunks, by chunks of a run, by groups of a chunk's keys, by keys of a group.
  const uint run = (n_listed + kWidth - 1u) / kWidth, n_runs = (n_listed + run - 1u) / run;
  float sum = 0.0;
  for (uint c = self * run; c < min((self + 1u) * run, n_listed); ++c) {
    if (of_all) words[c] = floatBitsToUint(mass_of(chunk_list[c], temperature));
    sum += word(c);
  }
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
    if (word(c) == 0.0) continue;
    chosen = c;
    before = within;
    within += word(c);
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

// The same among the first n candidates.
uint draw_candidate(float u, uint n) {
  const uint self = gl_LocalInvocationID.x;
  float total = 0.0;
  for (uint i = 0u; i < n; ++i) total += word(kCandidates + i);
  if (self == 0u) {
    drawn_id = ~0u;
    last_weighing_id = 0u;
  }
  barrier();
  for (uint i = self; i < n; i += kWidth) {
    if (word(kCandidates + i) == 0.0) continue;
    const uint id = id_in_order(i);
    float cumulative = 0.0;
    for (uint j = 0u; j < n; ++j) cumulative += id_in_order(j) <= id ? word(kCandidates + j) : 0.0;
    if (cumulative > u * total) atomicMin(drawn_id, id);
    atomicMax(last_weighing_id, id);
  }
  barrier();
  return drawn_id != ~0u ? drawn_id : last_weighing_id;  // where rounding leaves the end uncovered
}

// How many of the candidates in order are kept, or kTooFew where others would be as well. top_k 0 and top_p 1 keep all, as does a `lowest` of 1. is_all: no key that top-k leaves is missing.
// What the kept ones weigh, divided by `divisor`, lies in words behind what they weigh undivided.
const uint kTooFew = ~0u;
uint keep_candidates(uint top_k, float top_p, uint lowest, bool is_all, float divisor) {
  uint n = n_found;
  if (top_k > 0u && top_k < n) n = with_ties(top_k);
  for (uint i = gl_LocalInvocationID.x; i < n; i += kWidth) {
    words[i] = floatBitsToUint(weight_of(key_in_order(i), 1.0));
    words[kCandidates + i] = floatBitsToUint(weight_of(key_in_order(i), divisor));
  }
  barrier();
  if (top_p < 1.0 && n > 0u) {
    float total = 0.0;
    if (is_all) {
      for (uint i = 0u; i < n; ++i) total += word(i);
    } else {
      total = mass_of_all();
    }
    float mass = 0.0;
    uint nucleus = 0u;
    while (nucleus < n && mass < top_p * total) mass += word(nucleus++);
    if (!is_all && mass < top_p * total) return kTooFew;
    n = with_ties(max(nucleus, 1u));
  }
  while (n > 0u && key_in_order(n - 1u) < lowest) --n;
  return n;
}

void main() {
  const uint sequence = gl_WorkGroupID.y;
  if (!sequence_active(sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  const uint state = sequence * RONDO_STATE_WORDS;
  const float temperature = uintBitsToFloat(step_state[state + RONDO_STATE_TEMPERATURE]);
  uint top_k = step_state[state + RONDO_STATE_TOP_K];
  float top_p = uintBitsToFloat(step_state[state + RONDO_STATE_TOP_P]), min_p = uintBitsToFloat(step_state[state + RONDO_STATE_MIN_P]);
  const uint token_position = step_state[state + RONDO_STATE_POSITION] + step_state[state + RONDO_STATE_COUNT];
  const uvec4 random = philox4x32_10(uvec4(token_position, 0u, 0u, 0u), uvec2(step_state[state + RONDO_STATE_SEED_LOW], step_state[state + RONDO_STATE_SEED_HIGH]));
  sequence_at = sequence * p.sequence_keys;
  load_maxima();
  const bool greedy = temperature == 0.0;
  if (greedy) top_p = 1.0, min_p = 0.0;
  if (greedy || top_k >= p.vocabulary) top_k = 0u;
  const float u = greedy ? 0.0 : float(random.x >> 8) * (1.0 / 16777216.0), divisor = greedy ? 1.0 : temperature;
  const uint lowest = min_p > 0.0 ? max(min(sample_key(max_value + log(min_p)), max_key), 1u) : 1u;

  // What is kept is among the keys from here on: all of it with neither top-k nor top-p, and where as many chunks reach it as top-k wants; else most likely.
  const uint fewest = min(top_k > 0u ? top_k : top_p < 1.0 ? kGuess : 0u, p.chunks);
  uint threshold = greedy ? max(max_key, 1u) : lowest;
  if (fewest > 0u) threshold = bound_of(float(fewest));
  uint n = kTooFew;
  if ((threshold > 1u || p.vocabulary <= kCandidates) && top_k <= kCandidates) {
    list_chunks(threshold);
    find_candidates(threshold);
    const bool is_enough = top_k == 0u || threshold == 1u || n_found >= top_k;
    if (n_found <= kCandidates && is_enough) {
      put_in_order();
      n = keep_candidates(top_k, top_p, lowest, top_k > 0u || threshold == 1u, divisor);
    }
  }
  uint id;
  if (n != kTooFew) {
    id = draw_candidate(u, n);
  } else {
    if (top_k > 0u ? top_k > p.chunks : !greedy) threshold = 1u;
    if (top_k > 0u) {
      list_chunks(threshold);
      threshold = select_threshold(float(top_k), threshold, false);
    }
    if (top_p < 1.0) {
      list_chunks(threshold);
      threshold = select_threshold(top_p, threshold, true);
    }
    threshold = max(threshold, lowest);
    list_chunks(threshold);
    id = draw(u, threshold, divisor, !greedy && top_k == 0u && top_p == 1.0 && min_p == 0.0);
  }
  if (self == 0u) token[sequence] = int(id);
}
