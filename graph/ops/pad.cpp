// pad: input -> with `before` and `after` elements of `value` around each dimension.
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "pad.params.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 1, kMaxRank));
  const auto attributes = attributes_of<PadAttributes>(node);
  Shape shape = graph.tensor(node.inputs[0]).shape;
  constexpr std::int64_t kMost = 0x3fffffff;
  for (int axis = 0; axis < kMaxRank; ++axis) {
    const std::int64_t before = attributes.before[static_cast<std::size_t>(axis)], after = attributes.after[static_cast<std::size_t>(axis)];
    if (before < 0 || after < 0 || before > kMost || after > kMost) {
      return refuse(fmt::format("before is {} and after {} at dimension {}, but they must be from 0 to {}", before, after, axis, kMost));
    }
    if (axis >= shape.rank && before + after > 0) return refuse(fmt::format("dimension {} is to be padded, but input is {}", axis, to_string(shape)));
    if (axis < shape.rank) shape[axis] += before + after;
  }
  node.outputs.push_back(graph.add_tensor("pad", StorageKind::kActivation, graph.tensor(node.inputs[0]).type, shape));
  return {};
}

/// Elements before dimension `axis` of four.
std::int64_t before4(const Node& node, const Shape& shape, int axis) {
  const int own = axis - (kMaxRank - shape.rank);
  return own < 0 ? 0 : attributes_of<PadAttributes>(node).before[static_cast<std::size_t>(own)];
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::PadParams push{};
  const std::uint32_t rows = u32(output.shape.n_rows());
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.dim1 = u32(extent4(output.shape, 1)), push.dim2 = u32(extent4(output.shape, 2)), push.dim3 = u32(extent4(output.shape, 3));
  push.input_offset = u32(input.offset_elements);
  push.input_stride0 = stride4(input, 0), push.input_stride1 = stride4(input, 1), push.input_stride2 = stride4(input, 2), push.input_stride3 = stride4(input, 3);
  const auto before = [&](int axis) { return u32(before4(node, input.shape, axis)); };
  push.before0 = before(0), push.before1 = before(1), push.before2 = before(2), push.before3 = before(3);
  const auto extent = [&](int axis) { return u32(extent4(input.shape, axis)); };
  push.extent0 = extent(0), push.extent1 = extent(1), push.extent2 = extent(2), push.extent3 = extent(3);
  push.value = static_cast<float>(attributes_of<PadAttributes>(node).value);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("pad", lowering.module_for(runtime::Shader::pad, input.type), {kWidth}, {{input.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.dim3, kWidth), rows, 1}, {tensor_bytes(input) + tensor_bytes(output), 0});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  for_each_element(output.shape(), [&](const Index4& index) { set4(output, attributes_of<PadAttributes>(node).value, index); });
  for_each_element(input.shape(), [&](const Index4& index) {
    Index4 to = index;
    for (int axis = 0; axis < kMaxRank; ++axis) to[static_cast<std::size_t>(axis)] += before4(node, input.shape(), axis);
    set4(output, at4(input, index), to);
  });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  PadAttributes pad;
  std::vector<std::int64_t> before, after;
  reader.read("before", before);
  reader.read("after", after);
  reader.read("value", pad.value);
  std::copy(before.begin(), before.end(), pad.before.begin());
  std::copy(after.begin(), after.end(), pad.after.begin());
  return pad;
}

constexpr NamedInput kNamedInputs[] = {{"input"}};

}  // namespace

extern const Operator pad_operator = {
    .name = "pad",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .all_rows = true,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
