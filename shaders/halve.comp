// Rounds rows of activations to f16 for linears of many rows in f16 (lib/halved_input.glsl). Rows that do not suit f16 are multiplied by a power of two
// (lib/f16_scale.glsl), which lies behind them. Columns are filled up with zeros to a multiple of 32.
// A workgroup has a row, whose second reading finds it in a cache. Grid (tokens x rows of one).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "halve.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kInputVec4 = 1u;
#include "lib/linear_input.glsl"
#include "lib/halves.glsl"
#include "lib/f16_scale.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Halves { uvec4 halves[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Scales { float scales[]; };

shared uint largest_of_row;

void main() {
  const uint row = gl_WorkGroupID.x, token = token_of_row(row, p.rows_of_token), self = gl_LocalInvocationID.x;
  const uvec3 state = row_state(token, p.rows_per_sequence);
  if (state.z == 0u) return;
  const uint at = p.input_offset + token * p.input_stride + (row - token * p.rows_of_token) * p.row_stride;
  const uint n_eights = (p.columns + 31u) / 32u * 4u;
  // Rows of the sequence that hold no token are zeros: tiles multiply them, too.
  const bool there = row_valid(state);
  if (self == 0u) largest_of_row = 0u;
  barrier();
  float largest = 0.0;
  if (there) {
    for (uint eight = self; eight < n_eights; eight += kWidth) largest = larger(larger(largest, input_quad(at, eight * 8u)), input_quad(at, eight * 8u + 4u));
  }
  atomicMax(largest_of_row, floatBitsToUint(largest) & 0x7fffffffu);
  barrier();
  const float scale = scale_for(largest_of_row);
  for (uint eight = self; eight < n_eights; eight += kWidth) {
    uvec4 made = uvec4(0u);
    if (there) made = uvec4(to_halves(scale * input_quad(at, eight * 8u)), to_halves(scale * input_quad(at, eight * 8u + 4u)));
    halves[((eight >> 2) * p.rows + row) * 4u + (eight & 3u)] = made;
  }
  if (self == 0u) scales[p.scales_to + row] = scale;
}
