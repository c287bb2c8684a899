// What linear, linear_glu and their kinds with experts share: the choice of kernel and the dispatch.
#pragma once

#include <optional>

#include "graph/lowering.h"
#include "graph/operator.h"

namespace rondo::graph {

/// Kernels of linear, linear_glu and their kinds with experts: "subgroup" (few rows, a subgroup makes some outputs), "dot" (the same with activations in bytes), "vector" (the same in shared
/// memory, for devices without subgroup reductions), "wide" (any rows, subgroups that share the input; for CPU drivers), "tiled" (many rows, dequantised tiles
/// in shared memory), "matrix" (the same in f16, by matrix units), "dot_tiled" (the same in bytes), "half_tiled" (the same in f16, two products by an instruction), "halves" (few rows, weights in f16
/// for devices with registers of 16 bits).
extern const char* const kLinearKernels[9];

/// Checks input (..., K) against weight (N, K); an input whose rows are not even becomes a copy of itself.
Status check_linear(Graph& graph, Node& node);

/// Checks a weight (N, K), of a weight type, against K.
Status check_linear_weight(const Graph& graph, TensorId weight, std::int64_t columns);

/// output (..., N) = activation(input weight^T + bias) + residual.
struct LinearCall {
  TensorId input = kNone, weight = kNone, output = kNone;
  TensorId bias = kNone;  ///< as long as the weight has rows
  TensorId residual = kNone;  ///< like output
  Activation activation = Activation::kIdentity;
  std::optional<GluAttributes> glu = std::nullopt;  ///< the weight has 2 N rows, gates first
  TensorId experts = kNone;   ///< i32 (..., k): output (..., k N), input (..., K) or (..., k K)
  std::int64_t n_experts = 1;  ///< that the weight has rows of; with glu the gates of all come first
};

/// What a node of linear, linear_glu or their kinds with experts calls; of others nothing.
std::optional<LinearCall> find_linear_call(const Node& node);

/// Whether the linear that this node is would compute an RMS norm of its output too, or take an input that is to be normalised.
bool can_make_norm(const Node& node, const Lowering& lowering);
bool can_take_norm(const Node& node, const Lowering& lowering);

/// Whether it would turn queries and keys, and put keys and values into the caches, in the place of a rope_kv_write behind it.
bool can_rotate(const Node& node, const Node& rotation, const Lowering& lowering);

/// Whether the node is a linear of any kind that would multiply few rows of its input in bytes; and whether one would leave its output, or the norm behind it, in bytes.
bool takes_bytes_in_few_rows(const Node& node, const Lowering& lowering);
bool can_round_outputs(const Node& node, const Lowering& lowering);
/// Whether it is a linear of any kind that would multiply its input in f16, of which it takes all columns of each token.
bool takes_halves(const Node& node, const Lowering& lowering);
/// Whether a linear of Q8_0 of so many rows and columns would take bytes: what self-tests put behind a node that leaves its output so.
bool linears_of_bytes_take_dots(const Lowering& lowering, std::uint32_t rows, std::uint32_t columns);
/// Whether one of F16 would take f16, likewise.
bool linears_of_halves_take_halves(const Lowering& lowering, std::uint32_t rows, std::uint32_t columns);

/// Emits the dispatches, one for each piece of the weight. Errors: kUnsupported (a weight in pieces with glu or experts).
Status lower_linear(Lowering& lowering, const Operator& op, const LinearCall& call);

}  // namespace rondo::graph
