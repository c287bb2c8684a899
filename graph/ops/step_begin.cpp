// step_begin: tokens i32 (B, n_ctx), state -> ids (B, T), positions (B, T), start (B), count (B), lengths (B), last (B).
// `last` is the index of the last valid row of a (B * T, ...) tensor; embedding gathers by it.
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "lib/step_state.h"
#include "step_begin.params.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, 2));
  RONDO_TRY(check_tensor(graph, node.inputs[0], "tokens", Type::kI32, 2, 2));
  RONDO_TRY(check_whole(graph, node.inputs[0], "tokens"));
  const std::int64_t rows = attributes_of<StepBeginAttributes>(node).rows;
  const std::int64_t sequences = graph.tensor(node.inputs[0]).shape[0];
  RONDO_TRY(check_tensor(graph, node.inputs[1], "state", Type::kI32, 2, 2));
  RONDO_TRY(check_shape(graph, node.inputs[1], "state", {sequences, RONDO_STATE_WORDS}));
  if (rows < 1) return refuse(fmt::format("rows is {} but must be at least 1", rows));
  for (const char* name : {"ids", "positions"}) {
    node.outputs.push_back(graph.add_tensor(name, StorageKind::kActivation, Type::kI32, {sequences, rows}));
  }
  for (const char* name : {"start", "count", "lengths", "last"}) {
    node.outputs.push_back(graph.add_tensor(name, StorageKind::kActivation, Type::kI32, {sequences}));
  }
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& tokens = lowering.tensor(node.inputs[0]);
  const std::uint32_t sequences = u32(tokens.shape[0]);
  shaders::StepBeginParams push{};
  push.rows = u32(attributes_of<StepBeginAttributes>(node).rows);
  push.context = u32(tokens.shape[1]);
  constexpr std::uint32_t kWidth = 64;
  const auto written = [&](std::size_t i) {
    return Lowering::Argument{lowering.tensor(node.outputs[i]).storage, runtime::Access::kWrite};
  };
  lowering.dispatch("step_begin", runtime::Shader::step_begin, {kWidth},
                    {{tokens.storage, runtime::Access::kRead}, written(0), written(1), written(2), written(3), written(4), written(5)},
                    push, {ceil_div(push.rows, kWidth), sequences, 1}, {16.0 * push.rows, 0});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView tokens = tensors.view(node.inputs[0]), state = tensors.view(node.inputs[1]);
  HostView ids = tensors.view(node.outputs[0]), positions = tensors.view(node.outputs[1]);
  HostView start = tensors.view(node.outputs[2]), count = tensors.view(node.outputs[3]);
  HostView lengths = tensors.view(node.outputs[4]), last = tensors.view(node.outputs[5]);
  const std::int64_t rows = ids.dim(1);
  for (std::int64_t b = 0; b < ids.dim(0); ++b) {
    if (state.int_at(b, RONDO_STATE_ACTIVE) == 0) continue;
    const std::int32_t position = state.int_at(b, RONDO_STATE_POSITION), valid = state.int_at(b, RONDO_STATE_COUNT);
    for (std::int32_t t = 0; t < rows && t < valid && position + t < tokens.dim(1); ++t) {
      ids.set_int(tokens.int_at(b, position + t), b, t);
      positions.set_int(position + t, b, t);
    }
    start.set_int(position, b);
    count.set_int(valid, b);
    lengths.set_int(position + valid, b);
    last.set_int(static_cast<std::int32_t>(b * rows) + std::max(valid, 1) - 1, b);
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

Attributes read_attributes(AttributeReader& reader) {
  StepBeginAttributes begin;
  reader.read("rows", begin.rows);
  return begin;
}

constexpr NamedInput kNamedInputs[] = {{"tokens", InputRole::kStepState}, {"state", InputRole::kStepState}};

}  // namespace

extern const Operator step_begin_operator = {
    .name = "step_begin",
    .reserved = "belongs to sessions",
    .inputs = kNamedInputs,
    .read_attributes = read_attributes,
    .rows = StepRows::kSequences,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
