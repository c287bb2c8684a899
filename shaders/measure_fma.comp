// What a device computes: each invocation runs independent chains of x = x factor + addend, and stores the sum of their ends.
// With factor and addend 1 the sum tells how many steps were really made. Grid (ceil(invocations / width)). f32.
// Binding 0 is the result: there is no step.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "measure_fma.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 0) writeonly buffer Result { float values[]; };

void main() {
  const uint self = gl_WorkGroupID.x * kWidth + gl_LocalInvocationID.x;
  float x[RONDO_MEASURE_FMA_CHAINS];
  // Starts differ, so that no two chains are one: 0, 1, 2, ... and the invocation's own.
  [[unroll]] for (uint c = 0u; c < RONDO_MEASURE_FMA_CHAINS; ++c) x[c] = float(c) + float(self & 15u);
  for (uint i = 0u; i < p.iterations; ++i) {
    [[unroll]] for (uint s = 0u; s < RONDO_MEASURE_FMA_STEPS; ++s) {
      [[unroll]] for (uint c = 0u; c < RONDO_MEASURE_FMA_CHAINS; ++c) x[c] = fma(x[c], p.factor, p.addend);
    }
  }
  float sum = 0.0;
  [[unroll]] for (uint c = 0u; c < RONDO_MEASURE_FMA_CHAINS; ++c) sum += x[c];
  if (self < p.invocations) values[self] = sum;
}
