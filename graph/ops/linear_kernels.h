// What linear and linear_glu share: the choice of kernel and the dispatch.
#pragma once

#include "graph/lowering.h"
#include "graph/operator.h"

namespace rondo::graph {

/// Kernels of both operators: "vector" (few rows, invocations share output rows), "wide" (any rows, subgroups that
/// share the input; for CPU drivers), "tiled" (many rows, dequantised tiles in shared memory).
extern const char* const kLinearKernels[3];

/// Checks input (..., K), f32 with even rows, against weight (N, K).
Status check_linear(const Graph& graph, const Node& node);

/// Emits the dispatch of output (..., N) = input weight^T. With `glu`, N is half the rows of the weight, gates first.
Status lower_linear(Lowering& lowering, const Operator& op, TensorId input, TensorId weight, TensorId residual, TensorId output, bool glu);

}  // namespace rondo::graph
