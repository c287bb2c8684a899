#include "graph/ops/attention_inputs.h"

#include <algorithm>
#include <cmath>

#include "attention_tables.params.h"
#include "graph/attribute_reader.h"
#include "graph/operator.h"
#include "graph/ops/cache_checks.h"
#include "graph/ops/checks.h"
#include "shaders/lib/attention_features.h"

namespace rondo::graph {

namespace {

constexpr std::int64_t kMaxHeadDim = 512;
constexpr std::int64_t kMostAttribute = 1 << 30;
constexpr std::int64_t kMostTable = (1 << 16) - 1;

Status check_attributes(const AttentionAttributes& attributes) {
  const auto check = [](const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
    return value >= least && value <= most ? Status() : refuse(fmt::format("{} is {} but must be in [{}, {}]", name, value, least, most));
  };
  RONDO_TRY(check("window_back", attributes.window_back, -1, kMostAttribute));
  RONDO_TRY(check("window_ahead", attributes.window_ahead, -1, kMostAttribute));
  RONDO_TRY(check("prefix", attributes.prefix, 0, kMostAttribute));
  RONDO_TRY(check("chunk", attributes.chunk, 0, kMostAttribute));
  RONDO_TRY(check("chunks_back", attributes.chunks_back, 0, kMostAttribute));
  RONDO_TRY(check("max_distance", attributes.max_distance, 1, kMostTable));
  if (!std::isfinite(attributes.scale)) return refuse(fmt::format("scale is {}", attributes.scale));
  if (!(attributes.softcap >= 0 && std::isfinite(attributes.softcap))) return refuse(fmt::format("softcap is {} but must be 0 or positive", attributes.softcap));
  if (attributes.chunk * (attributes.chunks_back + 1) > kMostAttribute) return refuse("chunk and chunks_back reach too far back");
  return {};
}

Status check_table(const Graph& graph, TensorId id, const char* role) {
  RONDO_TRY(check_tensor(graph, id, role, Type::kF32, 2, 2));
  return check_contiguous(graph, id, role);
}

/// (2 R + 1, width)
Status check_relative(const Graph& graph, TensorId id, const char* role, std::int64_t width) {
  RONDO_TRY(check_table(graph, id, role));
  const Shape& shape = graph.tensor(id).shape;
  if (shape[0] % 2 == 1 && shape[0] <= kMostTable && shape[1] == width) return {};
  return refuse(fmt::format("{} is {} but must be (2 R + 1, {})", role, to_string(shape), width));
}

Status check_mask(const Graph& graph, TensorId id, const Shape& scores) {
  const Tensor& mask = graph.tensor(id);
  if (mask.type != Type::kF32 && mask.type != Type::kI32) return refuse(fmt::format("mask is {} but must be bool, f32 or f16", type_name(mask.type)));
  RONDO_TRY(check_tensor(graph, id, "mask", mask.type, 1, 4));
  RONDO_TRY(check_whole(graph, id, "mask"));
  for (int i = 1; i <= mask.shape.rank; ++i) {
    const std::int64_t found = mask.shape[mask.shape.rank - i], expected = scores[4 - i];
    if (found != 1 && found != expected) return refuse(fmt::format("mask is {} but must broadcast to {}", to_string(mask.shape), to_string(scores)));
  }
  return {};
}

/// The extent of a mask along one of the dimensions (B, H, Q, S).
std::int64_t mask_extent(const Tensor& mask, int axis) {
  const int own = axis - (4 - mask.shape.rank);
  return own < 0 ? 1 : mask.shape[own];
}

Status check_keys(const Graph& graph, TensorId id, const char* role) {
  const Tensor& tensor = graph.tensor(id);
  RONDO_TRY(check_cache_type(tensor, role));
  if (tensor.shape.rank != 4) return refuse(fmt::format("{} is {} but must be (B, G, S, D)", role, to_string(tensor.shape)));
  if (tensor.shape[3] > kMaxHeadDim) return refuse(fmt::format("{} has heads {} wide; at most {} is there yet", role, tensor.shape[3], kMaxHeadDim));
  return tensor.type == Type::kQ8_0 ? check_cache(graph, id, role) : Status();
}

/// Keys or values (B, G, S, D) as the kernels read them, dense in their last dimension and of f16 in whole words, or a copy
/// that is.
void make_rows_whole(Graph& graph, TensorId& id) {
  const Tensor tensor = graph.tensor(id);
  if (tensor.shape.rank != 4 || (tensor.type != Type::kF32 && tensor.type != Type::kF16)) return;
  std::int64_t all = tensor.offset_elements;
  for (std::size_t axis = 0; axis < 3; ++axis) all |= tensor.shape[static_cast<int>(axis)] == 1 ? 0 : tensor.strides[axis];
  if (tensor.strides[3] == 1 && (tensor.type == Type::kF32 || all % 2 == 0)) return;
  const std::int64_t width = tensor.shape[3];
  if (tensor.type == Type::kF32 || width % 2 == 0) {
    id = graph.add(Op::copy, {id});
    return;
  }
  PadAttributes one_more;
  one_more.after[3] = 1;
  id = graph.slice(graph.add(Op::pad, {id}, one_more), 3, 0, width);
}

/// Checks the optional inputs and attributes against query (B, H, Q, D), key (B, G, S, D) and value (B, G, S, E).
Status check_options(const Graph& graph, const Node& node) {
  const auto attributes = attributes_of<AttentionAttributes>(node);
  RONDO_TRY(check_attributes(attributes));
  const Shape &q = graph.tensor(node.inputs[kQuery]).shape, &k = graph.tensor(node.inputs[kKey]).shape;
  for (AttentionInput input : {kOffset, kLengths}) {
    if (node.inputs[input] == kNone) continue;
    const bool for_all = graph.tensor(node.inputs[input]).shape == Shape{1};
    RONDO_TRY(check_per_sequence(graph, node.inputs[input], input == kOffset ? "query_offset" : "lengths", for_all ? 1 : q[0]));
  }
  if (node.inputs[kMask] != kNone) RONDO_TRY(check_mask(graph, node.inputs[kMask], {q[0], q[1], q[2], k[2]}));
  for (AttentionInput input : {kSlopes, kSinks}) {
    if (node.inputs[input] == kNone) continue;
    RONDO_TRY(check_vector(graph, node.inputs[input], input == kSlopes ? "alibi_slopes" : "sinks", q[1]));
  }
  if (node.inputs[kBias] != kNone) {
    RONDO_TRY(check_table(graph, node.inputs[kBias], "relative_bias"));
    const Shape& bias = graph.tensor(node.inputs[kBias]).shape;
    const std::int64_t least = attributes.bidirectional_buckets ? 4 : 2;
    if (bias[1] != q[1] || bias[0] < least || bias[0] > kMostTable || (attributes.bidirectional_buckets && bias[0] % 2 != 0)) {
      return refuse(fmt::format("relative_bias is {} but must be (buckets, {}) with at least {} buckets, an even number if both ways", to_string(bias), q[1], least));
    }
    if (attributes.max_distance <= buckets_one_way(attributes, bias[0]) / 2) {
      return refuse(fmt::format("max_distance is {} but {} buckets reach that far one by one", attributes.max_distance, bias[0]));
    }
  }
  if (node.inputs[kRelativeKey] != kNone) RONDO_TRY(check_relative(graph, node.inputs[kRelativeKey], "relative_key", q[3]));
  if (node.inputs[kRelativeValue] != kNone) RONDO_TRY(check_relative(graph, node.inputs[kRelativeValue], "relative_value", graph.tensor(node.inputs[kValue]).shape[3]));
  return {};
}

}  // namespace

Status take_attention_inputs(Graph& graph, Node& node) {
  RONDO_TRY(check_activation(graph, node.inputs[kQuery], "query", 4, 4));
  if (node.inputs[kKey] == kNone) return refuse("key is missing");
  make_columns_dense(graph, node.inputs[kQuery]);
  const bool values = node.inputs[kValue] != kNone;
  const auto is_computed = [&](AttentionInput input) { return graph.storage_of(node.inputs[input]).kind != StorageKind::kCache; };
  const auto type_of = [&](AttentionInput input) { return graph.tensor(node.inputs[input]).type; };
  for (const auto& [input, other] : {std::pair{kKey, kValue}, std::pair{kValue, kKey}}) {
    if (values && is_computed(input) && type_of(other) == Type::kF32) widen(graph, node.inputs[input]);
  }
  make_rows_whole(graph, node.inputs[kKey]);
  if (values) make_rows_whole(graph, node.inputs[kValue]);
  RONDO_TRY(Status(graph.status()));
  for (const AttentionInput input : {kMask, kSlopes, kBias, kRelativeKey, kRelativeValue, kSinks}) widen(graph, node.inputs[input]);
  RONDO_TRY(check_keys(graph, node.inputs[kKey], "key"));
  if (values) RONDO_TRY(check_keys(graph, node.inputs[kValue], "value"));
  const Shape q = graph.tensor(node.inputs[kQuery]).shape, k = graph.tensor(node.inputs[kKey]).shape;
  if (values && type_of(kKey) != type_of(kValue)) return refuse("key and value differ in type");
  for (const auto& [input, role] : {std::pair{kKey, "key"}, std::pair{kValue, "value"}}) {
    if (node.inputs[input] == kNone) continue;
    const Tensor& tensor = graph.tensor(node.inputs[input]);
    const bool for_all = tensor.shape[0] == 1 && q[0] != 1;
    if (for_all && tensor.type == Type::kQ8_0) return refuse(fmt::format("{} is {} in q8_0, which can't be one for {} sequences; f32 and f16 can", role, to_string(tensor.shape), q[0]));
    RONDO_TRY(check_shape(graph, node.inputs[input], role, {for_all ? 1 : q[0], k[1], k[2], input == kKey ? q[3] : tensor.shape[3]}));
  }
  if (q[1] % k[1] != 0) return refuse(fmt::format("query has {} heads, which {} KV heads do not divide", q[1], k[1]));
  RONDO_TRY(check_options(graph, node));
  const auto attributes = attributes_of<AttentionAttributes>(node);
  if (attributes.ring && (node.inputs[kOffset] == kNone || node.inputs[kLengths] == kNone)) return refuse("keys in a ring need query_offset and lengths");
  if (attributes.ring && node.inputs[kMask] != kNone) return refuse("keys in a ring can't have a mask");
  node.inputs.push_back(kNone);
  if (node.inputs[kBias] == kNone) return {};
  const std::int64_t n = buckets_one_way(attributes, graph.tensor(node.inputs[kBias]).shape[0]);
  std::vector<float> buckets;
  for (std::int64_t distance = 0; distance <= attributes.max_distance; ++distance) {
    buckets.push_back(static_cast<float>(relative_bucket(distance, n, attributes.max_distance)));
  }
  node.inputs[kBuckets] = graph.add_constant(fmt::format("buckets {} to {}", n, attributes.max_distance), {attributes.max_distance + 1}, buckets);
  return {};
}

Attributes read_attention_attributes(AttributeReader& reader) {
  AttentionAttributes attention;
  reader.read("scale", attention.scale);
  reader.read("causal", attention.causal);
  reader.read("window_back", attention.window_back);
  reader.read("window_ahead", attention.window_ahead);
  reader.read("prefix", attention.prefix);
  reader.read("chunk", attention.chunk);
  reader.read("chunks_back", attention.chunks_back);
  reader.read("softcap", attention.softcap);
  reader.read("bidirectional_buckets", attention.bidirectional_buckets);
  reader.read("max_distance", attention.max_distance);
  reader.read("ring", attention.ring);
  return attention;
}

std::int64_t buckets_one_way(const AttentionAttributes& attributes, std::int64_t n_rows) { return attributes.bidirectional_buckets ? n_rows / 2 : n_rows; }

std::int64_t relative_bucket(std::int64_t distance, std::int64_t n, std::int64_t max_distance) {
  const std::int64_t exact = n / 2;
  if (distance < exact) return distance;
  const float part = std::log(static_cast<float>(distance) / static_cast<float>(exact)) / std::log(static_cast<float>(max_distance) / static_cast<float>(exact));
  return std::min(n - 1, exact + static_cast<std::int64_t>(part * static_cast<float>(n - exact)));
}

AttentionFeatures attention_features(const Graph& graph, const Node& node) {
  const auto attributes = attributes_of<AttentionAttributes>(node);
  AttentionFeatures features;
  const auto set = [&](bool present, std::uint32_t bits) { features.bits |= present ? bits : 0; };
  const auto has = [&](AttentionInput input) { return node.inputs[input] != kNone; };
  set(attributes.window_back >= 0 || attributes.window_ahead >= 0 || attributes.prefix > 0 || attributes.chunk > 0, RONDO_ATTENTION_RANGES);
  set(attributes.softcap > 0, RONDO_ATTENTION_SOFTCAP);
  set(attributes.ring, RONDO_ATTENTION_RING);
  if (has(kMask)) {
    const Tensor& mask = graph.tensor(node.inputs[kMask]);
    features.bits |= RONDO_ATTENTION_MASK | RONDO_ATTENTION_TABLES;
    set(mask.type == Type::kI32, RONDO_ATTENTION_MASK_IS_BOOL);
    set(mask_extent(mask, 0) > 1, RONDO_ATTENTION_MASK_SEQUENCES);
    set(mask_extent(mask, 1) > 1, RONDO_ATTENTION_MASK_HEADS);
    set(mask_extent(mask, 2) > 1, RONDO_ATTENTION_MASK_QUERIES);
    set(mask_extent(mask, 3) > 1, RONDO_ATTENTION_MASK_KEYS);
  }
  set(has(kSinks), RONDO_ATTENTION_SINKS);
  set(has(kSlopes), RONDO_ATTENTION_SLOPES);
  set(has(kSinks) && has(kSlopes), RONDO_ATTENTION_TABLES);
  set(has(kBias), RONDO_ATTENTION_BIAS | RONDO_ATTENTION_TABLES);
  set(has(kBias) && attributes.bidirectional_buckets, RONDO_ATTENTION_BIAS_BOTH_WAYS);
  set(has(kRelativeKey), RONDO_ATTENTION_RELATIVE_KEY | RONDO_ATTENTION_TABLES);
  set(has(kRelativeValue), RONDO_ATTENTION_RELATIVE_VALUE | RONDO_ATTENTION_TABLES);
  if (has(kRelativeKey)) features.radii = u32(graph.tensor(node.inputs[kRelativeKey]).shape[0] / 2);
  if (has(kRelativeValue)) features.radii |= u32(graph.tensor(node.inputs[kRelativeValue]).shape[0] / 2) << 16;
  if (has(kBias)) features.buckets = u32(graph.tensor(node.inputs[kBias]).shape[0]) | u32(attributes.max_distance) << 16;
  return features;
}

std::uint32_t sequence_stride(const Tensor& keys) { return keys.shape[0] == 1 ? 0 : stride_of(keys, 0); }

shaders::AttentionParams attention_params(const Node& node, const Lowering& lowering) {
  const auto attributes = attributes_of<AttentionAttributes>(node);
  const Tensor& query = lowering.tensor(node.inputs[kQuery]);
  const Tensor& key = lowering.tensor(node.inputs[kKey]);
  shaders::AttentionParams push{};
  push.queries = u32(query.shape[2]);
  push.heads = u32(query.shape[1]);
  push.group = u32(query.shape[1] / key.shape[1]);
  push.head_dim = u32(query.shape[3]);
  push.keys = u32(key.shape[2]);
  push.query_sequence = stride_of(query, 0), push.query_head = stride_of(query, 1), push.query_row = stride_of(query, 2);
  push.key_offset = u32(key.offset_elements);
  push.key_sequence = sequence_stride(key), push.key_head = stride_of(key, 1), push.key_row = stride_of(key, 2);
  push.scale = static_cast<float>(attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(query.shape[3])));
  push.causal = attributes.causal;
  const auto count = [&](AttentionInput input) { return node.inputs[input] == kNone ? 0 : u32(lowering.tensor(node.inputs[input]).shape[0]); };
  push.n_offsets = count(kOffset);
  push.n_lengths = count(kLengths);
  push.n_splits = 1;
  push.window_back = static_cast<std::int32_t>(attributes.window_back);
  push.window_ahead = static_cast<std::int32_t>(attributes.window_ahead);
  push.prefix = u32(attributes.prefix);
  push.chunk = u32(attributes.chunk);
  push.chunks_back = u32(attributes.chunks_back);
  push.softcap = static_cast<float>(attributes.softcap);
  return push;
}

