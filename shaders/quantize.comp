// Rounds rows of activations, f32, to bytes (lib/rounding.glsl) for linears with integer dot products, where whoever makes them doesn't. 32 columns share a scale. Groups of 32
// columns lie in order of rows or, so that tiles read whole lines, of columns.
// An invocation has four columns. Grid (ceil(columns / (4 kWidth)), tokens x rows of one). Needs: subgroups of 8 or more, shuffles.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#include "quantize.params.h"
#include "lib/step_state.glsl"
#define RONDO_ROUNDS_BY_LANES
#include "lib/rounding.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(constant_id = 1) const uint kQuads = 1u;  // rows begin at multiples of four elements
layout(std430, set = 0, binding = 1) readonly buffer Input { float input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer Input4 { vec4 input_values4[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Rounded { uint rounded_words[]; };

vec4 input_quad(uint at) {
  if (kQuads == 1u) return input_values4[at >> 2];
  return vec4(input_values[at], input_values[at + 1u], input_values[at + 2u], input_values[at + 3u]);
}

void main() {
  const uint row = gl_WorkGroupID.y, token = token_of_row(row, p.rows_of_token), place = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, column = (gl_WorkGroupID.x * kWidth + place) * 4u;
  const uvec3 state = row_state(token, p.rows_per_sequence);
  const uint at = p.input_offset + token * p.input_stride + (row - token * p.rows_of_token) * p.row_stride;
  // Rows of the sequence that hold no token are zeros: tiles multiply them, too.
  const vec4 x = input_quad(at + min(column, p.columns - 4u));
  const RoundedQuad rounded = round_quad(row_valid(state) ? x : vec4(0.0), 8u);
  if (column >= p.columns || state.z == 0u) return;
  const uint group = row * p.row_step + (column >> 5) * p.group_step;
  rounded_words[p.to + group * 8u + ((column & 31u) >> 2)] = rounded.bytes;
  if ((column & 15u) == 0u) rounded_words[p.scales_to + group * 2u + ((column & 31u) >> 4)] = rounded.scale;
}
