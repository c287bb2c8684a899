// output[t, :] = sines and cosines of (first + positions[t]) * frequency i. Vaswani et al. 2017. One invocation per frequency; grid
// (ceil(frequencies / width), T). Frequencies are fractions of a turn in 64 bits, so that the product with any position,
// modulo whole turns, is exact to 2^-32 turns in integers; Vulkan's sin and cos are not good enough, and an f32 angle of
// thousands has lost its end.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "sinusoidal_positions.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) readonly buffer Positions { int positions[]; };
layout(std430, set = 0, binding = 2) readonly buffer Turns { uvec2 turns[]; };  // high and low word
layout(std430, set = 0, binding = 3) writeonly buffer Output { ELEMENT values[]; };

// Sine and cosine of x in [-pi / 4, pi / 4] by their series.
vec2 small_sine_cosine(float x) {
  const float s = x * x;
  return vec2(x * (1.0 + s * (-1.66666667e-1 + s * (8.33333333e-3 + s * (-1.98412698e-4 + s * 2.75573192e-6)))),
              1.0 + s * (-0.5 + s * (4.16666667e-2 + s * (-1.38888889e-3 + s * (2.48015873e-5 - s * 2.75573192e-7)))));
}

vec2 sine_cosine_of_turns(uint turn) {
  const uint quadrant = (turn + 0x20000000u) >> 30;
  const int rest = int(turn - (quadrant << 30));
  const vec2 v = small_sine_cosine(float(rest) * (6.28318531 / 4294967296.0));
  if (quadrant == 1u) return vec2(v.y, -v.x);
  if (quadrant == 2u) return -v;
  if (quadrant == 3u) return vec2(-v.y, v.x);
  return v;
}

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint i = gl_GlobalInvocationID.x;
  if (i >= p.frequencies || !row_active(row, p.rows_per_sequence)) return;
  const int position = p.first + positions[p.positions_offset + row * p.positions_stride];
  const uint magnitude = uint(abs(position));
  uint high, low;
  umulExtended(magnitude, turns[i].y, high, low);
  vec2 result = sine_cosine_of_turns(magnitude * turns[i].x + high);
  if (position < 0) result.x = -result.x;
  const uint at = row * 2u * p.frequencies;
  values[at + (p.split != 0u ? i : 2u * i)] = to_element(result.x);
  values[at + (p.split != 0u ? p.frequencies + i : 2u * i + 1u)] = to_element(result.y);
}
