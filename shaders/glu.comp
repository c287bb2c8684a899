// output[r, i] = glu(gate[r, i], up[r, i]) of lib/glu.glsl. Shazeer 2020. One invocation per element; grid (ceil(columns / width), rows).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "glu.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kActivation = 0u;
layout(constant_id = 2) const uint kLimited = 0u;
#include "lib/glu.glsl"
layout(std430, set = 0, binding = 1) readonly buffer Gate { ELEMENT gate[]; };
layout(std430, set = 0, binding = 2) readonly buffer Up { ELEMENT up[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i = gl_GlobalInvocationID.x;
  if (i >= p.columns || !row_valid(row, p.rows_per_sequence)) return;
  const float gate_value = from_element(gate[p.gate_offset + row * p.gate_stride + i]), up_value = from_element(up[p.up_offset + row * p.up_stride + i]);
  values[row * p.columns + i] = to_element(glu(gate_value, up_value, p.limit, p.up_bias));
}
