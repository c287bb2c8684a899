// attention: query (B, H, Q, D), key (B, G, S, D), value (B, G, S, E), query_offset? i32 (B), lengths? i32 (B), of all of which B
// may be 1 for the query's, mask? f32 or
// i32 (boolean) that broadcasts to (B, H, Q, S), alibi_slopes? (H), relative_bias? (buckets, H), relative_key? (2 R + 1, D),
// relative_value? (2 R + 1, E), sinks? (H) -> (B, H, Q, E), stored as (B, Q, H, E) so that heads join without a copy.
// Key and value have one type, f32, f16 or q8_0; the output has the query's. Query head h uses KV head h / (H / G). Key j is at
// position j, query i at query_offset + i.
// Dao 2023 (FlashAttention-2) for the partitioning, Milakov and Gimelshein 2018 for the online softmax.
#include <algorithm>

#include "attention_combine.params.h"
#include "graph/lowering.h"
#include "graph/operator.h"
#include "graph/ops/attention_inputs.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/checks.h"
#include "graph/ops/wide_kernels.h"
#include "shaders/lib/attention_features.h"

namespace rondo::graph {

namespace {

Status infer(Graph& graph, Node& node) {
  while (node.inputs.size() < kAttentionFileInputs) node.inputs.push_back(kNone);
  RONDO_TRY(check_input_count(node, kAttentionFileInputs));
  RONDO_TRY(check_activation(graph, node.inputs[kQuery], "query", 4, 4));
  if (node.inputs[kKey] == kNone || node.inputs[kValue] == kNone) return refuse("key or value is missing");
  RONDO_TRY(take_attention_inputs(graph, node));
  const Shape q = graph.tensor(node.inputs[kQuery]).shape;
  const TensorId stored = graph.add_tensor("attention", StorageKind::kActivation, graph.tensor(node.inputs[kQuery]).type, {q[0], q[2], q[1], graph.tensor(node.inputs[kValue]).shape[3]});
  if (stored != kNone) node.outputs.push_back(graph.transpose(stored, {0, 2, 1, 3}));
  return {};
}

/// Rows of a workgroup: a power of two, as many as the shared tiles hold (1024 elements) and the rows can use. More than 8 save
/// 2 % of the instructions, and take twice the registers: Intel's compilers then spill, and half as many subgroups fit NVIDIA's.
std::uint32_t choose_tile(std::uint32_t rows, std::uint32_t width) {
  std::uint32_t tile = 1;
  while (tile < 8 && tile < rows && 2 * tile * width <= 1024) tile *= 2;
  return tile;
}

std::uint32_t choose_splits(const runtime::DeviceCaps& caps) {
  return caps.type == runtime::DeviceType::kCpu ? 4 : 16;
}

enum class AttentionKernel { kTiled, kSplit, kWide, kWideSplit };
constexpr const char* kKernels[] = {"tiled", "split", "wide", "wide_split"};
std::string label_of(AttentionKernel kernel, const Tensor& key) { return fmt::format("attention {} {}", kKernels[static_cast<std::size_t>(kernel)], type_name(key.type)); }

/// What the wide kernels need that is missing here, or "".
std::string refuses_wide(const runtime::DeviceCaps& caps, const AttentionAttributes& attributes, std::uint32_t features, const Tensor& query, const Tensor& key, const Tensor& value) {
  if (const char* missing = wide_kernel_needs(caps, query.type)) return missing;
  const bool looks_back_only = attributes.window_back >= 0 && attributes.window_ahead < 0 && attributes.prefix == 0 && attributes.chunk == 0;
  const std::uint32_t there = RONDO_ATTENTION_SOFTCAP | RONDO_ATTENTION_RING | (looks_back_only ? RONDO_ATTENTION_RANGES : 0);
  if ((features & ~there) != 0) return "scores without mask, bias and the like, and no ranges but windows that end at the query";
  std::int64_t all = query.shape[3] | value.shape[3] | query.offset_elements | key.offset_elements | value.offset_elements;
  for (std::size_t axis = 0; axis < 3; ++axis) all |= query.strides[axis] | key.strides[axis] | value.strides[axis];
  return all % 8 == 0 ? "" : "head widths, strides and offsets that are multiples of 8";
}

/// The best, or, where it is in quarantine, those that are not, best first. Decode steps have few rows and many keys: split the
/// keys. Otherwise rows alone fill the device.
Result<std::vector<AttentionKernel>> candidates_for(const Lowering& lowering, const AttentionAttributes& attributes, std::uint32_t features, const Tensor& query, const Tensor& key, const Tensor& value) {
  const std::string_view forced = lowering.forced_kernel("attention");
  const std::string missing = refuses_wide(lowering.caps(), attributes, features, query, key, value);
  if (forced.starts_with("wide") && !missing.empty()) {
    return Status(StatusCode::kUnsupported, fmt::format("kernel '{}' needs {}, which device {} or this graph does not have", forced, missing, lowering.caps().name));
  }
  for (std::size_t i = 0; i < std::size(kKernels); ++i) {
    if (forced == kKernels[i]) return std::vector{static_cast<AttentionKernel>(i)};
  }
  const bool wide = lowering.caps().type == runtime::DeviceType::kCpu && missing.empty();
  std::vector<AttentionKernel> candidates = {AttentionKernel::kSplit, AttentionKernel::kTiled};  // best first
  if (wide) candidates.insert(candidates.begin(), {AttentionKernel::kWideSplit, AttentionKernel::kWide});
  if (query.shape[2] > 2) {
    for (std::size_t i = 0; i < candidates.size(); i += 2) std::swap(candidates[i], candidates[i + 1]);
  }
  std::vector<AttentionKernel> left = candidates;
  std::erase_if(left, [&](AttentionKernel candidate) { return lowering.is_quarantined(label_of(candidate, key)); });
  if (left.empty() || left.front() == candidates.front()) return std::vector{candidates.front()};
  return left;
}

/// Upper bound of the iterations of attention.comp over all keys.
std::uint64_t shared_iterations(const shaders::AttentionParams& push, std::uint32_t features, std::uint32_t tile, std::uint32_t threads) {
  const std::uint64_t blocks = ceil_div(ceil_div(push.keys, 64), push.n_splits);
  const std::uint32_t relative = features & RONDO_ATTENTION_RELATIVE_KEY ? tile * push.head_dim : 0;
  const std::uint64_t score = ceil_div(64, threads) * std::uint64_t{ceil_div(push.head_dim, 8) * 5 + 2 * tile + relative};
  const std::uint64_t values = ceil_div(tile * ceil_div(push.value_dim, 2), threads) * std::uint64_t{17};
  return blocks * (score + values + 2 * threads + 2);
}

/// The same of attention_wide.comp.
std::uint64_t wide_iterations(const shaders::AttentionParams& push, std::uint32_t width, std::uint32_t pieces) {
  const std::uint64_t blocks = ceil_div(ceil_div(push.keys, 4 * width), push.n_splits);
  return blocks * (5 + ceil_div(push.head_dim, 8 * pieces));
}

/// Emits the dispatches of one kernel, or refuses before the first.
Status lower_with(AttentionKernel kernel, const AttentionFeatures& features, const Node& node, Lowering& lowering) {
  const Tensor& query = lowering.tensor(node.inputs[kQuery]);
  const Tensor& key = lowering.tensor(node.inputs[kKey]);
  const Tensor& value = lowering.tensor(node.inputs[kValue]);
  const Tensor& output = lowering.tensor(node.outputs[0]);
  shaders::AttentionParams push = attention_params(node, lowering);
  push.value_dim = u32(value.shape[3]);
  push.value_offset = u32(value.offset_elements);
  push.value_sequence = sequence_stride(value), push.value_head = stride_of(value, 1), push.value_row = stride_of(value, 2);
  const bool tables = (features.bits & RONDO_ATTENTION_TABLES) != 0;
  const bool split = kernel == AttentionKernel::kSplit || kernel == AttentionKernel::kWideSplit;
  const bool wide = kernel == AttentionKernel::kWide || kernel == AttentionKernel::kWideSplit;
  const runtime::DeviceCaps& caps = lowering.caps();
  push.n_splits = split ? choose_splits(caps) : 1;
  const std::uint32_t rows = push.queries * push.group;
  const auto sequences = u32(query.shape[0]);
  const std::uint64_t partial_floats = std::uint64_t{sequences} * push.queries * push.heads * push.n_splits * (push.value_dim + 2);
  if (split && partial_floats * 4 > caps.max_storage_range_bytes) {
    return Status(StatusCode::kUnsupported, fmt::format("partial results need {} bytes, but a storage buffer on device {} can have {}", partial_floats * 4, caps.name, caps.max_storage_range_bytes));
  }
  const std::uint32_t subgroup = caps.min_subgroup_size, parts = std::min(4u, push.head_dim / 8), units = ceil_div(push.value_dim, 8 * std::max(subgroup, 1u));
  const std::uint32_t tile = wide ? std::min(rows, std::clamp(16 / units, 1u, 8u)) : choose_tile(rows, std::max((push.head_dim + 7) & ~7u, (push.value_dim + 1) & ~1u));
  // On a CPU driver a barrier switches between all subgroups of the workgroup: one or two are enough.
  const std::uint32_t threads = caps.type == runtime::DeviceType::kCpu ? std::max(tile, 8u) : 64;
  RONDO_TRY(check_key_loops(caps, push.keys, wide ? wide_iterations(push, subgroup, parts) : shared_iterations(push, features.bits, tile, threads)));
  const StorageId target = split ? lowering.scratch(partial_floats * 4, "attention partials") : output.storage;
  // Eight buffers at most, the step's state among them: with tables, these take the place of the offsets, and the mask that of the
  // lengths.
  const StorageId offsets = tables ? gather_attention_tables(node, lowering) : lowering.read_only(node.inputs[kOffset]);
  const StorageId lengths = lowering.read_only(node.inputs[tables ? kMask : kLengths]);
  const TensorId of_heads = tables ? kNone : node.inputs[node.inputs[kSinks] != kNone ? kSinks : kSlopes];
  if (of_heads != kNone) push.of_heads_offset = u32(lowering.tensor(of_heads).offset_elements);
  const std::string label = label_of(kernel, key);
  RONDO_ASSIGN(const std::vector<StoragePiece> pieces, lowering.cache_pieces(node.inputs[kKey]));
  RONDO_ASSIGN(const std::vector<StoragePiece> value_pieces, lowering.cache_pieces(node.inputs[kValue]));
  if (!pieces_agree(pieces, value_pieces)) return Status(StatusCode::kUnsupported, "key and value are in different pieces");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    push.kv_heads = u32(pieces[i].count);
    push.first_head = u32(pieces[i].first) * push.group;
    push.query_offset = u32(query.offset_elements + push.first_head * query.strides[1]);
    // Typical rather than largest cost: half the context. Cuts need an order of magnitude only.
    const double keys_read = 0.5 * push.keys * push.kv_heads * (push.head_dim * cache_element_bytes(key) + push.value_dim * cache_element_bytes(value));
    const double flops = 0.5 * 2.0 * push.queries * push.kv_heads * push.group * push.keys * (push.head_dim + push.value_dim);
    runtime::Cost cost{sequences * keys_read, sequences * flops};
    const std::initializer_list<Lowering::Argument> arguments = {{query.storage, runtime::Access::kRead},
                                                                 {key.storage, runtime::Access::kRead, i},
                                                                 {value.storage, runtime::Access::kRead, i},
                                                                 {offsets, runtime::Access::kRead},
                                                                 {lengths, runtime::Access::kRead},
                                                                 {target, runtime::Access::kWrite},
                                                                 {lowering.read_only(of_heads), runtime::Access::kRead}};
    if (wide) {
      lowering.dispatch(label, runtime::Shader::attention_wide, {subgroup, cache_type_constant(key), tile, split ? 1u : 0u, parts, units, features.bits}, arguments, push,
                        {ceil_div(rows, tile), sequences * push.kv_heads, push.n_splits}, cost);
    } else {
      cost.loops = {{{8 * tile}, {8}}};  // scores, values
      lowering.dispatch(label, lowering.module_for(runtime::Shader::attention, query.type), {threads, cache_type_constant(key), tile, split ? 1u : 0u, features.bits, features.radii, features.buckets}, arguments, push,
                        {ceil_div(rows, tile), sequences * push.kv_heads, push.n_splits}, cost);
    }
  }
  if (!split) return {};

