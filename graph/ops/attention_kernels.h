// What others need to know of attention's kernels.
#pragma once

#include "graph/lowering.h"

namespace rondo::graph {

/// Whether the node, attention, would leave its output in bytes as well (shaders/lib/rounding.glsl).
bool can_round_attention(const Node& node, const Lowering& lowering);

}  // namespace rondo::graph
