// linear_glu (fused): input (..., K), weight (2 N, K) with the gates' rows first ->
// glu(input gate^T, input up^T), (..., N).
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/linear_kernels.h"

namespace rondo::graph {

extern const Operator linear_glu_operator;

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_linear(graph, node));
  const std::int64_t rows = graph.tensor(node.inputs[1]).shape[0];
  if (rows % 2 != 0) return refuse(fmt::format("weight has {} rows, which can't be halves of gates and ups", rows));
  Shape shape = graph.tensor(node.inputs[0]).shape;
  shape[shape.rank - 1] = rows / 2;
  node.outputs.push_back(graph.add_tensor("linear_glu", StorageKind::kActivation, graph.tensor(node.inputs[0]).type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  return lower_linear(lowering, linear_glu_operator, *find_linear_call(node));
}

std::vector<Node> decompose(Graph& graph, const Node& node) {
  const std::int64_t half = graph.tensor(node.inputs[1]).shape[0] / 2;
  const std::size_t before = graph.nodes().size();
  const TensorId gate = graph.add(Op::linear, {node.inputs[0], graph.slice(node.inputs[1], 0, 0, half)});
  const TensorId up = graph.add(Op::linear, {node.inputs[0], graph.slice(node.inputs[1], 0, half, 2 * half)});
  graph.add(Op::glu, {gate, up}, attributes_of<GluAttributes>(node));
  return take_nodes_from(graph, before, node);
}

Attributes read_attributes(AttributeReader& reader) {
  GluAttributes glu;
  reader.read(glu);
  return glu;
}

constexpr NamedInput kNamedInputs[] = {{"input"}, {"weight", InputRole::kMatrix}};

}  // namespace

extern const Operator linear_glu_operator = {
    .name = "linear_glu",
    .reserved = "is made by fusion of linear and glu",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kFunctions, 1e6f, 0.05f},
    .infer = infer,
    .lower = lower,
    .decompose = decompose,
    .kernels = kLinearKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
