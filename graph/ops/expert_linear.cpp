// expert_linear: input (..., K) or (..., k K), weight (E N, K), experts i32 (..., k), bias? (E N) -> (..., k N), with rows
// [e N, (e + 1) N) of the weight, and of the bias, for expert e. Shazeer et al. 2017.
// expert_linear_glu (fused): weight (2 E N, K) and bias (2 E N), the gates of all experts first -> glu of both, (..., k N).
// A number outside [0, E) means the nearest one. Only the rows of experts that are chosen are read.
#include <algorithm>

#include "graph/activation.h"
#include "graph/attribute_reader.h"
#include "graph/host_tensors.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/ops/linear_kernels.h"

namespace rondo::graph {

extern const Operator expert_linear_operator, expert_linear_glu_operator;

namespace {

enum Input { kInput, kWeight, kExperts, kBias, kInputs };

Status infer(Graph& graph, Node& node) {
  if (node.inputs.size() == kBias) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, kInputs));
  RONDO_TRY(check_tensor(graph, node.inputs[kExperts], "experts", Type::kI32, 1, kMaxRank));
  RONDO_TRY(check_rows(graph, node.inputs[kExperts], "experts"));
  RONDO_TRY(check_activation(graph, node.inputs[kInput], "input", 1, kMaxRank));
  make_rows_even(graph, node.inputs[kInput]);
  if (node.inputs[kWeight] == kNone) return refuse("weight is missing");
  const Shape chosen = graph.tensor(node.inputs[kExperts]).shape, weight = graph.tensor(node.inputs[kWeight]).shape;
  Shape shape = chosen;
  const std::int64_t columns = graph.tensor(node.inputs[kInput]).shape.last();
  shape[shape.rank - 1] = columns;
  RONDO_TRY(check_shape(graph, node.inputs[kInput], "input", shape));
  const bool each = weight.rank == 2 && columns == chosen.last() * weight[1];
  RONDO_TRY(check_linear_weight(graph, node.inputs[kWeight], each ? weight[1] : columns));
  const std::int64_t n = weight[0], parts = node.op == Op::expert_linear_glu ? 2 : 1;
  const std::int64_t experts = attributes_of<ExpertAttributes>(node).experts;
  if (experts < 1 || n % (parts * experts) != 0) return refuse(fmt::format("weight has {} rows, which {} experts{} can't share", n, experts, parts == 2 ? " with gates and ups" : ""));
  widen(graph, node.inputs[kBias]);
  if (node.inputs[kBias] != kNone) RONDO_TRY(check_vector(graph, node.inputs[kBias], "bias", n));
  shape[shape.rank - 1] = chosen.last() * (n / parts / experts);
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, graph.tensor(node.inputs[kInput]).type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) { return lower_linear(lowering, operator_of(node.op), *find_linear_call(node)); }

Status reference(const Node& node, HostTensors& tensors) {
  const std::int64_t n_experts = attributes_of<ExpertAttributes>(node).experts;
  const HostView input = tensors.view(node.inputs[kInput]), weight = tensors.view(node.inputs[kWeight]), experts = tensors.view(node.inputs[kExperts]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t chosen = experts.shape().last(), outputs = weight.dim(0) / n_experts, columns = weight.dim(1);
  const std::int64_t stride = input.shape().last() > columns ? columns : 0;
  for (std::int64_t row = 0; row < output.shape().n_rows(); ++row) {
    for (std::int64_t i = 0; i < chosen; ++i) {
      const std::int64_t expert = std::clamp<std::int64_t>(static_cast<std::int64_t>(experts.row_at(row, i)), 0, n_experts - 1);
      for (std::int64_t n = 0; n < outputs; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < columns; ++k) sum += static_cast<double>(input.row_at(row, i * stride + k)) * static_cast<double>(weight.at(expert * outputs + n, k));
        if (node.inputs[kBias] != kNone) sum += static_cast<double>(tensors.view(node.inputs[kBias]).at(expert * outputs + n));
        output.row_set(static_cast<float>(sum), row, i * outputs + n);
      }
    }
  }
  return {};
}

std::vector<Node> decompose(Graph& graph, const Node& node) {
  const auto attributes = attributes_of<ExpertAttributes>(node);
  const std::int64_t half = graph.tensor(node.inputs[kWeight]).shape[0] / 2;
  const std::size_t before = graph.nodes().size();
  const auto part = [&](std::int64_t first) {
    const TensorId bias = node.inputs[kBias] == kNone ? kNone : graph.slice(node.inputs[kBias], 0, first, first + half);
    return graph.add(Op::expert_linear, {node.inputs[kInput], graph.slice(node.inputs[kWeight], 0, first, first + half), node.inputs[kExperts], bias}, ExpertAttributes{attributes.experts, {}});
  };
  const TensorId gate = part(0), up = part(half);
  graph.add(Op::glu, {gate, up}, attributes.glu);
  return take_nodes_from(graph, before, node);
}

Attributes read_attributes(AttributeReader& reader) {
  ExpertAttributes attributes;
  reader.require("count");
  reader.read("count", attributes.experts);
  return attributes;
}

Attributes read_attributes_of_glu(AttributeReader& reader) {
  ExpertAttributes attributes = std::get<ExpertAttributes>(read_attributes(reader));
  reader.read(attributes.glu);
  return attributes;
}

constexpr NamedInput kNamedInputs[] = {
    {"input"},
    {"weight", InputRole::kMatrix},
    {"experts", InputRole::kIntegers},
    {"bias", InputRole::kParameter, kOptional},
};

}  // namespace

extern const Operator expert_linear_operator = {
    .name = "expert_linear",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kExactSums, 1e6f, 0.05f},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kLinearKernels,
    .kernels_have_types = true,
};

extern const Operator expert_linear_glu_operator = {
    .name = "expert_linear_glu",
    .reserved = "is made by fusion of expert_linear and glu",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes_of_glu,
    .accuracy = {ErrorClass::kFunctions, 1e6f, 0.05f},
    .infer = infer,
    .lower = lower,
    .decompose = decompose,
    .kernels = kLinearKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
