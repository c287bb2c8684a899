// rms_norm and, with kLayer 1, layer_norm for GPUs (lib/norm_row.glsl). Needs: subgroups of exactly kLanes invocations, subgroupAdd.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/element.glsl"
#include "lib/norm_row.glsl"
