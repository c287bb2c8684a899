// step_end: token? i32 (B), tokens i32 (B, n_ctx), mirror i32 (B, n_ctx), state: in place. position += count, count = 1;
// with a token: appends it to tokens and the host's mirror, clears `active` on a stop id or a full context.
#include "graph/host_tensors.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "lib/step_state.h"
#include "step_end.params.h"

namespace rondo::graph {

namespace {

enum Input { kToken, kTokens, kMirror, kState, kInputs };

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, kInputs));
  RONDO_TRY(check_tensor(graph, node.inputs[kTokens], "tokens", Type::kI32, 2, 2));
  const Shape& tokens = graph.tensor(node.inputs[kTokens]).shape;
  RONDO_TRY(check_tensor(graph, node.inputs[kMirror], "mirror", Type::kI32, 2, 2));
  RONDO_TRY(check_shape(graph, node.inputs[kMirror], "mirror", tokens));
  RONDO_TRY(check_whole(graph, node.inputs[kTokens], "tokens"));
  RONDO_TRY(check_whole(graph, node.inputs[kMirror], "mirror"));
  RONDO_TRY(check_tensor(graph, node.inputs[kState], "state", Type::kI32, 2, 2));
  RONDO_TRY(check_shape(graph, node.inputs[kState], "state", {tokens[0], RONDO_STATE_WORDS}));
  return node.inputs[kToken] == kNone ? Status() : check_per_sequence(graph, node.inputs[kToken], "token", tokens[0]);
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& tokens = lowering.tensor(node.inputs[kTokens]);
  shaders::StepEndParams push{};
  push.sequences = u32(tokens.shape[0]);
  push.context = u32(tokens.shape[1]);
  push.has_token = node.inputs[kToken] != kNone;
  const auto changed = push.has_token ? runtime::Access::kReadWrite : runtime::Access::kRead;
  lowering.dispatch("step_end", runtime::Shader::step_end, {push.sequences == 1 ? 1u : 64u},
                    {{lowering.read_only(node.inputs[kToken]), runtime::Access::kRead},
                     {tokens.storage, changed},
                     {lowering.tensor(node.inputs[kMirror]).storage, changed}},
                    push, {ceil_div(push.sequences, 64), 1, 1}, {}, runtime::Access::kReadWrite);
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  HostView tokens = tensors.view(node.inputs[kTokens]), mirror = tensors.view(node.inputs[kMirror]);
  HostView state = tensors.view(node.inputs[kState]);
  for (std::int64_t b = 0; b < tokens.dim(0); ++b) {
    if (state.int_at(b, RONDO_STATE_ACTIVE) == 0) continue;
    const std::int32_t position = state.int_at(b, RONDO_STATE_POSITION) + state.int_at(b, RONDO_STATE_COUNT);
    state.set_int(position, b, RONDO_STATE_POSITION);
    state.set_int(1, b, RONDO_STATE_COUNT);
    if (node.inputs[kToken] == kNone) continue;
    bool stop = position + 1 >= tokens.dim(1);
    if (position < tokens.dim(1)) {
      const std::int32_t id = tensors.view(node.inputs[kToken]).int_at(b);
      tokens.set_int(id, b, position);
      mirror.set_int(id, b, position);
      const std::int32_t n_stop = std::min(state.int_at(b, RONDO_STATE_N_STOP), RONDO_STATE_MAX_STOP_IDS);
      for (std::int32_t i = 0; i < n_stop; ++i) stop = stop || state.int_at(b, RONDO_STATE_STOP_IDS + i) == id;
    }
    if (stop) state.set_int(0, b, RONDO_STATE_ACTIVE);
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {
    {"token", InputRole::kIntegers, kOptional},
    {.name = "tokens", .role = InputRole::kStepState, .written = true},
    {.name = "mirror", .role = InputRole::kStepState, .written = true},
    {.name = "state", .role = InputRole::kStepState, .written = true},
};

}  // namespace

extern const Operator step_end_operator = {
    .name = "step_end",
    .reserved = "belongs to sessions",
    .inputs = kNamedInputs,
    .rows = StepRows::kSequences,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
