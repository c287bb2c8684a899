// A weight block made of numbers that a hash of their place gives, for measurements without a file. Quants of block types
// are random bits and all scales are equal; f32 and f16 are uniform in [-scale, scale). One invocation per 16 words; grid
// (x, y) of at least ceil(words / (16 width)) workgroups. Binding 0 is the block itself: there is no step.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "random_weights.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint kWidth = 64u;
layout(std430, set = 0, binding = 0) writeonly buffer Block { uint words[]; };

// PCG's output function on a linear congruential step: Jarzynski and Olano, "Hash Functions for GPU Rendering", 2020.
uint hash(uint value) {
  const uint state = value * 747796405u + 2891336453u;
  const uint word = ((state >> ((state >> 28) + 4u)) ^ state) * 277803737u;
  return (word >> 22) ^ word;
}

float uniform_value(uint bits) { return (float(bits >> 8) * (2.0 / 16777216.0) - 1.0) * p.scale; }

void main() {
  const uint workgroup = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  for (uint i = 0u; i < 16u; ++i) {
    const uint at = (workgroup * 16u + i) * kWidth + gl_LocalInvocationID.x;
    if (at >= p.words) return;
    const uint bits = hash(at ^ hash(p.seed));
    uint word = bits;
    if (p.constant != 0u) {
      word = floatBitsToUint(p.scale);
    } else if (at >= p.quant_words) {
      word = (at - p.quant_words) % p.scale_words == 0u ? p.first_scale : p.more_scales;
    } else if (p.float_bits == 32u) {
      word = floatBitsToUint(uniform_value(bits));
    } else if (p.float_bits == 16u) {
      word = packHalf2x16(vec2(uniform_value(bits), uniform_value(hash(bits))));
    }
    words[at] = word;
  }
}
