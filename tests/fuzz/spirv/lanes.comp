#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_clustered : require
#extension GL_KHR_shader_subgroup_quad : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
// What lanes do together, and atomics.
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(set = 0, binding = 2) buffer Counts { uint count; uint most; uint seen[4]; };
void main() {
  const uint x = data[gl_GlobalInvocationID.x];
  uint y = subgroupAdd(x) + subgroupClusteredMax(x, 4u) + subgroupExclusiveAdd(x) + subgroupInclusiveMin(x);
  y += subgroupShuffle(x, gl_SubgroupInvocationID ^ 3u) + subgroupShuffleXor(x, 1u) + subgroupBroadcastFirst(y) + subgroupQuadSwapHorizontal(y);
  const uvec4 odd = subgroupBallot((x & 1u) == 1u);
  y += subgroupBallotBitCount(odd) + (subgroupInverseBallot(odd) ? 1u : 2u) + subgroupBallotExclusiveBitCount(odd);
  if (subgroupAll(x > 3u) || subgroupAny(x == 5u)) y ^= subgroupAllEqual(vec2(y, 1.0)) ? 7u : 9u;
  atomicAdd(count, y);
  atomicMax(most, y);
  seen[y % 4u] = atomicExchange(data[0], x);
}
