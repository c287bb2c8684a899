// output = scale * a b for each batch, both with any strides: 256 invocations make a tile of 16 kTileRows x 128 in f16 two numbers at a time (lib/half_tile.glsl), both factors
// rounded to f16, their rows scaled where they do not suit it. Sums in f32. Grid (ceil(N / 128), ceil(M / kM), batches).
// Needs: shaderFloat16, VK_VALVE_shader_mixed_float_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "matmul.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 1) const uint kALies = 1u;
layout(constant_id = 2) const uint kTileRows = 4u;
layout(constant_id = 3) const uint kBLies = 2u;
layout(constant_id = 4) const uint kWhole = 0u;

const uint kWidth = 256u, kLanes = 32u, kColumns = 16u, kTileOutputs = 8u;
#define RONDO_HALF_TILE
#include "lib/matmul_f16.glsl"
