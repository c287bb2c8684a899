// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and up_rows() + n;
// with kExperts of the weight that a tile has (lib/expert_tiles.glsl).
// For many rows, in f16 two numbers at a time (lib/half_tile.glsl): 256 invocations make a tile of 16 kTileRows x 128 outputs (64 with GLU). The input
// is f16 (lib/halved_input.glsl). Rows of weights are scaled where their type has numbers beyond f16's; values of other blocks beyond 65504 become infinite. Sums in f32.
// Grid (tiles of rows, ceil(N / tile), splits of the columns). Needs: shaderFloat16, VK_VALVE_shader_mixed_float_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kTileRows = 8u;
layout(constant_id = 3) const uint kGlu = 0u;
layout(constant_id = 4) const uint kActivation = 0u;
layout(constant_id = 5) const uint kBias = 0u;
layout(constant_id = 6) const uint kLimited = 0u;
layout(constant_id = 7) const uint kSplitColumns = 0u;
layout(constant_id = 8) const uint kExperts = 0u;

const uint kWidth = 256u, kColumns = 16u, kTileOutputs = 8u, kAhead = 1u, kPairs = 0u;
#define RONDO_HALF_TILE
#include "lib/linear_f16.glsl"
