#include "graph/operator.h"

#include <array>

namespace rondo::graph {

#define RONDO_OPERATOR(name) extern const Operator name##_operator;
#include "graph/operators.inc"
#undef RONDO_OPERATOR

namespace {

constexpr std::array<const Operator*, kOpCount> kOperators = {
#define RONDO_OPERATOR(name) &name##_operator,
#include "graph/operators.inc"
#undef RONDO_OPERATOR
};

}  // namespace

const Operator& operator_of(Op op) { return *kOperators[static_cast<std::size_t>(op)]; }

std::optional<Op> find_operator(std::string_view name) {
  for (std::size_t i = 0; i < kOpCount; ++i) {
    if (name == kOperators[i]->name) return static_cast<Op>(i);
  }
  return std::nullopt;
}

bool is_step_count(const Graph& graph, TensorId id) {
  constexpr std::size_t kCountOutput = 3;
  if (id == kNone) return true;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::step_begin && node.outputs[kCountOutput] == id) return true;
  }
  return false;
}

bool writes_input(const Node& node, std::size_t index) {
  const std::span<const NamedInput> inputs = operator_of(node.op).inputs;
  return index < inputs.size() && inputs[index].written;
}

std::vector<Node> take_nodes_from(Graph& graph, std::size_t before, const Node& fused) {
  std::vector<Node>& nodes = graph.nodes();
  std::vector<Node> taken;
  for (std::size_t i = before; i < nodes.size(); ++i) taken.push_back(std::move(nodes[i]));
  nodes.resize(before);
  if (!taken.empty() && !fused.outputs.empty()) taken.back().outputs = fused.outputs;
  return taken;
}

}  // namespace rondo::graph
