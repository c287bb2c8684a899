// What the kernels made for CPU drivers need: a workgroup that is one subgroup whose lanes exchange values, and f32.
#pragma once

#include "graph/tensor.h"
#include "runtime/device_caps.h"

namespace rondo::graph {

/// What is missing, in words, or null.
inline const char* wide_kernel_needs(const runtime::DeviceCaps& caps, Type activations) {
  if (activations != Type::kF32) return "activations in f32";
  const std::uint32_t size = caps.min_subgroup_size;
  if (size != caps.max_subgroup_size || (size != 4 && size != 8 && size != 16)) return "subgroups of one size: 4, 8 or 16";
  return caps.subgroup_shuffle ? nullptr : "subgroup shuffles";
}

}  // namespace rondo::graph
