// An RMS norm between two linears, without a dispatch of its own: the one before it (kMakesNorm) writes its output times the norm's
// weights as well, and for each workgroup the sum of its squares; the one behind it (kTakesNorm) reads these products and multiplies
// what it computes of them by 1 / sqrt(mean square + epsilon), which all elements of a row share. Needs p of linear.params.h and the
// constants kWidth, kLanes, kSubgroups, kRows, kTokens and kNorm.
#ifdef RONDO_F16
// Products with the weights may leave the range of halves.
const bool kMakesNorm = false;
const bool kTakesNorm = false;
vec4 squares_quad(uint row, uint i) { return vec4(0.0); }
void add_squares(uint row, uint t, vec4 first) {}
float norm_scale(uint t) { return 1.0; }
float norm_product(uint n, float value) { return value; }
void make_norm(uint first_row, uint row, uint n, float value, bool there) {}
#else
const bool kMakesNorm = (kNorm & 1u) != 0u;
const bool kTakesNorm = (kNorm & 2u) != 0u;
layout(std430, set = 0, binding = 1) readonly buffer SquaresIn4 { vec4 squares_in4[]; };
layout(std430, set = 0, binding = 7) writeonly buffer Scaled { float scaled[]; };
layout(std430, set = 0, binding = 6) readonly buffer Gains { float gains[]; };
shared float square_parts[kSubgroups * kTokens];

uint padded(uint n) { return (n + 3u) & ~3u; }

// Four sums of squares of a row of the input, zeros behind the last.
vec4 squares_quad(uint row, uint i) {
  const vec4 found = squares_in4[(p.squares_from + row * padded(p.n_squares) + min(i, padded(p.n_squares) - 4u)) >> 2];
  return mix(vec4(0.0), found, lessThan(uvec4(i, i + 1u, i + 2u, i + 3u), uvec4(p.n_squares)));
}

// The squares of row `row`, the t-th of the workgroup, that this subgroup adds up, for norm_scale behind a barrier; `first` is
// squares_quad(row, 4 gl_LocalInvocationID.x), asked for before.
void add_squares(uint row, uint t, vec4 first) {
  vec4 total = first;
  for (uint i = (gl_LocalInvocationID.x + kWidth) * 4u; i < p.n_squares; i += kWidth * 4u) total += squares_quad(row, i);
  const float sum = subgroupAdd((total.x + total.y) + (total.z + total.w));
  if (gl_SubgroupInvocationID == 0u) square_parts[gl_SubgroupID * kTokens + t] = sum;
}

// What the sums of the workgroup's t-th row count.
float norm_scale(uint t) {
  float total = 0.0;
  [[unroll]] for (uint s = 0u; s < kSubgroups; ++s) total += square_parts[s * kTokens + t];
  return 1.0 / sqrt(total / float(p.columns) + p.epsilon);
}

float norm_product(uint n, float value) { return value * (gains[p.gain_offset + n] + p.gain_bias); }

// Of the workgroup's outputs, lane t kRows + r of a subgroup having output n of row `row`, the t-th of the workgroup, where it is `there`. All invocations call.
void make_norm(uint first_row, uint row, uint n, float value, bool there) {
  if (there) scaled[row * p.outputs + n] = norm_product(n, value);
  const uint lane = gl_SubgroupInvocationID;
  if (kTakesNorm) barrier();  // its squares may still be read
  [[unroll]] for (uint t = 0u; t < kTokens; ++t) {
    const float sum = subgroupAdd(there && row == first_row + t ? value * value : 0.0);
    if (lane == 0u) square_parts[gl_SubgroupID * kTokens + t] = sum;
  }
  barrier();
  if (gl_SubgroupID == 0u && lane < kTokens && first_row + lane < p.rows) {
    float sum = 0.0;
    [[unroll]] for (uint s = 0u; s < kSubgroups; ++s) sum += square_parts[s * kTokens + lane];
    scaled[p.squares_to + (first_row + lane) * padded(gl_NumWorkGroups.x) + gl_WorkGroupID.x] = sum;
  }
}
#endif
