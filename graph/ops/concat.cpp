// concat: a, b, ... -> one after the other along an axis. One copy per input: strides of several do not fit push constants.
#include "graph/operator.h"
#include "graph/ops/copy.h"
#include "graph/ops/walk.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  if (node.inputs.empty()) return refuse("has no inputs");
  Shape shape;
  int axis = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string role = fmt::format("input {}", i);
    RONDO_TRY(check_activation(graph, node.inputs[i], role.c_str(), 1, kMaxRank));
    const Shape& own = graph.tensor(node.inputs[i]).shape;
    if (i == 0) {
      axis = resolve_axis(own, attributes_of<ConcatAttributes>(node).axis);
      if (axis < 0) return refuse(fmt::format("axis is {} but input 0 is {}", attributes_of<ConcatAttributes>(node).axis, to_string(own)));
      shape = own;
      continue;
    }
    Shape expected = graph.tensor(node.inputs[0]).shape;
    if (own.rank == expected.rank) expected[axis] = own[axis];
    RONDO_TRY(check_shape(graph, node.inputs[i], role.c_str(), expected));
    shape[axis] += own[axis];
  }
  std::vector<TensorId*> inputs;
  for (TensorId& id : node.inputs) inputs.push_back(&id);
  const Type type = make_types_equal(graph, inputs);
  node.outputs.push_back(graph.add_tensor("concat", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  Tensor part = lowering.tensor(node.outputs[0]);
  const int axis = resolve_axis(part.shape, attributes_of<ConcatAttributes>(node).axis);
  for (TensorId id : node.inputs) {
    const Tensor& input = lowering.tensor(id);
    part.shape[axis] = input.shape[axis];
    dispatch_copy(lowering, "concat", input, part);
    part.offset_elements += input.shape[axis] * part.strides[static_cast<std::size_t>(axis)];
  }
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  HostView output = tensors.view(node.outputs[0]);
  const int axis = resolve_axis(output.shape(), attributes_of<ConcatAttributes>(node).axis) + kMaxRank - output.shape().rank;
  std::int64_t first = 0;
  for (TensorId id : node.inputs) {
    const HostView input = tensors.view(id);
    for_each_element(input.shape(), [&](const Index4& index) {
      Index4 to = index;
      to[static_cast<std::size_t>(axis)] += first;
      set4(output, at4(input, index), to);
    });
    first += extent4(input.shape(), axis);
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

}  // namespace

extern const Operator concat_operator = {"concat", infer, lower, reference, nullptr, kKernels};

}  // namespace rondo::graph
