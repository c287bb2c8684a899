// The activations of linears of many rows in f16, as halve.comp leaves them: group of 32 columns after group, in each row after row, so that tiles read
// whole lines; behind them a power of two for each row, by which it has been multiplied. Needs p of linear.params.h and lib/linear_experts.glsl.
layout(std430, set = 0, binding = 1) readonly buffer InputHalves { uvec4 input_halves[]; };
layout(std430, set = 0, binding = 1) readonly buffer InputScales { float input_scales[]; };

// How many rows the input has, and which of them a row of the output is of.
uint input_rows() { return kExperts == 1u && p.input_choice_stride == 0u ? p.rows / p.chosen : p.rows; }
uint input_row(uint row) { return kExperts == 1u && p.input_choice_stride == 0u ? row / p.chosen : row; }

// Eight columns of the four times eight of a group.
uvec4 input_eight(uint row, uint group, uint eight) { return input_halves[((p.input_offset >> 2) + row * 4u + eight) + group * input_rows() * 4u]; }
float input_scale(uint row) { return input_scales[p.input_stride + row]; }
