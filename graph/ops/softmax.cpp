// softmax, log_softmax: input, mask? (broadcasts to input) -> like input, along an axis of scale * input + mask.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "softmax.params.h"

namespace rondo::graph {

namespace {

Status check_mask(const Graph& graph, TensorId mask, const Shape& shape) {
  if (graph.tensor(mask).type == Type::kI32) return refuse("mask is bool but must be f32 or f16: it is added, with a large negative number or -inf for what is hidden");
  RONDO_TRY(check_tensor(graph, mask, "mask", Type::kF32, 1, kMaxRank));
  const Shape& found = graph.tensor(mask).shape;
  bool fits = found.rank <= shape.rank;
  for (int axis = 0; axis < kMaxRank; ++axis) fits = fits && (extent4(found, axis) == 1 || extent4(found, axis) == extent4(shape, axis));
  return fits ? Status() : refuse(fmt::format("mask is {}, which does not broadcast to input {}", to_string(found), to_string(shape)));
}

Status infer(Graph& graph, Node& node) {
  if (node.inputs.size() == 1) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  const auto attributes = attributes_of<SoftmaxAttributes>(node);
  widen(graph, node.inputs[1]);
  const Type type = graph.tensor(node.inputs[0]).type;
  const Shape shape = graph.tensor(node.inputs[0]).shape;
  if (resolve_axis(shape, attributes.axis) < 0) return refuse(fmt::format("axis is {} but input is {}", attributes.axis, to_string(shape)));
  if (!std::isfinite(attributes.scale) || attributes.scale == 0) return refuse(fmt::format("scale is {} but must be finite and not 0", attributes.scale));
  if (node.inputs[1] != kNone) RONDO_TRY(check_mask(graph, node.inputs[1], shape));
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const auto attributes = attributes_of<SoftmaxAttributes>(node);
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  const int axis = resolve_axis(input.shape, attributes.axis) + kMaxRank - input.shape.rank;
  const auto [d0, d1, d2] = other_axes(axis);
  shaders::SoftmaxParams push{};
  push.dim1 = u32(extent4(input.shape, d1));
  push.columns = u32(extent4(input.shape, axis));
  const std::uint32_t inner = u32(extent4(input.shape, d2)), outer = u32(extent4(input.shape, d0)) * push.dim1;
  push.rows_per_sequence = lowering.rows_per_sequence(std::int64_t{inner} * outer);
  push.input_offset = u32(input.offset_elements);
  push.input_stride0 = stride4(input, d0), push.input_stride1 = stride4(input, d1), push.input_stride2 = stride4(input, d2), push.input_axis_stride = stride4(input, axis);
  push.output_stride0 = stride4(output, d0), push.output_stride1 = stride4(output, d1), push.output_stride2 = stride4(output, d2), push.output_axis_stride = stride4(output, axis);
  push.has_mask = node.inputs[1] != kNone;
  if (push.has_mask) {
    const Tensor& mask = lowering.tensor(node.inputs[1]);
    push.mask_offset = u32(mask.offset_elements);
    push.mask_stride0 = stride4(mask, d0), push.mask_stride1 = stride4(mask, d1), push.mask_stride2 = stride4(mask, d2), push.mask_axis_stride = stride4(mask, axis);
  }
  push.scale = static_cast<float>(attributes.scale);
  lowering.dispatch(operator_of(node.op).name, lowering.module_for(runtime::Shader::softmax, input.type), {row_width(lowering.caps(), push.columns), node.op == Op::log_softmax},
                    {{input.storage, runtime::Access::kRead}, {lowering.read_only(node.inputs[1]), runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}},
                    push, {inner, outer, 1}, {2 * tensor_bytes(input), 16 * tensor_elements(input)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<SoftmaxAttributes>(node);
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  const int axis = resolve_axis(input.shape(), attributes.axis) + kMaxRank - input.shape().rank;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t columns = extent4(input.shape(), axis);
  const auto score = [&](Index4 index, std::int64_t i) {
    index[at] = i;
    const double mask = node.inputs[1] == kNone ? 0.0 : at4(tensors.view(node.inputs[1]), index);
    return attributes.scale * at4(input, index) + mask;
  };
  for_each_element(input.shape(), [&](const Index4& index) {
    if (index[at] != 0) return;
    double top = std::numeric_limits<double>::lowest(), sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) top = std::max(top, score(index, i));
    for (std::int64_t i = 0; i < columns; ++i) sum += std::exp(score(index, i) - top);
    for (std::int64_t i = 0; i < columns; ++i) {
      Index4 to = index;
      to[at] = i;
      const double value = score(index, i) - top;
      if (node.op == Op::log_softmax) set4(output, sum == 0 ? -std::numeric_limits<double>::infinity() : value - std::log(sum), to);
      else set4(output, sum == 0 ? 0 : std::exp(value) / sum, to);
    }
  });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  SoftmaxAttributes softmax;
  reader.read("axis", softmax.axis);
  reader.read("scale", softmax.scale);
  return softmax;
}

constexpr NamedInput kNamedInputs[] = {{"input"}, {"mask", InputRole::kMask, kOptional}};

constexpr Operator along_axis(const char* name) {
  return {.name = name,
          .inputs = kNamedInputs,
          .read_attributes = read_attributes,
          .accuracy = {ErrorClass::kFunctions, 1e4f, 1e4f},
          .infer = infer,
          .lower = lower,
          .reference = reference,
          .kernels = kKernels};
}

}  // namespace

extern const Operator softmax_operator = along_axis("softmax");
extern const Operator log_softmax_operator = along_axis("log_softmax");

}  // namespace rondo::graph
