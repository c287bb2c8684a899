// The k largest of a row's logits, largest first, equal ones by number, NaN last, and for each the softmax over these
// (normalize) or over all. One workgroup per row; grid (rows). An expert's place is how many come before it, which no order
// of invocations changes. f32 accumulation in fixed order.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "route.params.h"
#include "lib/step_state.glsl"
#include "lib/sample_key.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 1) readonly buffer Logits { ELEMENT logits[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Experts { uint experts[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Weights { float weights[]; };
shared uint keys[RONDO_ROUTE_MAX_EXPERTS];
shared uint chosen_keys[RONDO_ROUTE_MAX_EXPERTS];

const float kLowest = -3.40282347e38;

// The key of NaN is 0. exp may lose NaN, as SwiftShader's does.
float exp_of(uint key, float top) { return key == 0u ? uintBitsToFloat(0x7fc00000u) : exp(sample_value(key) - top); }

void main() {
  const uint row = gl_WorkGroupID.x;
  if (!row_valid(row, p.rows_per_sequence)) return;
  const uint self = gl_LocalInvocationID.x;
  for (uint i = self; i < p.experts; i += kWidth) keys[i] = sample_key(from_element(logits[p.input_offset + row * p.input_stride + i]));
  barrier();
  for (uint i = self; i < p.experts; i += kWidth) {
    uint place = 0u;
    for (uint other = 0u; other < p.experts; ++other) place += keys[other] > keys[i] || (keys[other] == keys[i] && other < i) ? 1u : 0u;
    if (place >= p.k) continue;
    experts[row * p.k + place] = i;
    chosen_keys[place] = keys[i];
  }
  barrier();
  const float top = max(sample_value(max(chosen_keys[0], 1u)), kLowest);
  const uint n = p.normalize != 0u ? p.k : p.experts;
  for (uint i = self; i < p.k; i += kWidth) {
    float sum = 0.0;
    for (uint other = 0u; other < n; ++other) sum += exp_of(p.normalize != 0u ? chosen_keys[other] : keys[other], top);
    weights[row * p.k + i] = exp_of(chosen_keys[i], top) / sum;
  }
}