Status check_key_loops(const runtime::DeviceCaps& caps, std::uint32_t keys, std::uint64_t iterations) {
  if (caps.max_loop_iterations == 0 || iterations <= caps.max_loop_iterations) return {};
  return Status(StatusCode::kUnsupported, fmt::format("{} keys need {} loop iterations but driver {} ends a kernel's loops after {}; ask for a smaller context", keys, iterations,
                                                      caps.driver, caps.max_loop_iterations));
}

namespace {

constexpr AttentionInput kInputsOfWeights[] = {kQuery, kKey, kOffset, kLengths, kMask, kSlopes, kBias, kRelativeKey, kSinks, kBuckets};

}  // namespace

Node without_values(const Node& weights) {
  Node node = weights;
  node.inputs.assign(kAttentionInputs, kNone);
  for (std::size_t i = 0; i < std::min(weights.inputs.size(), std::size(kInputsOfWeights)); ++i) node.inputs[kInputsOfWeights[i]] = weights.inputs[i];
  return node;
}

std::vector<TensorId> inputs_of_weights(const Node& attention) {
  std::vector<TensorId> inputs;
  for (const AttentionInput input : kInputsOfWeights) {
    if (input < attention.inputs.size()) inputs.push_back(attention.inputs[input]);
  }
  return inputs;
}