  shaders::AttentionCombineParams combine{push.queries, push.heads, push.value_dim, push.n_splits};
  const std::uint32_t width = push.value_dim <= 16 ? 16 : push.value_dim <= 32 ? 32 : 64;
  lowering.dispatch("attention combine", lowering.module_for(runtime::Shader::attention_combine, query.type), {width},
                    {{target, runtime::Access::kRead}, {output.storage, runtime::Access::kWrite}}, combine,
                    {ceil_div(push.value_dim, width), sequences * push.queries * push.heads, 1}, {4.0 * static_cast<double>(partial_floats), 0});
  return {};
}

Status lower(const Node& node, Lowering& lowering) {
  const AttentionFeatures features = attention_features(lowering.graph(), node);
  RONDO_ASSIGN(const std::vector<AttentionKernel> candidates, candidates_for(lowering, attributes_of<AttentionAttributes>(node), features.bits, lowering.tensor(node.inputs[kQuery]), lowering.tensor(node.inputs[kKey]), lowering.tensor(node.inputs[kValue])));
  Status first;
  for (const AttentionKernel candidate : candidates) {
    Status status = lower_with(candidate, features, node, lowering);
    if (status.ok()) return status;
    if (first.ok()) first = std::move(status);
  }
  return first;
}

constexpr NamedInput kNamedInputs[] = {
    {"query"},
    {"key", InputRole::kKeys},
    {"value", InputRole::kKeys},
    {"query_offset", InputRole::kIntegers, kOptional},
    {"lengths", InputRole::kIntegers, kOptional},
    {"mask", InputRole::kMask, kOptional},
    {"alibi_slopes", InputRole::kParameter, kOptional},
    {"relative_bias", InputRole::kParameter, kOptional},
    {"relative_key", InputRole::kParameter, kOptional},
    {"relative_value", InputRole::kParameter, kOptional},
    {"sinks", InputRole::kParameter, kOptional},
};

}  // namespace

extern const Operator attention_operator = {
    .name = "attention",
    .inputs = kNamedInputs,
    .read_attributes = read_attention_attributes,
    .rows = StepRows::kHeads,
    .accuracy = {ErrorClass::kFunctions, 30, 30},
    .infer = infer,
    .lower = lower,
    .reference = attention_reference,
    .kernels = kKernels,
    .kernels_have_types = true,
};

}  // namespace rondo::graph
