// output = scale * a b for each batch, both with any strides: tiles of kM x kN by matrix units (lib/matrix_tile.glsl), both factors rounded to f16,
// their rows scaled where they do not suit it. Sums in f32. Grid (ceil(N / kN), ceil(M / kM), batches).
// Needs: subgroups of exactly kLanes invocations, cooperative matrices, Vulkan's memory model.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "matmul.params.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 128u;
layout(constant_id = 1) const uint kALies = 1u;
layout(constant_id = 2) const uint kLanes = 32u;
layout(constant_id = 3) const uint kRowMatrices = 2u;     // of a subgroup
layout(constant_id = 4) const uint kOutputMatrices = 2u;
layout(constant_id = 5) const uint kRowSubgroups = 2u;
layout(constant_id = 6) const uint kBLies = 2u;
layout(constant_id = 7) const uint kWhole = 0u;
layout(constant_id = 8) const uint kMatrixRows = 16u;
layout(constant_id = 9) const uint kMatrixColumns = 16u;
layout(constant_id = 10) const uint kMatrixDepth = 16u;
layout(constant_id = 11) const uint kColumnsInLanes = 0u;  // lib/matrix.glsl

#define MATRIX_IDS_FROM_8
#include "lib/matrix.glsl"
#include "lib/matmul_f16.glsl"
