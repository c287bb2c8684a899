// Runs a Graph on the CPU with the operators' references: the oracle of every kernel, and `rondo eval --reference`.
#pragma once

#include <rondo/status.h>

#include "graph/graph.h"
#include "graph/host_tensors.h"

namespace rondo::graph {

/// Runs all nodes in order, fused ones through their decomposition. Inputs must be in `tensors` before.
/// `graph` is the one `tensors` was made for; decompositions add tensors to it. Errors: a weight that can't be read.
Status interpret(Graph& graph, HostTensors& tensors);

}  // namespace rondo::graph
