// What linear and linear_glu share: the choice of kernel and the dispatch.
#pragma once

#include "graph/lowering.h"
#include "graph/operator.h"

namespace rondo::graph {

/// Kernels of both operators: "vector" (few rows, invocations share output rows), "wide" (any rows, subgroups that
/// share the input; for CPU drivers), "tiled" (many rows, dequantised tiles in shared memory).
extern const char* const kLinearKernels[3];

/// Checks input (..., K) against weight (N, K); an input whose rows are not even becomes a copy of itself.
Status check_linear(Graph& graph, Node& node);

/// Checks a weight (N, K), of a weight type, against K.
Status check_linear_weight(const Graph& graph, TensorId weight, std::int64_t columns);

/// What a linear does with its sums.
struct LinearOutput {
  TensorId bias = kNone;  ///< (N), not with glu
  Activation activation = Activation::kIdentity;
  TensorId residual = kNone;  ///< like output
  bool glu = false;           ///< the weight has 2 N rows, gates first: activation(gate) * up
};

/// Emits the dispatches of output (..., N) = activation(input weight^T + bias) + residual, one per piece of the weight.
Status lower_linear(Lowering& lowering, const Operator& op, TensorId input, TensorId weight, TensorId output, const LinearOutput& after);

}  // namespace rondo::graph
