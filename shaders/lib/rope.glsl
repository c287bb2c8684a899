// Rotation tables of two levels (see graph/ops/rope.cpp): (cos, sin) of position / 64 * 64, then of position mod 64,
// `p.frequencies` pairs a line; the angle is their sum. Needs the buffer rope_table and the function head_element(base, i).
vec2 rope_angle(uint position, uint frequency) {
  const uint high = (position >> 6) * p.frequencies + frequency;
  const uint low = (p.high_lines + (position & 63u)) * p.frequencies + frequency;
  const vec2 a = rope_table[high];
  const vec2 b = rope_table[low];
  return vec2(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);
}

// Element `i` of a head after rotation at `position`; elements from 2 frequencies on pass unchanged.
float rotated(uint base, uint i, uint position) {
  const float x = head_element(base, i);
  if (i >= 2u * p.frequencies) return x;
  const bool interleaved = p.interleaved != 0u;
  const bool second = interleaved ? (i & 1u) == 1u : i >= p.frequencies;
  const uint frequency = interleaved ? i >> 1 : (second ? i - p.frequencies : i);
  const uint partner = interleaved ? i ^ 1u : (second ? i - p.frequencies : i + p.frequencies);
  const vec2 angle = rope_angle(position, frequency) * p.attention_factor;
  const float y = head_element(base, partner);
  return second ? y * angle.y + x * angle.x : x * angle.x - y * angle.y;
}
