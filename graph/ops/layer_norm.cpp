// layer_norm: input (..., D), weight? (D), bias? (D) -> like input. Ba, Kiros and Hinton 2016.
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/norm_kernels.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  while (!node.inputs.empty() && node.inputs.size() < 3) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 3));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  if (!has_even_heads(graph.tensor(node.inputs[0]))) make_rows_even(graph, node.inputs[0]);
  widen(graph, node.inputs[1]);
  widen(graph, node.inputs[2]);
  const Tensor input = graph.tensor(node.inputs[0]);
  for (auto [index, role] : {std::pair{1u, "weight"}, std::pair{2u, "bias"}}) {
    if (node.inputs[index] != kNone) RONDO_TRY(check_vector(graph, node.inputs[index], role, input.shape.last()));
  }
  node.outputs.push_back(graph.add_tensor("layer_norm", StorageKind::kActivation, input.type, input.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  return lower_norm(lowering, node.op, {node.inputs[0], node.outputs[0], node.inputs[1], node.inputs[2], attributes_of<LayerNormAttributes>(node).epsilon});
}

Status reference(const Node& node, HostTensors& tensors) {
  const double epsilon = attributes_of<LayerNormAttributes>(node).epsilon;
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t columns = input.shape().last();
  for (std::int64_t row = 0; row < input.shape().n_rows(); ++row) {
    const double pivot = input.row_at(row, 0);  // what a constant row must be to come out as exactly its bias
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += input.row_at(row, i) - pivot;
    const double mean = pivot + sum / static_cast<double>(columns);
    for (std::int64_t i = 0; i < columns; ++i) squares += (input.row_at(row, i) - mean) * (input.row_at(row, i) - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (std::int64_t i = 0; i < columns; ++i) {
      double value = (input.row_at(row, i) - mean) * scale;
      if (node.inputs[1] != kNone) value *= static_cast<double>(tensors.view(node.inputs[1]).at(i));
      if (node.inputs[2] != kNone) value += static_cast<double>(tensors.view(node.inputs[2]).at(i));
      output.row_set(static_cast<float>(value), row, i);
    }
  }
  return {};
}

Attributes read_attributes(AttributeReader& reader) {
  LayerNormAttributes norm;
  reader.read("epsilon", norm.epsilon);
  return norm;
}

constexpr NamedInput kNamedInputs[] = {{"input"}, {"weight", InputRole::kParameter, kOptional}, {"bias", InputRole::kParameter, kOptional}};

}  // namespace

extern const Operator layer_norm_operator = {
    .name = "layer_norm",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kSums, 1e15f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kNormKernels,
};

}  // namespace rondo::graph
