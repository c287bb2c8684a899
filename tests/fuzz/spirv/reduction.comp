#version 450
// Shared memory, barriers, loops, a switch and constants.
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kMode = 2u;
layout(set = 0, binding = 0) readonly buffer Input { float values[]; };
layout(set = 0, binding = 1) writeonly buffer Output { float sums[]; };
layout(push_constant) uniform Push { uint n; float scale; };
shared float tile[64];
float changed(float x) {
  switch (kMode + n) {
    case 0u: return -x;
    case 1u: x *= 2.0;
    case 2u: return max(x, 0.0);
    default: return exp(-abs(x));
  }
}
void main() {
  const uint self = gl_LocalInvocationID.x;
  float own[4];
  for (uint i = 0u; i < 4u; ++i) own[i] = values[(self * 4u + i) % n];
  float sum = 0.0;
  for (uint i = self; i < n; i += 64u) {
    if (i % 7u == 3u) continue;
    if (i > 4096u) break;
    sum += changed(values[i]) * own[i % 4u];
  }
  tile[self % 64u] = sum;
  barrier();
  for (uint apart = 32u; apart > 0u; apart /= 2u) {
    if (self < apart) tile[self] += tile[self + apart];
    barrier();
  }
  if (self == 0u) sums[gl_WorkGroupID.x] = tile[0] * scale;
}
