// The activations of linear: 32 elements of a row, zeros beyond K. Needs p of linear.params.h.
layout(std430, set = 0, binding = 1) readonly buffer Input { float input_values[]; };
layout(std430, set = 0, binding = 1) readonly buffer Input4 { vec4 input_values4[]; };

float input_element(uint at, uint column) { return column < p.columns ? input_values[at + column] : 0.0; }

// `at`: element offset of the row.
vec4 input_quad(uint at, uint column) {
  if (p.input_vec4 != 0u) return column < p.columns ? input_values4[(at + column) >> 2] : vec4(0.0);
  return vec4(input_element(at, column), input_element(at, column + 1u), input_element(at, column + 2u), input_element(at, column + 3u));
}

void input_group(uint at, uint group, out vec4 x[8]) {
  const uint first = group * 32u;
  if (p.input_vec4 != 0u && first + 32u <= p.columns) {
    for (uint i = 0u; i < 8u; ++i) x[i] = input_values4[((at + first) >> 2) + i];
  } else {
    for (uint i = 0u; i < 8u; ++i) x[i] = input_quad(at, first + 4u * i);
  }
}
