// Rotation tables of two levels (see graph/ops/rope.cpp): (cos, sin) of position / 64 * 64, in `high_lines` lines, then of position mod 64,
// `frequencies` pairs a line; the angle is their sum. Needs the buffer rope_table.
vec2 rope_angle(uint position, uint frequency, uint frequencies, uint high_lines) {
  const uint high = (position >> 6) * frequencies + frequency;
  const uint low = (high_lines + (position & 63u)) * frequencies + frequency;
  const vec2 a = rope_table[high];
  const vec2 b = rope_table[low];
  return vec2(a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y);
}
