// As norm_subgroup.comp, and outputs in bytes as well, behind the f32, for linears with integer dot products. Needs: shuffles, too.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#define RONDO_ROUNDS_BY_LANES
#include "lib/norm_row.glsl"