StorageId gather_attention_tables(const Node& node, Lowering& lowering) {
  const Shape &query = lowering.tensor(node.inputs[kQuery]).shape, &key = lowering.tensor(node.inputs[kKey]).shape;
  constexpr AttentionInput kOrder[2][6] = {{kOffset, kLengths, kSinks, kSlopes, kBias, kBuckets}, {kRelativeKey, kRelativeValue, kAttentionInputs, kAttentionInputs, kAttentionInputs, kAttentionInputs}};
  const auto words = [&](AttentionInput input) -> std::uint32_t {
    if (input == kOffset || input == kLengths) return u32(query[0]);
    if (input == kAttentionInputs || node.inputs[input] == kNone) return 0;
    return u32(lowering.tensor(node.inputs[input]).shape.n_elements());
  };
  std::uint32_t totals[2] = {};
  for (int half = 0; half < 2; ++half) {
    for (AttentionInput input : kOrder[half]) totals[half] += words(input);
  }
  totals[0] = 4 * ceil_div(totals[0], 4);  // relative keys and values are vectors
  // Layers that share a table of biases share what is gathered of it.
  std::vector<std::int64_t> same = {query[0], query[2], key[2]};
  for (const auto& half : kOrder) {
    for (const AttentionInput input : half) {
      const TensorId id = input == kAttentionInputs ? kNone : node.inputs[input];
      if (id == kNone) {
        same.push_back(-1);
        continue;
      }
      const Tensor& tensor = lowering.tensor(id);
      const Storage& storage = lowering.graph().storage(tensor.storage);
      const bool fixed = storage.kind == StorageKind::kConstant;  // equal ones lie in one place
      same.insert(same.end(), {input, fixed ? -2 - std::int64_t{storage.place.buffer} : tensor.storage, fixed ? static_cast<std::int64_t>(storage.place.offset_bytes) : tensor.offset_elements, tensor.shape.n_elements()});
    }
  }
  StorageId& made = lowering.made_before(same);
  if (made != kNone) return made;
  const StorageId tables = made = lowering.scratch(std::uint64_t{4} * (totals[0] + totals[1]), "attention tables");
  for (int half = 0; half < 2; ++half) {
    if (totals[half] == 0) continue;
    shaders::AttentionTablesParams push{};
    push.to = half == 0 ? 0 : totals[0];
    push.fill_0 = u32(key[2] - query[2]);
    push.fill_1 = u32(key[2]);
    std::uint32_t* const counts[] = {&push.counts_0, &push.counts_1, &push.counts_2, &push.counts_3, &push.counts_4, &push.counts_5};
    std::uint32_t* const from[] = {&push.from_0, &push.from_1, &push.from_2, &push.from_3, &push.from_4, &push.from_5};
    StorageId sources[6];
    for (std::size_t i = 0; i < 6; ++i) {
      const AttentionInput input = kOrder[half][i];
      *counts[i] = words(input);
      const TensorId id = input == kAttentionInputs ? kNone : node.inputs[input];
      sources[i] = lowering.read_only(id);
      if (id == kNone) continue;
      *from[i] = u32(lowering.tensor(id).offset_elements);
      if (i < 2) *(i == 0 ? &push.last_0 : &push.last_1) = u32(lowering.tensor(id).shape.n_elements() - 1);
      push.present |= 1u << i;
    }
    constexpr auto kRead = runtime::Access::kRead;
    constexpr std::uint32_t kWidth = 64;
    lowering.dispatch("attention tables", runtime::Shader::attention_tables, {kWidth},
                      {{tables, runtime::Access::kWrite}, {sources[0], kRead}, {sources[1], kRead}, {sources[2], kRead}, {sources[3], kRead}, {sources[4], kRead}, {sources[5], kRead}},
                      push, {ceil_div(totals[half], kWidth), 1, 1}, {8.0 * totals[half], 0});
  }
  return tables;
}

}  // namespace rondo::graph
