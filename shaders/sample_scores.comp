// First half of sampling: logits after the repetition penalty, as unsigned keys in the order of the values (0: padding and
// NaN), the largest key of each chunk of 256, and where they are used the chunks' masses. The penalty (Keskar et al. 2019) acts once on each id among the last N
// tokens: it is computed from the untouched logit, so equal ids write equal values.
// One workgroup per 8 chunks; grid (ceil(chunks / 8), B). Exact but for the division.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "sample.params.h"
#include "lib/sample_key.glsl"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;  // a power of two, at least 8, at most 64
layout(std430, set = 0, binding = 1) readonly buffer Input { ELEMENT logits[]; };
layout(std430, set = 0, binding = 2) readonly buffer Tokens { int tokens[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Keys { uint keys[]; };

const uint kChunk = RONDO_SAMPLE_CHUNK;
const uint kElements = kChunk * RONDO_SAMPLE_CHUNKS_PER_GROUP;
const uint kAtOnce = 8u;  // loads of an invocation before it looks at the first
shared uint group_keys[kElements];
shared uint highest[RONDO_SAMPLE_CHUNKS_PER_GROUP * kWidth];
shared uint largest[RONDO_SAMPLE_CHUNKS_PER_GROUP];
shared float masses[kWidth];

void main() {
  const uint sequence = gl_WorkGroupID.y;
  if (!sequence_active(sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  const uint first = gl_WorkGroupID.x * kElements;
  const uint at = p.input_offset + sequence * p.input_stride;
  for (uint begin = self; begin < kElements; begin += kWidth * kAtOnce) {
    float stored[kAtOnce];
    [[unroll]] for (uint i = 0u; i < kAtOnce; ++i) stored[i] = from_element(logits[at + min(first + begin + i * kWidth, p.vocabulary - 1u)]);
    [[unroll]] for (uint i = 0u; i < kAtOnce; ++i) {
      const uint own = begin + i * kWidth;
      group_keys[own] = first + own < p.vocabulary ? sample_key(stored[i]) : 0u;
    }
  }
  barrier();

  const uint state = sequence * RONDO_STATE_WORDS;
  const float temperature = uintBitsToFloat(step_state[state + RONDO_STATE_TEMPERATURE]), top_p = uintBitsToFloat(step_state[state + RONDO_STATE_TOP_P]), min_p = uintBitsToFloat(step_state[state + RONDO_STATE_MIN_P]);
  const uint top_k = step_state[state + RONDO_STATE_TOP_K];
  const float penalty = uintBitsToFloat(step_state[state + RONDO_STATE_REPEAT_PENALTY]);
  const uint end = min(step_state[state + RONDO_STATE_POSITION] + step_state[state + RONDO_STATE_COUNT], p.context);
  const uint last_n = penalty == 1.0 ? 0u : min(step_state[state + RONDO_STATE_REPEAT_LAST_N], end);
  for (uint i = self; i < last_n; i += kWidth) {
    const uint id = uint(tokens[sequence * p.context + end - 1u - i]);
    if (id >= p.vocabulary || id < first || id >= first + kElements) continue;
    const float value = from_element(logits[at + id]);
    // Atomic, since two invocations write it, the same, where a token is there twice.
    atomicExchange(group_keys[id - first], sample_key(value > 0.0 ? value / penalty : value * penalty));
  }
  barrier();

  for (uint chunk = 0u; chunk < RONDO_SAMPLE_CHUNKS_PER_GROUP; ++chunk) {
    uint best = 0u;
    for (uint i = self; i < kChunk; i += kWidth) {
      const uint key = group_keys[chunk * kChunk + i];
      best = max(best, key);
      if (first + chunk * kChunk < p.chunks * kChunk) keys[sequence * p.sequence_keys + first + chunk * kChunk + i] = key;
    }
    highest[chunk * kWidth + self] = best;
  }
  barrier();
  const uint sequence_at = sequence * p.sequence_keys;
  const uint first_chunk = gl_WorkGroupID.x * RONDO_SAMPLE_CHUNKS_PER_GROUP;
  if (self < RONDO_SAMPLE_CHUNKS_PER_GROUP) {
    uint best = 0u;
    for (uint i = 0u; i < kWidth; ++i) best = max(best, highest[self * kWidth + i]);
    if (first_chunk + self < p.chunks) keys[sequence_at + RONDO_SAMPLE_LARGEST_AT(p.chunks) + first_chunk + self] = best;
    largest[self] = best;
  }
  const float divisor = sample_mass_divisor(temperature, top_k, top_p, min_p, p.vocabulary);
  if (divisor == 0.0) return;
  barrier();
  // Invocations share a chunk; those of others begin elsewhere in theirs, at other banks.
  const uint share = kWidth / RONDO_SAMPLE_CHUNKS_PER_GROUP, chunk_of_own = self / share;
  float own_mass = 0.0;
  for (uint i = 0u; i < kChunk / share; ++i) {
    const uint key = group_keys[chunk_of_own * kChunk + (i + chunk_of_own) % (kChunk / share) * share + self % share];
    const float below = sample_value(key) - sample_value(largest[chunk_of_own]);
    if (key != 0u) own_mass += key == largest[chunk_of_own] ? 1.0 : exp(below / divisor);
  }
  masses[self] = own_mass;
  barrier();
  if (self < RONDO_SAMPLE_CHUNKS_PER_GROUP && first_chunk + self < p.chunks) {
    float mass = 0.0;
    for (uint i = 0u; i < share; ++i) mass += masses[self * share + i];
    keys[sequence_at + RONDO_SAMPLE_MASSES_AT(p.chunks) + first_chunk + self] = floatBitsToUint(mass);
  }
}
