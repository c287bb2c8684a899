// What linear does with its sums: adds the bias (kBias), applies kActivation or, with kGlu, multiplies ups by activated gates,
// adds the residual, stores. Needs p of linear.params.h and the specialization constants
// kActivation, kBias and kLimited.
#include "lib/glu.glsl"
#include "lib/element.glsl"
layout(std430, set = 0, binding = 3) readonly buffer Residual { ELEMENT residual[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 5) readonly buffer Bias { float bias[]; };

// `weight_row` counts from the first of the linear's rows.
float with_bias(float sum, uint weight_row) { return kBias == 1u ? sum + bias[p.bias_offset + weight_row] : sum; }
float output_of(float sum, uint weight_row) { return activate(with_bias(sum, weight_row)); }
float output_of_glu(float gate, float up, uint gate_row, uint up_row) {
  return glu(with_bias(gate, gate_row), with_bias(up, up_row), p.glu_limit, p.glu_up_bias);
}

float with_residual(uint row, uint n, float value) {
  return p.has_residual != 0u ? value + from_element(residual[p.residual_offset + row * p.residual_stride + n]) : value;
}
void store(uint row, uint n, float value) { values[p.output_offset + row * p.output_stride + n] = to_element(value); }
void store_output(uint row, uint n, float value) { store(row, n, with_residual(row, n, value)); }
