// relu, gelu, gelu_tanh, quick_gelu, silu, tanh, sigmoid, exp, neg: input -> like input, element by element.
#include "graph/activation.h"
#include "graph/operator.h"
#include "graph/ops/walk.h"
#include "unary.params.h"

namespace rondo::graph {

namespace {

Activation activation_of(const Node& node) { return *find_activation(operator_of(node.op).name); }

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 1));
  RONDO_TRY(check_activation(graph, node.inputs[0], "input", 0, kMaxRank));
  const Tensor input = graph.tensor(node.inputs[0]);
  node.outputs.push_back(graph.add_tensor(operator_of(node.op).name, StorageKind::kActivation, input.type, input.shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& input = lowering.tensor(node.inputs[0]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::UnaryParams push{};
  push.rows_per_sequence = lowering.rows_per_sequence(input.shape.n_rows());
  push.dim1 = u32(extent4(input.shape, 1)), push.dim2 = u32(extent4(input.shape, 2)), push.dim3 = u32(extent4(input.shape, 3));
  push.input_offset = u32(input.offset_elements);
  push.input_stride0 = stride4(input, 0), push.input_stride1 = stride4(input, 1), push.input_stride2 = stride4(input, 2), push.input_stride3 = stride4(input, 3);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch(operator_of(node.op).name, lowering.module_for(runtime::Shader::unary, input.type), {kWidth, static_cast<std::uint32_t>(activation_of(node))},
                    {{input.storage, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, push,
                    {ceil_div(push.dim3, kWidth), u32(input.shape.n_rows()), 1}, {2 * tensor_bytes(input), 32 * tensor_elements(input)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView input = tensors.view(node.inputs[0]);
  HostView output = tensors.view(node.outputs[0]);
  for_each_element(output.shape(), [&](const Index4& index) { set4(output, activate(activation_of(node), at4(input, index)), index); });
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"input"}};

constexpr Operator unary(const char* name, Accuracy accuracy) {
  return {.name = name, .inputs = kNamedInputs, .accuracy = accuracy, .infer = infer, .lower = lower, .reference = reference, .kernels = kKernels};
}
constexpr Accuracy kFunction = {ErrorClass::kFunctions, 30, 30};

}  // namespace

extern const Operator relu_operator = unary("relu", {});
extern const Operator gelu_operator = unary("gelu", kFunction);
extern const Operator gelu_tanh_operator = unary("gelu_tanh", kFunction);
extern const Operator quick_gelu_operator = unary("quick_gelu", kFunction);
extern const Operator silu_operator = unary("silu", kFunction);
extern const Operator tanh_operator = unary("tanh", kFunction);
extern const Operator sigmoid_operator = unary("sigmoid", kFunction);
extern const Operator exp_operator = unary("exp", kFunction);
extern const Operator neg_operator = unary("neg", {});

}  // namespace rondo::graph
