// What rms_norm and layer_norm share: the choice of kernel and the dispatch.
#pragma once

#include "graph/lowering.h"
#include "graph/operator.h"

namespace rondo::graph {

/// "subgroup" (a row in registers of a workgroup, for GPUs), "baseline".
extern const char* const kNormKernels[2];

struct NormCall {
  TensorId input = kNone, output = kNone;
  TensorId weight = kNone;  ///< a factor of each column
  TensorId addend = kNone;  ///< rms_norm: like input; layer_norm: one of each column
  double epsilon = 0, weight_bias = 0;
};

/// Whether the node, a norm, would leave its output in bytes as well (shaders/lib/rounding.glsl), or in f16 (shaders/lib/halved_input.glsl).
bool can_round_norm(const Node& node, const Lowering& lowering);
bool can_halve_norm(const Node& node, const Lowering& lowering);

/// Emits the dispatch.
Status lower_norm(Lowering& lowering, Op op, const NormCall& call);

}  // namespace rondo::graph
