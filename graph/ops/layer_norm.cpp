// layer_norm: input (..., D), weight? (D), bias? (D) -> like input. Ba, Kiros and Hinton 2016.
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "layer_norm.params.h"

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
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::LayerNormParams push{};
  const bool heads = has_even_heads(input);
  push.heads = heads ? u32(input.shape[2]) : 1;
  const std::uint32_t n_tokens = u32(input.shape.n_rows()) / push.heads;
  push.rows_per_sequence = lowering.rows_per_sequence(n_tokens);
  push.columns = u32(input.shape.last());
  push.input_offset = u32(input.offset_elements);
  push.input_stride = heads ? stride_of(input, 1) : u32(row_stride(input));
  push.head_stride = heads ? stride_of(input, 2) : 0;
  push.has_weight = node.inputs[1] != kNone;
  if (push.has_weight) push.weight_offset = u32(lowering.tensor(node.inputs[1]).offset_elements);
  push.has_bias = node.inputs[2] != kNone;
  if (push.has_bias) push.bias_offset = u32(lowering.tensor(node.inputs[2]).offset_elements);
  push.epsilon = static_cast<float>(attributes_of<LayerNormAttributes>(node).epsilon);
  lowering.dispatch("layer_norm", lowering.module_for(runtime::Shader::layer_norm, input.type), {row_width(lowering, push.columns)},
                    {{input.storage, runtime::Access::kRead},
                     {lowering.read_only(node.inputs[1]), runtime::Access::kRead},
                     {lowering.read_only(node.inputs[2]), runtime::Access::kRead},
                     {output.storage, runtime::Access::kWrite}},
                    push, {n_tokens, push.heads, 1}, {2 * tensor_bytes(input), 8 * tensor_elements(input)});
  return {};
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

constexpr const char* kKernels[] = {"baseline"};

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
    .kernels = kKernels,
};

}  // namespace rondo::graph
