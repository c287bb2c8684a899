// Joins the partials of split-key attention: output = sum_s e^(m_s - m) sums_s / sum_s e^(m_s - m) weight_s, in order of s.
// One invocation per element; grid (ceil(E / width), B * Q * H). f32.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "attention_combine.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Output { ELEMENT values[]; };

const float kLowest = -3.3e38;  // attention.comp

void main() {
  const uint out_row = gl_WorkGroupID.y;
  const uint e = gl_GlobalInvocationID.x;
  if (e >= p.value_dim || !row_valid(out_row / p.heads, p.queries)) return;
  const uint stride = p.value_dim + 2u;
  const uint at = out_row * p.n_splits * stride;
  float highest = kLowest;
  for (uint s = 0u; s < p.n_splits; ++s) highest = max(highest, partials[at + s * stride + p.value_dim]);
  float sum = 0.0;
  float weight = 0.0;
  for (uint s = 0u; s < p.n_splits; ++s) {
    const float m = partials[at + s * stride + p.value_dim];
    const float l = partials[at + s * stride + p.value_dim + 1u];
    if (l == 0.0) continue;
    const float scale = m > kLowest ? exp(m - highest) : 1.0;
    sum += scale * partials[at + s * stride + e];
    weight += scale * l;
  }
  values[out_row * p.value_dim + e] = to_element(weight == 0.0 && highest == kLowest ? 0.0 : sum / weight);
}
