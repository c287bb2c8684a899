// sample: logits (B, V), tokens i32 (B, n_ctx), state -> i32 (B): a token drawn as graph/sampling.h defines it, with the
// parameters in the step state. V up to 262,144.
#include <algorithm>
#include <bit>

#include "graph/host_tensors.h"
#include "graph/kernel_choice.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/checks.h"
#include "graph/sampling.h"
#include "lib/step_state.h"
#include "sample.params.h"

namespace rondo::graph {

namespace {

enum Input { kLogits, kTokens, kState, kInputs };
constexpr std::int64_t kMaxVocabulary = 262144;  // what the kernel's list of chunks holds

Status infer(Graph& graph, Node& node) {
  RONDO_TRY(check_input_count(node, kInputs));
  RONDO_TRY(check_activation(graph, node.inputs[kLogits], "logits", 2, 2));
  RONDO_TRY(check_rows(graph, node.inputs[kLogits], "logits"));
  const Shape& logits = graph.tensor(node.inputs[kLogits]).shape;
  if (logits[1] > kMaxVocabulary) return refuse(fmt::format("logits is {} but at most {} columns are there yet", to_string(logits), kMaxVocabulary));
  RONDO_TRY(check_tensor(graph, node.inputs[kTokens], "tokens", Type::kI32, 2, 2));
  RONDO_TRY(check_whole(graph, node.inputs[kTokens], "tokens"));
  const Shape& tokens = graph.tensor(node.inputs[kTokens]).shape;
  RONDO_TRY(check_shape(graph, node.inputs[kTokens], "tokens", {logits[0], tokens[1]}));
  RONDO_TRY(check_tensor(graph, node.inputs[kState], "state", Type::kI32, 2, 2));
  RONDO_TRY(check_shape(graph, node.inputs[kState], "state", {logits[0], RONDO_STATE_WORDS}));
  node.outputs.push_back(graph.add_tensor("sample", StorageKind::kActivation, Type::kI32, {logits[0]}));
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const Tensor& logits = lowering.tensor(node.inputs[kLogits]);
  const auto sequences = u32(logits.shape[0]);
  shaders::SampleParams push{};
  push.vocabulary = u32(logits.shape[1]);
  push.chunks = ceil_div(push.vocabulary, RONDO_SAMPLE_CHUNK);
  push.sequence_keys = RONDO_SAMPLE_WORDS(push.chunks);
  push.context = u32(lowering.tensor(node.inputs[kTokens]).shape[1]);
  push.input_offset = u32(logits.offset_elements);
  push.input_stride = u32(row_stride(logits));
  const double key_bytes = 4.0 * push.sequence_keys * sequences;
  const StorageId keys = lowering.scratch(std::uint64_t{4} * push.sequence_keys * sequences, "sampling keys");
  // A CPU driver runs a workgroup's subgroups in turn: few of them, but enough for its bound on loops (max_loop_iterations).
  const bool cpu = is_cpu(lowering.caps());
  lowering.dispatch("sample scores", lowering.module_for(runtime::Shader::sample_scores, logits.type), {cpu ? 8u : 64u},
                    {{logits.storage, runtime::Access::kRead},
                     {lowering.tensor(node.inputs[kTokens]).storage, runtime::Access::kRead},
                     {keys, runtime::Access::kWrite}},
                    push, {ceil_div(push.chunks, RONDO_SAMPLE_CHUNKS_PER_GROUP), sequences, 1}, {tensor_bytes(logits) + key_bytes, 0});
  const std::uint32_t width = !cpu ? 128 : push.chunks <= 64 ? 8 : 64;
  lowering.dispatch("sample", runtime::Shader::sample, {width},
                    {{keys, runtime::Access::kRead}, {lowering.tensor(node.outputs[0]).storage, runtime::Access::kWrite}}, push, {1, sequences, 1},
                    {8 * key_bytes, 0});
  return {};
}

Status reference(const Node& node, HostTensors& tensors) {
  const HostView logits = tensors.view(node.inputs[kLogits]), tokens = tensors.view(node.inputs[kTokens]), state = tensors.view(node.inputs[kState]);
  HostView output = tensors.view(node.outputs[0]);
  std::vector<float> row(static_cast<std::size_t>(logits.dim(1)));
  for (std::int64_t b = 0; b < logits.dim(0); ++b) {
    if (state.int_at(b, RONDO_STATE_ACTIVE) == 0) continue;
    const auto number = [&](int word) { return std::bit_cast<float>(state.int_at(b, word)); };
    SamplingParameters parameters;
    parameters.temperature = number(RONDO_STATE_TEMPERATURE);
    parameters.top_k = static_cast<std::uint32_t>(state.int_at(b, RONDO_STATE_TOP_K));
    parameters.top_p = number(RONDO_STATE_TOP_P);
    parameters.min_p = number(RONDO_STATE_MIN_P);
    parameters.repeat_penalty = number(RONDO_STATE_REPEAT_PENALTY);
    const std::int32_t position = state.int_at(b, RONDO_STATE_POSITION) + state.int_at(b, RONDO_STATE_COUNT);
    const auto end = std::min<std::int64_t>(position, tokens.dim(1));
    const auto last_n = std::min<std::int64_t>(static_cast<std::uint32_t>(state.int_at(b, RONDO_STATE_REPEAT_LAST_N)), end);
    std::vector<std::int32_t> recent;
    for (std::int64_t i = end - last_n; i < end; ++i) recent.push_back(tokens.int_at(b, i));
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = logits.at(b, static_cast<std::int64_t>(i));
    const std::uint64_t seed = static_cast<std::uint32_t>(state.int_at(b, RONDO_STATE_SEED_LOW)) |
                               std::uint64_t{static_cast<std::uint32_t>(state.int_at(b, RONDO_STATE_SEED_HIGH))} << 32;
    const float u = sampling_variate(seed, static_cast<std::uint32_t>(position));
    output.set_int(draw_from(sampling_distribution(row, recent, parameters), static_cast<double>(u)), b);
  }
  return {};
}

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {{"logits"}, {"tokens", InputRole::kStepState}, {"state", InputRole::kStepState}};

}  // namespace

extern const Operator sample_operator = {
    .name = "sample",
    .reserved = "belongs to sessions",
    .inputs = kNamedInputs,
    .rows = StepRows::kSequences,
    .infer = infer,
    .lower = lower,
    .reference = reference,
    .kernels = kKernels,
};

}  // namespace rondo::graph
