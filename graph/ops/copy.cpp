// copy: input, any view -> the same elements, dense. What reshape needs where strides can't express it.
// widen: the same of f16 as f32, exact.
#include "graph/ops/copy.h"

#include <algorithm>

#include "copy.params.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"

namespace rondo::graph {

void dispatch_copy(Lowering& lowering, const char* label, const Tensor& from, const Tensor& to) {
  shaders::CopyParams push{};
  const std::uint32_t rows = u32(from.shape.n_rows());
  push.rows_per_sequence = lowering.rows_per_sequence(rows);
  push.dim1 = u32(extent4(from.shape, 1)), push.dim2 = u32(extent4(from.shape, 2)), push.dim3 = u32(extent4(from.shape, 3));
  push.input_offset = u32(from.offset_elements);
  push.input_stride0 = stride4(from, 0), push.input_stride1 = stride4(from, 1), push.input_stride2 = stride4(from, 2), push.input_stride3 = stride4(from, 3);
  push.output_offset = u32(to.offset_elements);
  push.output_stride0 = stride4(to, 0), push.output_stride1 = stride4(to, 1), push.output_stride2 = stride4(to, 2), push.output_stride3 = stride4(to, 3);
  constexpr std::uint32_t kWidth = 64;
  const runtime::Shader shader = from.type == to.type ? lowering.module_for(runtime::Shader::copy, from.type) : runtime::Shader::widen;
  lowering.dispatch(label, shader, {kWidth}, {{from.storage, runtime::Access::kRead}, {to.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.dim3, kWidth), rows, 1}, {tensor_bytes(from) + tensor_bytes(to), 0});
}

void widen(Graph& graph, TensorId& id) {
  if (id == kNone || graph.tensor(id).type != Type::kF16) return;
  const StorageKind kind = graph.storage_of(id).kind;
  if (kind == StorageKind::kWeight) return;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::widen || node.inputs[0] != id || kind == StorageKind::kCache) continue;  // a cache may have changed since
    id = node.outputs[0];
    return;
  }
  id = graph.add(Op::widen, {id});
}

Type make_types_equal(Graph& graph, const std::vector<TensorId*>& ids) {
  const auto is_f32 = [&](const TensorId* id) { return *id != kNone && graph.tensor(*id).type == Type::kF32; };
  if (std::none_of(ids.begin(), ids.end(), is_f32)) return Type::kF16;
  for (TensorId* id : ids) widen(graph, *id);
  return Type::kF32;
}

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  if (node.op == Op::widen) RONDO_TRY(check_tensor(graph, node.inputs[0], "input", Type::kF16, 0, kMaxRank));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 0, kMaxRank));
  const Tensor input = graph.tensor(node.inputs[0]);
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, node.op == Op::widen ? Type::kF32 : input.type, input.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  dispatch_copy(lowering, operator_of(node.op).name, lowering.tensor(node.inputs[0]), lowering.tensor(node.outputs[0]));
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  for_each_element(output.shape(), [&](const Index4& index) { set4(output, at4(input, index), index); });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"input"}};

constexpr Operator mover(const char* name, const char* reserved = nullptr) {
  return {.name = name, .reserved = reserved, .inputs = kNamedInputs, .all_rows = true, .infer = infer, .lower = lower, .reference = reference, .kernels = kKernels};
}

}  // namespace

extern const Operator copy_operator = mover("copy", "is made where it is needed");
extern const Operator widen_operator = mover("widen");

}  // namespace rondo::graph
