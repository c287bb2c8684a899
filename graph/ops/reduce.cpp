// mean, sum, max: input -> one value for each row along an axis, which goes, or stays with extent 1.
#include <cmath>

#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "reduce.params.h"

namespace rondo::graph {

namespace {

std::uint32_t operation_of(const Node& node) {
  if (node.op == Op::sum) return RONDO_REDUCE_SUM;
  return node.op == Op::max ? RONDO_REDUCE_MAX : RONDO_REDUCE_MEAN;
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  const auto attributes = attributes_of<ReduceAttributes>(node);
  const Shape from = graph.tensor(node.inputs[0]).shape;
  const int axis = resolve_axis(from, attributes.axis);
  if (axis < 0) return refuse(fmt::format("axis is {} but input is {}", attributes.axis, to_string(from)));
  Shape shape;
  for (int i = 0; i < from.rank; ++i) {
    if (i != axis) shape[shape.rank++] = from[i];
    else if (attributes.keep) shape[shape.rank++] = 1;
  }
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, graph.tensor(node.inputs[0]).type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const int axis = resolve_axis(input.shape, attributes_of<ReduceAttributes>(node).axis) + kMaxRank - input.shape.rank;
  const auto [d0, d1, d2] = other_axes(axis);
  shaders::ReduceParams push{};
  push.dim1 = u32(extent4(input.shape, d1));
  push.columns = u32(extent4(input.shape, axis));
  const std::uint32_t inner = u32(extent4(input.shape, d2)), outer = u32(extent4(input.shape, d0)) * push.dim1;
  push.rows_per_sequence = lowering.rows_per_sequence(std::int64_t{inner} * outer);
  push.input_offset = u32(input.offset_elements);
  push.input_stride0 = stride4(input, d0), push.input_stride1 = stride4(input, d1), push.input_stride2 = stride4(input, d2), push.input_axis_stride = stride4(input, axis);
  lowering.dispatch(operator_of(node.op).name, lowering.module_for(runtime::Shader::reduce, input.type), {row_width(lowering, push.columns), operation_of(node)},
                    {{input.storage, runtime::Access::kRead}, {lowering.tensor(node.outputs[0]).storage, runtime::Access::kWrite}}, push, {inner, outer, 1},
                    {tensor_bytes(input), 4 * tensor_elements(input)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  const int axis = resolve_axis(input.shape(), attributes_of<ReduceAttributes>(node).axis) + kMaxRank - input.shape().rank;
  const std::int64_t columns = extent4(input.shape(), axis);
  std::vector<double> results;
  for_each_element(input.shape(), [&](Index4 index) {
    if (index[static_cast<std::size_t>(axis)] != 0) return;
    double result = node.op == Op::max ? at4(input, index) : 0;
    for (std::int64_t& i = index[static_cast<std::size_t>(axis)]; i < columns; ++i) {
      const double value = at4(input, index);
      if (node.op != Op::max) result += value;
      else if (value > result || std::isnan(value)) result = value;
    }
    results.push_back(node.op == Op::mean ? result / static_cast<double>(columns) : result);
  });
  HostView output = tensors.view(node.outputs[0]);
  std::size_t next = 0;
  for_each_element(output.shape(), [&](const Index4& index) { set4(output, results[next++], index); });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

}  // namespace

extern const Operator mean_operator = {"mean", infer, lower, reference, nullptr, kKernels};
extern const Operator sum_operator = {"sum", infer, lower, reference, nullptr, kKernels};
extern const Operator max_operator = {"max", infer, lower, reference, nullptr, kKernels};

}  // namespace rondo::graph
