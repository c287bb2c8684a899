// weighted_sum: input (..., k N), weights (..., k), residual? (..., N) -> sum over k of weights * input, + residual, (..., N).
#include "graph/attribute_reader.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "weighted_sum.params.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  if (node.inputs.size() == 2) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 3));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  make_rows_even(graph, node.inputs[0]);
  RONDO_TRY(check_activation(graph, node.inputs[1], "weights", 1, kMaxRank));
  widen(graph, node.inputs[1]);
  make_rows_even(graph, node.inputs[1]);
  Shape shape = graph.tensor(node.inputs[0]).shape, weights = shape;
  const std::int64_t k = graph.tensor(node.inputs[1]).shape.last();
  weights[weights.rank - 1] = k;
  RONDO_TRY(check_shape(graph, node.inputs[1], "weights", weights));
  if (shape.last() % k != 0) return refuse(fmt::format("input {} has rows that {} weights can't share", to_string(shape), k));
  shape[shape.rank - 1] /= k;
  if (node.inputs[2] != kNone) {
    RONDO_TRY(check_activation(graph, node.inputs[2], "residual", 1, kMaxRank));
    RONDO_ASSIGN(node.inputs[2], broadcast(graph, node.inputs[2], "residual", shape));
    make_rows_even(graph, node.inputs[2]);
  }
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[2]});
  node.outputs.push_back(graph.add_tensor("weighted_sum", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const Tensor& weights = lowering.tensor(node.inputs[1]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const std::uint32_t rows = u32(output.shape.n_rows());
  shaders::WeightedSumParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.columns = u32(output.shape.last());
  push.k = u32(weights.shape.last());
  push.input_offset = u32(input.offset_elements);
  push.input_stride = u32(row_stride(input));
  push.weights_offset = u32(weights.offset_elements);
  push.weights_stride = u32(row_stride(weights));
  push.has_residual = node.inputs[2] != kNone;
  if (push.has_residual) {
    const Tensor& residual = lowering.tensor(node.inputs[2]);
    push.residual_offset = u32(residual.offset_elements);
    push.residual_stride = u32(row_stride(residual));
  }
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("weighted_sum", lowering.module_for(runtime::Shader::weighted_sum, output.type), {kWidth},
                    {{input.storage, runtime::Access::kRead},
                     {weights.storage, runtime::Access::kRead},
                     {lowering.read_only(node.inputs[2]), runtime::Access::kRead},
                     {output.storage, runtime::Access::kWrite}},
                    push, {ceil_div(push.columns, kWidth), rows, 1}, {tensor_bytes(input) + 2 * tensor_bytes(output), 2 * tensor_elements(input)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]), weights = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  const std::int64_t k = weights.shape().last(), columns = output.shape().last();
  for (std::int64_t row = 0; row < output.shape().n_rows(); ++row) {
    for (std::int64_t i = 0; i < columns; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += static_cast<double>(weights.row_at(row, j)) * static_cast<double>(input.row_at(row, j * columns + i));
      if (node.inputs[2] != kNone) sum += static_cast<double>(tensors.view(node.inputs[2]).row_at(row, i));
      output.row_set(static_cast<float>(sum), row, i);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"input"}, {"weights"}, {"residual", InputRole::kActivation, kOptional}};

}  // namespace

extern const Operator weighted_sum_operator = {
    .name = "weighted_sum",
    .inputs = kNamedInputs,
    .accuracy = {ErrorClass::kExactSums, 1e6f, 30},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
