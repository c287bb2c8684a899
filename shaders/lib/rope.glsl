// Needs the buffer rope_table, the function head_element(base, i), and p with frequencies, high_lines, interleaved and attention_factor.
#include "lib/rope_angle.glsl"

// Element `i` of a head after rotation at `position`; elements from 2 frequencies on pass unchanged.
float rotated(uint base, uint i, uint position) {
  const float x = head_element(base, i);
  if (i >= 2u * p.frequencies) return x;
  const bool interleaved = p.interleaved != 0u;
  const bool second = interleaved ? (i & 1u) == 1u : i >= p.frequencies;
  const uint frequency = interleaved ? i >> 1 : (second ? i - p.frequencies : i);
  const uint partner = interleaved ? i ^ 1u : (second ? i - p.frequencies : i + p.frequencies);
  const vec2 angle = rope_angle(position, frequency, p.frequencies, p.high_lines) * p.attention_factor;
  const float y = head_element(base, partner);
  return second ? y * angle.y + x * angle.x : x * angle.x - y * angle.y;
}
