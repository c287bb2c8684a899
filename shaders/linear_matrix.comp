// output[m, n] = activate(sum_k input[m, k] weight[n, k] + bias[n]) + residual[m, n]; with kGlu glu of weight rows n and up_rows() + n;
// with kExperts of the weight that a tile has (lib/expert_tiles.glsl).
// For many rows, with matrix units (lib/matrix_tile.glsl): a workgroup makes a tile of kM x kN outputs (kN / 2 with GLU). The input is
// f16 (lib/halved_input.glsl). Rows of weights are scaled where their type has numbers beyond f16's; values of other blocks beyond 65504 become infinite. Sums in f32.
// Grid (tiles of rows, ceil(N / tile), splits of the columns).
// Needs: subgroups of exactly kLanes invocations, cooperative matrices, Vulkan's memory model.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "linear.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kWeightType = 0u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRowMatrices = 2u;     // of a subgroup
layout(constant_id = 4) const uint kOutputMatrices = 2u;  // with GLU first those of gates, then as many of ups
layout(constant_id = 5) const uint kRowSubgroups = 2u;
layout(constant_id = 6) const uint kGlu = 0u;
layout(constant_id = 7) const uint kActivation = 0u;
layout(constant_id = 8) const uint kBias = 0u;
layout(constant_id = 9) const uint kLimited = 0u;
layout(constant_id = 10) const uint kSplitColumns = 0u;
layout(constant_id = 11) const uint kMatrixRows = 16u;
layout(constant_id = 12) const uint kMatrixColumns = 16u;
layout(constant_id = 13) const uint kMatrixDepth = 16u;
layout(constant_id = 14) const uint kAhead = 1u;
layout(constant_id = 15) const uint kExperts = 0u;
layout(constant_id = 16) const uint kPairs = 0u;
layout(constant_id = 17) const uint kColumnsInLanes = 0u;  // lib/matrix.glsl

#include "lib/matrix.glsl"
#include "lib/linear_f16.glsl"
