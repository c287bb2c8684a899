// What linear does with its sums: with kBias adds the bias, applies kActivation, adds the residual, stores. With kGlu the value
// comes with its activation. Needs p of linear.params.h and the specialization constants kGlu, kActivation and kBias.
#include "lib/activation.glsl"
#include "lib/element.glsl"
layout(std430, set = 0, binding = 3) readonly buffer Residual { ELEMENT residual[]; };
layout(std430, set = 0, binding = 4) writeonly buffer Output { ELEMENT values[]; };
layout(std430, set = 0, binding = 5) readonly buffer Bias { float bias[]; };

void store_output(uint row, uint n, float value) {
  if (kGlu == 0u) {
    if (kBias == 1u) value += bias[p.bias_offset + n];
    value = activate(value);
  }
  if (p.has_residual != 0u) value += from_element(residual[p.residual_offset + row * p.residual_stride + n]);
  values[p.output_offset + row * p.output_stride + n] = to_element(value);
}
