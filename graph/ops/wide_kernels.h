// What the kernels made for CPU drivers need of a device: a workgroup that is one subgroup whose lanes exchange values.
#pragma once

#include "runtime/device_caps.h"

namespace rondo::graph {

/// What is missing, in words, or null.
inline const char* wide_kernel_needs(const runtime::DeviceCaps& caps) {
  const std::uint32_t size = caps.min_subgroup_size;
  if (size != caps.max_subgroup_size || (size != 4 && size != 8 && size != 16)) return "subgroups of one size: 4, 8 or 16";
  return caps.subgroup_shuffle ? nullptr : "subgroup shuffles";
}

}  // namespace rondo::graph
