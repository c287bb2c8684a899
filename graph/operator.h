// What an operator is: four functions and a list of kernels. One table of them, in the order of operators.inc.
//
// An operator's file reads: inputs by name -> infer (check, make outputs) -> kernels and their predicates -> lower (push
// constants, grid, cost) -> reference (plain loops, double inside). Everything here is pure: no Vulkan, no files.
#pragma once

#include <span>
#include <string_view>

#include <rondo/status.h>

#include "graph/graph.h"

namespace rondo::graph {

class Lowering;
class HostTensors;

struct Operator {
  const char* name;
  /// Checks the inputs of a node and adds its outputs to the graph. Refuses in words; the caller adds "[name] ".
  Status (*infer)(Graph& graph, Node& node);
  /// Emits the node's dispatches.
  Status (*lower)(const Node& node, Lowering& lowering);
  /// Computes the node on the host, or null for a fused operator, which is run as its decomposition.
  Status (*reference)(const Node& node, HostTensors& tensors);
  /// Fused operators: the same meaning in simple operators, appended to `graph` (tensors) and returned (nodes).
  std::vector<Node> (*decompose)(Graph& graph, const Node& node);
  /// Names of the kernels that can be forced, best known first where several are allowed.
  std::span<const char* const> kernels;
};

/// The operator's table. Never fails.
const Operator& operator_of(Op op);

/// The operator called `name`, if there is one.
std::optional<Op> find_operator(std::string_view name);

/// Whether `id`, a count of rows, is kNone or the one that step_begin gives: what every kernel knows from the step state.
bool is_step_count(const Graph& graph, TensorId id);

/// For `decompose`: removes the nodes added since there were `before`, and lets the last write the outputs of `fused`.
std::vector<Node> take_nodes_from(Graph& graph, std::size_t before, const Node& fused);

/// The attributes of a node as the struct its operator takes (defaults where the node carries none).
template <typename T>
T attributes_of(const Node& node) {
  const T* found = std::get_if<T>(&node.attributes);
  return found ? *found : T{};
}

}  // namespace rondo::graph
