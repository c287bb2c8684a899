// mean, sum, max: input -> one value for each row along one or several axes, which go, or stay with extent 1.
#include <algorithm>
#include <cmath>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "reduce.params.h"

namespace rondo::graph {

namespace {

std::uint32_t operation_of(const Node& node) {
  if (node.op == Op::sum) return RONDO_REDUCE_SUM;
  return node.op == Op::max ? RONDO_REDUCE_MAX : RONDO_REDUCE_MEAN;
}

/// The axes that go, as dimensions of `shape`.
Result<std::vector<int>> axes_of(const ReduceAttributes& attributes, const Shape& shape) {
  std::vector<int> axes;
  for (int i = 0; i < std::max(attributes.n_axes, 1); ++i) {
    const std::int64_t wanted = attributes.n_axes == 0 ? attributes.axis : attributes.axes[static_cast<std::size_t>(i)];
    const int axis = resolve_axis(shape, wanted);
    if (axis < 0) return refuse(fmt::format("axis is {} but input is {}", wanted, to_string(shape)));
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) return refuse(fmt::format("axis {} is named twice", axis));
    axes.push_back(axis);
  }
  return axes;
}

/// Several axes become one, the last: of a view that has them there, or of its copy where they do not lie evenly.
TensorId join_axes(Graph& graph, TensorId input, const std::vector<int>& axes) {
  const Shape from = graph.tensor(input).shape;
  std::vector<int> order;
  Shape shape;
  for (int axis = 0; axis < from.rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    order.push_back(axis);
    shape[shape.rank++] = from[axis];
  }
  const std::int64_t n_kept = shape.n_elements();
  shape[shape.rank++] = from.n_elements() / n_kept;
  for (int axis = 0; axis < from.rank; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) order.push_back(axis);
  }
  return graph.reshape_or_copy(graph.transpose(input, order), shape);
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  const auto attributes = attributes_of<ReduceAttributes>(node);
  const Shape from = graph.tensor(node.inputs[0]).shape;
  RONDO_ASSIGN(const std::vector<int> axes, axes_of(attributes, from));
  Shape kept, shape;
  for (int i = 0; i < from.rank; ++i) {
    const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!goes) kept[kept.rank++] = from[i];
    if (!goes || attributes.keep) shape[shape.rank++] = goes ? 1 : from[i];
  }
  if (axes.size() > 1) {
    node.inputs[0] = join_axes(graph, node.inputs[0], axes);
    RONDO_TRY(Status(graph.status()));
  }
  node.attributes = ReduceAttributes{.axis = axes.size() > 1 ? -1 : axes.front()};  // of what is joined, the last
  const TensorId stored = graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, graph.tensor(node.inputs[0]).type, axes.size() > 1 ? kept : shape);
  if (stored != kNone) node.outputs.push_back(axes.size() > 1 ? graph.reshape(stored, shape) : stored);
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
  lowering.dispatch(operator_of(node.op).name, lowering.module_for(runtime::Shader::reduce, input.type), {row_width(lowering.caps(), push.columns), operation_of(node)},
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

Attributes read_attributes(AttributeReader& reader) {
  ReduceAttributes reduce;
  reader.read("axis", reduce.axis);
  std::vector<std::int64_t> axes;
  reader.read("axes", axes);
  if (!axes.empty() && reader.has("axis")) reader.refuse("attributes 'axis' and 'axes' exclude each other");
  std::copy(axes.begin(), axes.end(), reduce.axes.begin());
  reduce.n_axes = static_cast<int>(axes.size());
  reader.read("keep", reduce.keep);
  return reduce;
}

constexpr NamedInput kNamedInputs[] = {{"input"}};

constexpr Operator reduction(const char* name, Accuracy accuracy) {
  return {.name = name,
          .inputs = kNamedInputs,
          .read_attributes = read_attributes,
          .all_rows = true,
          .accuracy = accuracy,
          .infer = infer,
          .lower = lower,
          .reference = reference,
          .kernels = kKernels};
}

}  // namespace

extern const Operator mean_operator = reduction("mean", {ErrorClass::kSums});
extern const Operator sum_operator = reduction("sum", {ErrorClass::kExactSums, 1e6f, 50});
extern const Operator max_operator = reduction("max", {ErrorClass::kExact});

}  // namespace rondo::graph
