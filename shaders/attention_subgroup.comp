// Scaled dot-product attention with online softmax for few rows on GPUs; formula, inputs and features as attention.comp.
// A subgroup takes kRows rows (a row is one query of one head of a KV head's group) and walks the keys in rounds. Its lanes are
// clusters of kCluster, each with kKeys keys at a time: a lane loads 8 elements of each, so that lanes side by side read whole
// cache lines, and the scores of all pairs of row and key are added up by halves: each lane ends with the pair of its place, and
// weighs it. Every cluster has its own maximum and sums; they meet in shared memory at the end.
// Rounds go around the subgroups of all splits. Grid (row tiles, B * G, n_splits); split keys (kSplit 1) as in attention.comp.
// With kJoins as well, as few splits take part as have a round for each of their subgroups, and the last of them to come joins what all have left, in the order of splits.
// f32 accumulation in fixed order; K and V f32, f16 or q8_0.
// Needs: subgroups of exactly kLanes invocations, subgroupShuffle and subgroupShuffleXor; head widths, strides and offsets of keys
// and values multiples of 8, those of queries of 4; kRows * kKeys at most kCluster, at most kLanes, all powers of two. With kJoins: coherent buffers that other
// workgroups see (vulkanMemoryModelDeviceScope), RONDO_STATE_MAX_ARRIVED for row tiles times G, n_splits at most RONDO_MAX_SPLITS, and no input of_heads.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_control_flow_attributes : require
#include "attention.params.h"
#include "lib/attention_features.h"
#include "lib/step_state.glsl"
#include "lib/element.glsl"
#include "lib/attention_subgroup.glsl"
