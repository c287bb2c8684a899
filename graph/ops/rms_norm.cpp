// rms_norm: input (..., D), weight? (D), residual? like input -> like input. Zhang and Sennrich 2019.
#include <cmath>

#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/norm_kernels.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  while (node.inputs.size() < 3) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 3));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  if (!has_even_heads(graph.tensor(node.inputs[0]))) make_rows_even(graph, node.inputs[0]);
  widen(graph, node.inputs[1]);
  if (node.inputs[2] != kNone) {
    RONDO_TRY(check_activation(graph, node.inputs[2], "residual", 1, kMaxRank));
    RONDO_TRY(check_shape(graph, node.inputs[2], "residual", graph.tensor(node.inputs[0]).shape));
    if (graph.tensor(node.inputs[0]).shape.rank == 4) return refuse("residual of an input with heads is not there");
    make_rows_even(graph, node.inputs[2]);
  }
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[2]});
  const Tensor input = graph.tensor(node.inputs[0]);
  if (node.inputs[1] != kNone) RONDO_TRY(check_vector(graph, node.inputs[1], "weight", input.shape.last()));
  node.outputs.push_back(graph.add_tensor("rms_norm", StorageKind::kActivation, type, input.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  if (lowering.norm_before(node.outputs[0])) return {};  // the linears around it compute it
  const auto attributes = attributes_of<RmsNormAttributes>(node);
  return lower_norm(lowering, node.op, {node.inputs[0], node.outputs[0], node.inputs[1], node.inputs[2], attributes.epsilon, attributes.weight_offset});
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<RmsNormAttributes>(node);
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t columns = input.shape().last();
  for (std::int64_t row = 0; row < input.shape().n_rows(); ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) sum += static_cast<double>(input.row_at(row, i)) * static_cast<double>(input.row_at(row, i));
    const double scale = 1 / std::sqrt(sum / static_cast<double>(columns) + attributes.epsilon);
    for (std::int64_t i = 0; i < columns; ++i) {
      const double weight = node.inputs[1] == kNone ? 1.0 : static_cast<double>(tensors.view(node.inputs[1]).at(i)) + attributes.weight_offset;
      const double residual = node.inputs[2] == kNone ? 0.0 : static_cast<double>(tensors.view(node.inputs[2]).row_at(row, i));
      output.row_set(static_cast<float>(input.row_at(row, i) * scale * weight + residual), row, i);
    }
  }
  return {};
}

Attributes read_attributes(AttributeReader& reader) {
  RmsNormAttributes norm;
  reader.read("epsilon", norm.epsilon);
  reader.read("weight_offset", norm.weight_offset);
  return norm;
}

constexpr NamedInput kNamedInputs[] = {{"input"}, {"weight", InputRole::kParameter, kOptional}, {"residual", InputRole::kActivation, kOptional}};

}  // namespace

extern const Operator rms_norm_operator = {
    .name = "rms_norm",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kSums, 1e15f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kNormKernels,
};

}  // namespace rondo::graph
