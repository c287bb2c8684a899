// What a device moves, by a kernel: each invocation loads RONDO_MEASURE_COPY_QUADS times 16 bytes, those of a workgroup side by side, and stores them.
// Grid (ceil(quads / (width RONDO_MEASURE_COPY_QUADS))). Binding 0 is the result: there is no step.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "measure_copy.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 0) writeonly buffer Result { uvec4 values[]; };
layout(std430, set = 0, binding = 1) readonly buffer Source { uvec4 source[]; };

void main() {
  const uint first = gl_WorkGroupID.x * kWidth * RONDO_MEASURE_COPY_QUADS + gl_LocalInvocationID.x;
  uvec4 x[RONDO_MEASURE_COPY_QUADS];
  [[unroll]] for (uint i = 0u; i < RONDO_MEASURE_COPY_QUADS; ++i) x[i] = source[min(first + i * kWidth, p.n_quads - 1u)];
  [[unroll]] for (uint i = 0u; i < RONDO_MEASURE_COPY_QUADS; ++i) {
    if (first + i * kWidth < p.n_quads) values[first + i * kWidth] = x[i];
  }
}
