// attention_subgroup.comp with products of queries and keys made in f16, two by an instruction, and sums in f32. A row of queries is scaled by a power of two
// as f16 holds it best. For queries in f32, and keys and values in f16, without relative keys.
// Needs: what that needs, shaderFloat16, VK_VALVE_shader_mixed_float_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/half_dot.glsl"
#include "lib/halves.glsl"
#define RONDO_HALF_QUERIES
#include "lib/attention_subgroup.glsl"
