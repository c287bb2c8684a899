// Linears of which each row of the output has a weight of its own, one of p.experts that lie one after the other: those that
// binding 3 has for the row's token, in the place of a residual. Without kExperts there is one weight for all. Needs p of linear.params.h.
layout(std430, set = 0, binding = 3) readonly buffer Experts { int expert_of_choice[]; };

// From a gate's row of the weight, and element of the bias, to its up's.
uint up_rows() { return kExperts == 1u ? p.experts * p.outputs : p.outputs; }

// The token that a row of the output belongs to.
uint token_of(uint row) { return kExperts == 1u ? row / p.chosen : row; }

// The element where a row's input begins.
uint input_at(uint row) {
  const uint token = token_of(row);
  return p.input_offset + token * p.input_stride + (kExperts == 1u ? (row - token * p.chosen) * p.input_choice_stride : 0u);
}

// The first row of the row's weight, or the first element of its bias.
uint first_weight_row(uint row) {
  if (kExperts == 0u) return 0u;
  const uint token = row / p.chosen;
  const int expert = expert_of_choice[p.experts_offset + token * p.experts_stride + row - token * p.chosen];
  return uint(clamp(expert, 0, int(p.experts) - 1)) * p.outputs;
}
