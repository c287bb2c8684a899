// The sizes of kernels' tiles for each class of device: data, in tiles.cpp, with what each is chosen by.
#pragma once

#include <cstdint>

#include "graph/tensor.h"
#include "runtime/device_caps.h"

namespace rondo::graph {

/// How linear's "subgroup" kernel shares out rows and columns (shaders/linear_subgroup.comp).
struct SubgroupTile {
  std::uint32_t lanes = 0;      ///< of a subgroup; 0: the device has none that can be relied on
  std::uint32_t subgroups = 0;  ///< of a workgroup
  std::uint32_t rows = 0;       ///< of the weight that a subgroup makes; with GLU as many pairs
  std::uint32_t tokens = 0;     ///< rows of the input that it makes them of
};

/// For `n_rows` rows of input of this type.
SubgroupTile subgroup_tile(const runtime::DeviceCaps& caps, Type activations, std::uint32_t n_rows, bool glu);

/// Up to so many rows of input "subgroup" is chosen rather than tiles.
constexpr std::uint32_t kMostSubgroupRows = 8;

}  // namespace rondo::graph
