// glu: gate, up (..., N) -> activation(min(gate, limit)) * (clamp(up, -limit, limit) + up_bias); a limit of 0 is none.
// Shazeer 2020 (with silu, SwiGLU).
#include "glu.params.h"
#include "graph/activation.h"
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  for (auto [input, role] : {std::pair{0u, "gate"}, std::pair{1u, "up"}}) {
    RONDO_TRY(check_activation(graph, node.inputs[input], role, 1, kMaxRank));
    make_rows_even(graph, node.inputs[input]);
  }
  const Type type = make_types_equal(graph, {&node.inputs[0], &node.inputs[1]});
  const Shape shape = graph.tensor(node.inputs[0]).shape;
  RONDO_TRY(check_shape(graph, node.inputs[1], "up", shape));
  node.outputs.push_back(graph.add_tensor("glu", StorageKind::kActivation, type, shape));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& gate = lowering.tensor(node.inputs[0]);
  const Tensor& up = lowering.tensor(node.inputs[1]);
  shaders::GluParams push{};
  push.rows = u32(gate.shape.n_rows());
  push.rows_per_sequence = lowering.rows_per_sequence(push.rows);
  push.columns = u32(gate.shape.last());
  push.gate_offset = u32(gate.offset_elements);
  push.gate_stride = u32(row_stride(gate));
  push.up_offset = u32(up.offset_elements);
  push.up_stride = u32(row_stride(up));
  const auto attributes = attributes_of<GluAttributes>(node);
  push.limit = static_cast<float>(attributes.limit);
  push.up_bias = static_cast<float>(attributes.up_bias);
  constexpr std::uint32_t kWidth = 64;
  lowering.dispatch("glu", lowering.module_for(runtime::Shader::glu, gate.type), {kWidth, static_cast<std::uint32_t>(attributes.activation), attributes.is_limited() ? 1u : 0u},
                    {{gate.storage, runtime::Access::kRead},
                     {up.storage, runtime::Access::kRead},
                     {lowering.tensor(node.outputs[0]).storage, runtime::Access::kWrite}},
                    push, {ceil_div(push.columns, kWidth), push.rows, 1}, {3 * tensor_bytes(gate), 4 * tensor_elements(gate)});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const auto attributes = attributes_of<GluAttributes>(node);
  const HostView gate = tensors.view(node.inputs[0]), up = tensors.view(node.inputs[1]);
  HostView output = tensors.view(node.outputs[0]);
  for (std::int64_t row = 0; row < gate.shape().n_rows(); ++row) {
    for (std::int64_t i = 0; i < gate.shape().last(); ++i) {
      output.row_set(static_cast<float>(gated(attributes, static_cast<double>(gate.row_at(row, i)), static_cast<double>(up.row_at(row, i)))), row, i);
    }
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  GluAttributes glu;
  reader.read(glu);
  return glu;
}

constexpr NamedInput kNamedInputs[] = {{"gate"}, {"up"}};

}  // namespace

extern const Operator glu_operator = {
    .name = "glu",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .accuracy = {ErrorClass::kFunctions, 1e6f, 50},
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
