// add, sub, mul, div: a, b -> element by element with NumPy's broadcasting. Scalars have rank 0.
#include <algorithm>

#include "binary.params.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"

namespace rondo::graph {

namespace {

std::uint32_t operation_of(const Node& node) {
  if (node.op == Op::sub) return RONDO_BINARY_SUB;
  if (node.op == Op::mul) return RONDO_BINARY_MUL;
  return node.op == Op::div ? RONDO_BINARY_DIV : RONDO_BINARY_ADD;
}

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_activation(graph, node.inputs[0], "a", 0, kMaxRank));
  RONDO_TRY(check_activation(graph, node.inputs[1], "b", 0, kMaxRank));
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[1]});
  const Shape a = graph.tensor(node.inputs[0]).shape, b = graph.tensor(node.inputs[1]).shape;
  Shape shape;
  shape.rank = std::max(a.rank, b.rank);
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t in_a = extent4(a, axis + kMaxRank - shape.rank), in_b = extent4(b, axis + kMaxRank - shape.rank);
    if (in_a != in_b && in_a != 1 && in_b != 1) return refuse(fmt::format("a is {} and b is {}, which do not broadcast", to_string(a), to_string(b)));
    shape[axis] = std::max(in_a, in_b);
  }
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& a = lowering.tensor(node.inputs[0]);
  const Tensor& b = lowering.tensor(node.inputs[1]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::BinaryParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(output.shape.n_rows());
  push.dim1 = u32(extent4(output.shape, 1)), push.dim2 = u32(extent4(output.shape, 2)), push.dim3 = u32(extent4(output.shape, 3));
  push.a_offset = u32(a.offset_elements);
  push.a_stride0 = stride4(a, 0), push.a_stride1 = stride4(a, 1), push.a_stride2 = stride4(a, 2), push.a_stride3 = stride4(a, 3);
  push.b_offset = u32(b.offset_elements);
  push.b_stride0 = stride4(b, 0), push.b_stride1 = stride4(b, 1), push.b_stride2 = stride4(b, 2), push.b_stride3 = stride4(b, 3);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch(operator_of(node.op).name, lowering.module_for(runtime::Shader::binary, output.type), {kWidth, operation_of(node)},
                    {{a.storage, runtime::Access::kRead}, {b.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.dim3, kWidth), u32(output.shape.n_rows()), 1}, {3 * tensor_bytes(output), 4 * tensor_elements(output)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView a = tensors.view(node.inputs[0]), b = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  for_each_element(output.shape(), [&](const Index4& index) {
    const double x = at4(a, index), y = at4(b, index);
    double value = x + y;
    if (node.op == Op::sub) value = x - y;
    else if (node.op == Op::mul) value = x * y;
    else if (node.op == Op::div) value = x / y;
    set4(output, value, index);
  });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"a"}, {"b"}};

constexpr Operator binary(const char* name, Accuracy accuracy) {
  return {.name = name, .inputs = kNamedInputs, .accuracy = accuracy, .infer = infer, .lower = lower, .reference = reference, .kernels = kKernels};
}

}  // namespace

extern const Operator add_operator = binary("add", {ErrorClass::kExactSums});
extern const Operator sub_operator = binary("sub", {ErrorClass::kExactSums});
extern const Operator mul_operator = binary("mul", {ErrorClass::kExactSums, 1e15f, 50});
extern const Operator div_operator = binary("div", {ErrorClass::kSums, 1e15f, 50});

}  // namespace rondo::graph
