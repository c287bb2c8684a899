// linear: input (..., K), weight (N, K), residual? (broadcasts to the output), bias? (N) -> activation(input weight^T + bias) + residual, (..., N).
// Row n of the weight makes output n.
#include "graph/activation.h"
#include "graph/host_tensors.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/linear_kernels.h"

namespace rondo::graph {

extern const Operator linear_operator;

namespace {

Status infer(Graph& graph, Node& node) {
  while (node.inputs.size() > 1 && node.inputs.size() < 4) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 4));
  RONDO_TRY(check_linear(graph, node));
  Shape shape = graph.tensor(node.inputs[0]).shape;
  shape[shape.rank - 1] = graph.tensor(node.inputs[1]).shape[0];
  if (node.inputs[2] != kNone) {
    RONDO_TRY(check_activation(graph, node.inputs[2], "residual", 1, kMaxRank));
    RONDO_ASSIGN(node.inputs[2], broadcast(graph, node.inputs[2], "residual", shape));
    make_rows_even(graph, node.inputs[2]);
  }
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[2]});
  widen(graph, node.inputs[3]);
  if (node.inputs[3] != kNone) RONDO_TRY(check_vector(graph, node.inputs[3], "bias", shape.last()));
  node.outputs.push_back(graph.add_tensor("linear", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  return lower_linear(lowering, linear_operator, *find_linear_call(node));
}

Status reference(const Node& node, HostTensors& tensors) {
  const Activation activation = attributes_of<LinearAttributes>(node).activation;
  const HostView input = tensors.view(node.inputs[0]), weight = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  std::vector<double> row(static_cast<std::size_t>(weight.dim(1)));
  for (std::int64_t m = 0; m < input.shape().n_rows(); ++m) {
    for (std::int64_t k = 0; k < weight.dim(1); ++k) row[static_cast<std::size_t>(k)] = input.row_at(m, k);
    for (std::int64_t n = 0; n < weight.dim(0); ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < weight.dim(1); ++k) sum += row[static_cast<std::size_t>(k)] * static_cast<double>(weight.at(n, k));
      if (node.inputs[3] != kNone) sum += static_cast<double>(tensors.view(node.inputs[3]).at(n));
      sum = activate(activation, sum);
      if (node.inputs[2] != kNone) sum += tensors.view(node.inputs[2]).row_at(m, n);
      output.row_set(static_cast<float>(sum), m, n);
    }
  }
  return {};
}

Attributes read_attributes(AttributeReader& reader) {
  LinearAttributes linear;
  reader.read("activation", linear.activation);
  return linear;
}

constexpr NamedInput kNamedInputs[] = {
    {"input"},
    {"weight", InputRole::kMatrix},
    {"residual", InputRole::kActivation, kOptional},
    {"bias", InputRole::kParameter, kOptional},
};

}  // namespace

extern const Operator linear_operator = {
    .name = "linear",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kExactSums, 1e6f, 0.05f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kLinearKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
