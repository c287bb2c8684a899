// concat: a, b, ... -> one after the other along an axis; other dimensions broadcast. One copy per input: strides of several do not fit push constants.
#include <algorithm>
#include <iterator>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/copy.h"
#include "graph/ops/walk.h"

namespace rondo::graph {

namespace {

constexpr NamedInput kNamedInputs[] = {
    {"a"},
    {"b", InputRole::kActivation, kOptional},
    {"c", InputRole::kActivation, kOptional},
    {"d", InputRole::kActivation, kOptional},
    {"e", InputRole::kActivation, kOptional},
    {"f", InputRole::kActivation, kOptional},
    {"g", InputRole::kActivation, kOptional},
    {"h", InputRole::kActivation, kOptional},
    {"i", InputRole::kActivation, kOptional},
    {"j", InputRole::kActivation, kOptional},
    {"k", InputRole::kActivation, kOptional},
};

/// The output: as NumPy broadcasts the inputs, but along the axis, where they follow each other.
Result<Shape> joined_shape(const Graph& graph, const Node& node, std::int64_t wanted) {
  const auto shape_of = [&](std::size_t i) { return graph.tensor(node.inputs[i]).shape; };
  Shape shape;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) shape.rank = std::max(shape.rank, shape_of(i).rank);
  const int axis = resolve_axis(shape, wanted);
  if (axis < 0) return refuse(fmt::format("axis is {} but '{}' is {}", wanted, kNamedInputs[0].name, to_string(shape_of(0))));
  for (int d = 0; d < shape.rank; ++d) {
    const int of_four = d + kMaxRank - shape.rank;
    shape[d] = d == axis ? 0 : 1;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::int64_t own = extent4(shape_of(i), of_four);
      if (d == axis) shape[d] += own;
      else if (shape[d] == 1) shape[d] = own;
      else if (own != 1 && own != shape[d]) {
        return refuse(fmt::format("'{}' is {} but '{}' is {}: beside axis {} they do not broadcast", kNamedInputs[i].name, to_string(shape_of(i)), kNamedInputs[0].name, to_string(shape_of(0)), axis));
      }
    }
  }
  return shape;
}

Status infer(Graph& graph, Node& node) {
  if (node.inputs.empty()) return refuse("has no inputs");
  if (node.inputs.size() > std::size(kNamedInputs)) return refuse(fmt::format("has {} inputs; at most {} are there", node.inputs.size(), std::size(kNamedInputs)));
  std::vector<TensorId*> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    RONDO_TRY(check_activation(graph, node.inputs[i], fmt::format("'{}'", kNamedInputs[i].name).c_str(), 1, kMaxRank));
    inputs.push_back(&node.inputs[i]);
  }
  RONDO_ASSIGN(const Shape shape, joined_shape(graph, node, attributes_of<ConcatAttributes>(node).axis));
  const Type type = make_types_equal(graph, inputs);
  node.outputs.push_back(graph.add_tensor("concat", StorageKind::kActivation, type, shape));
  return {};
}

/// The part of the output that an input makes: its extent along the axis, the output's along all others.
Shape part_of(Shape output, const Shape& input, int axis) {
  output[axis] = extent4(input, axis + kMaxRank - output.rank);
  return output;
}

Status lower(const Node& node, Lowering& lowering) {
  Tensor part = lowering.tensor(node.outputs[0]);
  const int axis = resolve_axis(part.shape, attributes_of<ConcatAttributes>(node).axis);
  for (TensorId id : node.inputs) {
    Tensor input = lowering.tensor(id);
    part.shape = part_of(part.shape, input.shape, axis);
    Strides strides{};
    for (int d = 0; d < part.shape.rank; ++d) strides[static_cast<std::size_t>(d)] = stride4(input, d + kMaxRank - part.shape.rank);
    input.shape = part.shape;
    input.strides = strides;
    dispatch_copy(lowering, "concat", input, part);
    part.offset_elements += part.shape[axis] * part.strides[static_cast<std::size_t>(axis)];
  }
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  HostView output = tensors.view(node.outputs[0]);
  const int axis = resolve_axis(output.shape(), attributes_of<ConcatAttributes>(node).axis);
  const auto axis4 = static_cast<std::size_t>(axis + kMaxRank - output.shape().rank);
  std::int64_t first = 0;
  for (TensorId id : node.inputs) {
    const HostView input = tensors.view(id);
    const Shape part = part_of(output.shape(), input.shape(), axis);
    for_each_element(part, [&](const Index4& index) {
      Index4 to = index;
      to[axis4] += first;
      set4(output, at4(input, index), to);
    });
    first += part[axis];
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  ConcatAttributes concat;
  reader.read("axis", concat.axis);
  return concat;
}

}  // namespace

extern const Operator concat_operator = {
    .name = "concat",
    .inputs = kNamedInputs,
    .any_number_of_inputs = true,
    .read_attributes = read_attributes,
    .all_rows = true,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
