// Joins the partials of split-key attention: output = sum_s e^(m_s - m) sums_s / sum_s e^(m_s - m) weight_s.
// One invocation per element adds the splits in their order; with kShares > 1 as many invocations share an element's splits, and what
// splits weigh is found once for the workgroup, each by one invocation (n_splits at most kWidth).
// Grid (ceil(E / (kWidth / kShares)), B * Q * H). f32 accumulation in fixed order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "attention_combine.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"
#include "lib/online_softmax.glsl"
#include "lib/rounding.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kShares = 1u;
layout(constant_id = 2) const uint kTaken = 4u;  // splits that an invocation takes, where kShares is not 1
layout(constant_id = 3) const uint kRounds = 0u;  // outputs are left in bytes as well (lib/rounding.glsl)
layout(std430, set = 0, binding = 1) readonly buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Rounded { uint rounded_words[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Rounded4 { uvec4 rounded_words4[]; };

const uint kElements = kWidth / kShares;

shared float maxima[kWidth];
shared float weights[kWidth];
shared float scales[kWidth];
shared float shares[kWidth];
shared float to_round[kRounds == 1u ? kElements : 1u];

void write(uint out_row, uint e, float sum, float weight, float highest) {
  const float value = weight == 0.0 && highest == kLowest ? 0.0 : sum / weight;
  values[out_row * p.value_dim + e] = to_element(value);
  if (kRounds == 1u) to_round[e % kElements] = value;
}

// What was written, by all invocations of the workgroup.
void round_written(uint out_row) {
#ifndef RONDO_F16
  barrier();
  const uint self = gl_LocalInvocationID.x, e = gl_WorkGroupID.x * kElements + self * 16u;
  if (self >= kElements / 16u || e >= p.value_dim) return;
  vec4 x[4];
  [[unroll]] for (uint j = 0u; j < 16u; ++j) x[j / 4u][j % 4u] = to_round[self * 16u + j];
  const RoundedSixteen rounded = round_sixteen(x);
  const uint elements = gl_NumWorkGroups.y * p.value_dim, at = out_row * p.value_dim + e;
  rounded_words4[byte_word(elements, at) >> 2] = rounded.bytes;
  rounded_words[scale_word_of(elements, at)] = rounded.scale;
#endif
}

void combine_alone(uint out_row, uint e, uint at, uint stride) {
  float highest = kLowest, sum = 0.0, weight = 0.0;
  for (uint s = 0u; s < p.n_splits; ++s) highest = max(highest, partials[at + s * stride + p.value_dim]);
  for (uint s = 0u; s < p.n_splits; ++s) {
    const float split_weight = partials[at + s * stride + p.value_dim + 1u];
    if (split_weight == 0.0) continue;
    const float scale = scale_of_split(partials[at + s * stride + p.value_dim], split_weight, highest);
    sum += scale * partials[at + s * stride + e];
    weight += scale * split_weight;
  }
  write(out_row, e, sum, weight, highest);
}

// All sums are asked for before anything is looked at, those of splits without a weight as well; what these hold counts nothing.
void combine_together(uint out_row, uint at, uint stride) {
  const uint self = gl_LocalInvocationID.x, share = self / kElements;
  const uint e = gl_WorkGroupID.x * kElements + self % kElements;
  const uvec3 state = row_state(divided(out_row, p.heads), p.queries);
  const uint own_split = at + min(self, p.n_splits - 1u) * stride + p.value_dim;
  const float stored_max = partials[own_split], stored_weight = partials[own_split + 1u];
  float stored[kTaken];
  [[unroll]] for (uint i = 0u; i < kTaken; ++i) stored[i] = partials[at + min(share + i * kShares, p.n_splits - 1u) * stride + min(e, p.value_dim - 1u)];
  if (!row_valid(state)) return;
  const float m = self < p.n_splits ? stored_max : kLowest, split_weight = self < p.n_splits ? stored_weight : 0.0;
  maxima[self] = m;
  barrier();
  float highest = kLowest;
  for (uint s = 0u; s < p.n_splits; ++s) highest = max(highest, maxima[s]);
  const float scale = scale_of_split(m, split_weight, highest);
  scales[self] = scale;
  weights[self] = scale * split_weight;
  barrier();
  float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < kTaken; ++i) {
    const uint s = share + i * kShares;
    const float own = s < p.n_splits ? scales[min(s, kWidth - 1u)] : 0.0;
    sum += own * mix(0.0, stored[i], own != 0.0);
  }
  shares[self] = sum;
  barrier();
  if (share == 0u && e < p.value_dim) {
    [[unroll]] for (uint i = 1u; i < kShares; ++i) sum += shares[i * kElements + self];
    float weight = 0.0;
    for (uint s = 0u; s < p.n_splits; ++s) weight += weights[s];
    write(out_row, e, sum, weight, highest);
  }
  if (kRounds == 1u) round_written(out_row);
}

void main() {
  const uint out_row = gl_WorkGroupID.y;
  const uint stride = RONDO_PARTIAL_STRIDE(p.value_dim), at = out_row * p.n_splits * stride;
  if (kShares != 1u) {
    combine_together(out_row, at, stride);
    return;
  }
  const uint e = gl_GlobalInvocationID.x;
  if (!row_valid(divided(out_row, p.heads), p.queries)) return;
  if (e < p.value_dim) combine_alone(out_row, e, at, stride);
  if (kRounds == 1u) round_written(out_row);
}
