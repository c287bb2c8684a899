// As norm_subgroup.comp, and outputs in f16, as well or only so, for linears of many rows in f16. Needs: f16 arithmetic, too.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define RONDO_LEAVES_HALVES
#include "lib/norm_row.glsl"
