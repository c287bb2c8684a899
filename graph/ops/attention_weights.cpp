// attention_weights: the inputs of attention but its values -> (B, H, Q, S) f32, what each key weighs for each query: what attention
// multiplies values by. For people who look at them; attention itself never has them all.
#include "graph/kernel_choice.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/attention_inputs.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/checks.h"
#include "shaders/lib/attention_features.h"

namespace rondo::graph {

namespace {

constexpr const char* kKernels[] = {"baseline"};

constexpr NamedInput kNamedInputs[] = {
    {"query"},
    {"key", InputRole::kKeys},
    {"query_offset", InputRole::kIntegers, kOptional},
    {"lengths", InputRole::kIntegers, kOptional},
    {"mask", InputRole::kMask, kOptional},
    {"alibi_slopes", InputRole::kParameter, kOptional},
    {"relative_bias", InputRole::kParameter, kOptional},
    {"relative_key", InputRole::kParameter, kOptional},
    {"sinks", InputRole::kParameter, kOptional},
};

Status infer(Graph& graph, Node& node) {
  while (node.inputs.size() < std::size(kNamedInputs)) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, std::size(kNamedInputs)));
  Node attention = without_values(node);
  attention.inputs.resize(kAttentionFileInputs);
  RONDO_TRY(take_attention_inputs(graph, attention));
  node.inputs = inputs_of_weights(attention);
  const Shape q = graph.tensor(node.inputs[0]).shape, k = graph.tensor(node.inputs[1]).shape;
  node.outputs.push_back(graph.add_tensor("attention weights", StorageKind::kActivation, Type::kF32, {q[0], q[1], q[2], k[2]}));
  return {};
}

Status lower(const Node& weights, Lowering& lowering) {
  const Node node = without_values(weights);
  const AttentionFeatures features = attention_features(lowering.graph(), node);
  const Tensor& query = lowering.tensor(node.inputs[kQuery]);
  const Tensor& key = lowering.tensor(node.inputs[kKey]);
  shaders::AttentionParams push = attention_params(node, lowering);
  const runtime::DeviceCaps& caps = lowering.caps();
  const std::uint32_t threads = is_cpu(caps) ? 8 : 64;
  const std::uint32_t relative = features.bits & RONDO_ATTENTION_RELATIVE_KEY ? push.head_dim : 0;
  RONDO_TRY(check_key_loops(caps, push.keys, std::uint64_t{ceil_div(push.keys, threads)} * (ceil_div(push.head_dim, 8) * 5 + relative + 3) + 2 * threads + push.head_dim));
  // As attention has it: tables take the place of the offsets, and the mask that of the lengths.
  const bool tables = (features.bits & RONDO_ATTENTION_TABLES) != 0;
  const StorageId offsets = tables ? gather_attention_tables(node, lowering) : lowering.read_only(node.inputs[kOffset]);
  const StorageId lengths = lowering.read_only(node.inputs[tables ? kMask : kLengths]);
  const TensorId of_heads = tables ? kNone : node.inputs[node.inputs[kSinks] != kNone ? kSinks : kSlopes];
  if (of_heads != kNone) push.of_heads_offset = u32(lowering.tensor(of_heads).offset_elements);
  const auto sequences = u32(query.shape[0]);
  const StorageId output = lowering.tensor(node.outputs[0]).storage;
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(node.inputs[kKey]));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.kv_heads = u32(pieces[i].count);
    push.first_head = u32(pieces[i].first) * push.group;
    push.query_offset = u32(query.offset_elements + push.first_head * query.strides[1]);
    const double rows = static_cast<double>(sequences) * push.queries * push.kv_heads * push.group, keys = push.keys;
    const runtime::Cost cost{rows * keys * (push.head_dim * cache_element_bytes(key) / push.group + 20), rows * keys * (2 * push.head_dim + 4)};
    lowering.dispatch(fmt::format("attention_weights {}", type_name(key.type)), lowering.module_for(runtime::Shader::attention_weights, query.type),
                      {threads, cache_type_constant(key), features.bits, features.radii, features.buckets},
                      {{query.storage, runtime::Access::kRead},
                       {key.storage, runtime::Access::kRead, i},
                       {offsets, runtime::Access::kRead},
                       {lengths, runtime::Access::kRead},
                       {output, runtime::Access::kReadWrite},
                       {lowering.read_only(of_heads), runtime::Access::kRead}},
                      push, {push.queries * push.group, sequences * push.kv_heads, 1}, cost);
  }
  return {};
}

}  // namespace

extern const Operator attention_weights_operator = {
    .name = "attention_weights",
    .inputs = kNamedInputs,
    .read_attributes = read_attention_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kFunctions, 30, 30},
    .infer = infer,
    .lower = lower,
    .reference = attention_weights_reference,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
