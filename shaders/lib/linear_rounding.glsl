// The outputs of a linear of few rows, or their products with the weights of a norm behind it, rounded to bytes as well (lib/rounding.glsl), behind the f32, for linears that read
// nothing else. A workgroup makes 16 outputs or a multiple; N is a multiple of 32. Needs lib/linear_few_rows.glsl's constants.
#include "lib/rounding.glsl"
layout(std430, set = 0, binding = 4) writeonly buffer RoundedOutput4 { uvec4 rounded_output4[]; };
layout(std430, set = 0, binding = 4) writeonly buffer RoundedOutput { uint rounded_output[]; };
layout(std430, set = 0, binding = 7) writeonly buffer RoundedProducts4 { uvec4 rounded_products4[]; };
layout(std430, set = 0, binding = 7) writeonly buffer RoundedProducts { uint rounded_products[]; };

const uint kRoundedOutputs = kRows * kSubgroups / kSplit;  // of a row, by this workgroup
shared float to_round[kRounds == 1u ? kTokens * kRoundedOutputs : 1u];

// Output n of the workgroup's t-th row.
void keep_for_rounding(uint t, uint n, float value) { to_round[t * kRoundedOutputs + n % kRoundedOutputs] = value; }

// All invocations call, behind a barrier or not.
void round_outputs(uint first_row) {
  const uint sixteens = kRoundedOutputs / 16u, i = gl_LocalInvocationID.x, t = i / max(sixteens, 1u), row = first_row + t;
  const uvec3 state = row_state(token_of(min(row, p.rows - 1u)), p.rows_per_sequence);
  if (!kMakesNorm) barrier();
  const uint n = gl_WorkGroupID.x * kRoundedOutputs + i % max(sixteens, 1u) * 16u;
  if (t >= kTokens || row >= p.rows || n >= p.outputs || !row_valid(state)) return;
  vec4 x[4];
  [[unroll]] for (uint j = 0u; j < 16u; ++j) x[j / 4u][j % 4u] = to_round[i * 16u + j];
  const RoundedSixteen rounded = round_sixteen(x);
  const uint elements = p.rows * p.outputs, at = row * p.outputs + n;
  if (kMakesNorm) {
    rounded_products4[byte_word(elements, at) >> 2] = rounded.bytes;
    rounded_products[scale_word_of(elements, at)] = rounded.scale;
  } else {
    rounded_output4[byte_word(elements, at) >> 2] = rounded.bytes;
    rounded_output[scale_word_of(elements, at)] = rounded.scale;
  }
}
