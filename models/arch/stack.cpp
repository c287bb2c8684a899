#include "models/arch/stack.h"

#include <algorithm>
#include <cmath>

#include "runtime/fmt.h"

namespace rondo::models {

using graph::kNone;
using graph::Op;
using graph::TensorId;

namespace {

std::int64_t inner_width(const StackConfig& config) { return std::int64_t{config.n_heads} * config.head_dim; }

Status find_layer(LayerFinder& find, const StackConfig& config, const StackNames& names, StackWeights::Layer& layer) {
  const std::int64_t width = config.width, inner = inner_width(config), ffn = config.ffn;
  RONDO_TRY(find.norm(names.attention_norm, width, layer.attention_norm, Presence::kAlways));
  RONDO_TRY(find.linears("attn_qkv", {{"attn_q", inner, &layer.query}, {"attn_k", inner, &layer.key}, {"attn_v", inner, &layer.value}}, width, config.biased));
  RONDO_TRY(find.linear(names.attention_output, width, inner, layer.output, config.biased));
  if (config.relative == Relative::kKeys || config.relative == Relative::kKeysQueries) RONDO_TRY(find.table("attn_distance.weight", 2 * config.farthest + 1, config.head_dim, layer.distances));
  if (config.relative == Relative::kKeysQueries) RONDO_TRY(find.table("attn_distance_back.weight", 2 * config.farthest + 1, config.head_dim, layer.distances_back));
  if (config.decodes) {
    RONDO_TRY(find.norm("cross_attn_norm", width, layer.cross_norm, Presence::kAlways));
    RONDO_TRY(find.linear("cross_attn_q", inner, width, layer.cross_query, config.biased));
    RONDO_TRY(find.linears(nullptr, {{"cross_attn_k", inner, &layer.cross_key}, {"cross_attn_v", inner, &layer.cross_value}}, width, config.biased));
    RONDO_TRY(find.linear(fmt::format("cross_{}", names.attention_output), width, inner, layer.cross_output, config.biased));
  }
  RONDO_TRY(find.norm(names.ffn_norm, width, layer.ffn_norm, Presence::kAlways));
  if (config.gated) RONDO_TRY(find.linears(nullptr, {{"ffn_gate", ffn, &layer.gate}, {"ffn_up", ffn, &layer.up}}, width, config.biased));
  else RONDO_TRY(find.linear("ffn_up", ffn, width, layer.up, config.biased));
  return find.linear("ffn_down", width, ffn, layer.down, config.biased);
}

}  // namespace

Status read_stack(const ArchitectureKeys& keys, StackConfig& stack) {
  RONDO_TRY(keys.read_count("block_count", 4096, stack.n_layers));
  RONDO_TRY(keys.read_count("embedding_length", 1 << 20, stack.width));
  RONDO_TRY(keys.read_count("feed_forward_length", 1 << 22, stack.ffn));
  RONDO_TRY(keys.read_count("attention.head_count", 1 << 14, stack.n_heads));
  if (keys.has("attention.key_length")) {
    RONDO_TRY(keys.read_count("attention.key_length", 1 << 14, stack.head_dim));
    RONDO_ASSIGN(const std::uint32_t value_length, keys.u32_or("attention.value_length", stack.head_dim));
    return value_length == stack.head_dim ? Status() : keys.unsupported("attention.value_length", " differs from the key's, which is not there yet");
  }
  if (stack.width % stack.n_heads != 0) return keys.corrupt("embedding_length", fmt::format("is {}, which {} heads do not divide", stack.width, stack.n_heads));
  stack.head_dim = stack.width / stack.n_heads;
  return {};
}

Status read_buckets(const ArchitectureKeys& keys, StackConfig& stack) {
  std::uint32_t buckets = 0, farthest = 0;
  RONDO_TRY(keys.read_count("attention.relative_buckets_count", 1 << 15, buckets));
  RONDO_TRY(keys.read_count_or("attention.relative_max_distance", 1 << 15, 128, farthest));
  const std::uint32_t one_way = buckets / 2, exact = stack.decodes || stack.causal ? buckets / 2 : one_way / 2;
  if (buckets < 4 || buckets % 2 != 0) return keys.corrupt("attention.relative_buckets_count", fmt::format("is {} but must be even and at least 4", buckets));
  if (farthest <= exact) return keys.corrupt("attention.relative_max_distance", fmt::format("is {} but {} buckets reach that far one by one", farthest, buckets));
  stack.relative = Relative::kBuckets;
  stack.buckets = buckets, stack.max_distance = farthest;
  stack.attention_scale = 1;
  return {};
}

Status find_stack(WeightFinder& find, const StackConfig& config, const StackNames& names, StackWeights& weights) {
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    LayerFinder layer(find, fmt::format("{}{}.", names.layers, i), config.norm, true);
    // One table serves all layers; files have it in the first.
    if (config.relative == Relative::kBuckets && i == 0) RONDO_TRY(layer.table("attn_rel_b.weight", config.buckets, config.n_heads, weights.buckets));
    RONDO_TRY(find_layer(layer, config, names, weights.layers.emplace_back()));
  }
  LayerFinder around(find, "", config.norm, true);
  return around.norm(names.final_norm, config.width, weights.final_norm, config.final_norm);
}

PartCounter& PartCounter::add(std::initializer_list<std::int64_t> factors) {
  std::uint64_t product = 1;
  for (const std::int64_t factor : factors) product *= static_cast<std::uint64_t>(factor);
  if (product == 0) return *this;
  std::vector<std::int64_t> shown(factors);
  if (shown.size() > 1) std::erase(shown, 1);
  part_.n += product;
  part_.formula += fmt::format("{}{}", part_.formula.empty() ? "" : " + ", fmt::join(shown, " x "));
  return *this;
}

PartCounter& PartCounter::add(std::int64_t times, const PartCounter& other) {
  part_.n += static_cast<std::uint64_t>(times) * other.part_.n;
  part_.formula += fmt::format("{}{} x ({})", part_.formula.empty() ? "" : " + ", times, other.part_.formula);
  return *this;
}

NetworkPart stack_part(const std::string& name, const StackConfig& config, const StackWeights& weights) {
  const StackWeights::Layer& first = weights.layers.front();
  const std::int64_t width = config.width, inner = inner_width(config), ffn = config.ffn;
  PartCounter layer("");
  layer.add({3 + 1, width, inner}).add({first.query.bias.is_there() ? 3 : 0, inner}).add({first.output.bias.is_there() ? width : 0});
  if (config.decodes) layer.add({3 + 1, width, inner}).add({first.cross_query.bias.is_there() ? 3 : 0, inner}).add({first.cross_output.bias.is_there() ? width : 0});
  layer.add({config.gated ? 3 : 2, width, ffn}).add({first.up.bias.is_there() ? (config.gated ? 2 : 1) : 0, ffn}).add({first.down.bias.is_there() ? width : 0});
  layer.add({config.decodes ? 3 : 2, first.ffn_norm.bias.is_there() ? 2 : 1, width});
  if (first.distances.is_there()) layer.add({first.distances_back.is_there() ? 2 : 1, 2 * config.farthest + 1, config.head_dim});
  PartCounter all(name);
  all.add(config.n_layers, layer);
  if (weights.buckets.is_there()) all.add({config.buckets, config.n_heads});
  return all.add(weights.final_norm, width).part();
}

std::vector<CacheSpec> stack_caches(const StackConfig& config) {
  std::vector<CacheSpec> caches;
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    caches.push_back({fmt::format("layer {}", i), config.n_heads, config.head_dim, config.head_dim, CacheExtent::kContext, 0});
    caches.push_back({fmt::format("layer {} source", i), config.n_heads, config.head_dim, config.head_dim, CacheExtent::kSource, 0});
  }
  return caches;
}

std::int64_t widest_row(const StackConfig& config, std::int64_t rows) {
  const std::int64_t key_biases = config.relative == Relative::kKeysQueries ? std::int64_t{config.n_heads} * (2 * rows - 1) : 0;
  return std::max({std::int64_t{config.width}, 3 * inner_width(config), (config.gated ? 2 : 1) * std::int64_t{config.ffn}, key_biases});
}

TensorId StackBuilder::table(const WeightSlice& slice, std::int64_t columns) {
  const TensorId values = step_.vector(slice);
  return g_.status().ok() ? g_.reshape(values, {slice.count / columns, columns}) : kNone;
}

/// (B, H, T, T): for query i and key j, key j times the vector of distance i - j. The products with all distances lie side by side;
/// seen with steps of one column less between keys they are those of each query.
TensorId StackBuilder::key_biases(const StackConfig& config, const StackWeights::Layer& weights, TensorId key) {
  const TensorId all = table(weights.distances_back, config.head_dim);
  if (!g_.status().ok()) return kNone;
  const graph::Shape keys = g_.tensor(key).shape;
  const std::int64_t rows = keys[2], columns = 2 * rows - 1;
  const TensorId distances = g_.slice(all, 0, config.farthest - rows + 1, config.farthest + rows);
  graph::MatmulAttributes product;
  product.transpose_b = true;
  product.scale = config.attention_scale != 0 ? config.attention_scale : 1 / std::sqrt(static_cast<double>(config.head_dim));
  const TensorId products = g_.add(Op::matmul, {key, distances}, product);
  if (!g_.status().ok()) return kNone;
  graph::Tensor view = g_.tensor(products);
  view.shape = {keys[0], keys[1], rows, rows};
  view.strides = {keys[1] * rows * columns, rows * columns, 1, columns - 1};
  view.offset_elements = rows - 1;
  return g_.add(Op::copy, {g_.add_view(std::move(view))});
}

TensorId StackBuilder::self_attention(const StackConfig& config, const StackWeights& weights, std::size_t index, const StepBuilder::Tokens& tokens, TensorId input) {
  const StackWeights::Layer& layer = weights.layers[index];
  const bool shown = step_.shown_layer() == index;
  const TensorId projected_query = linear(input, layer.query), projected_key = linear(input, layer.key), projected_value = shown ? kNone : linear(input, layer.value);
  TensorId query = step_.split_heads(projected_query, config.n_heads), key = step_.split_heads(projected_key, config.n_heads);
  TensorId value = shown ? kNone : step_.split_heads(projected_value, config.n_heads);
  if (config.rope) {
    query = g_.add(Op::rope, {query, tokens.positions, kNone}, *config.rope);
    key = g_.add(Op::rope, {key, tokens.positions, kNone}, *config.rope);
  }
  graph::AttentionAttributes attributes;
  attributes.causal = config.decodes || config.causal;
  attributes.scale = config.attention_scale;
  attributes.bidirectional_buckets = !attributes.causal;
  attributes.max_distance = config.max_distance;
  TensorId buckets = kNone, distances = kNone, mask = kNone;
  if (config.relative == Relative::kBuckets) buckets = table(weights.buckets, config.n_heads);
  if (config.relative == Relative::kKeys || config.relative == Relative::kKeysQueries) distances = table(layer.distances, config.head_dim);
  if (config.relative == Relative::kKeysQueries) mask = key_biases(config, layer, key);
  if (shown) return g_.add(Op::attention_weights, {query, key, kNone, tokens.lengths, mask, kNone, buckets, distances}, attributes);
  if (config.decodes) {
    const TensorId keys = step_.keys(2 * index), values = step_.values(2 * index);
    g_.add(Op::kv_write, {keys, key, tokens.start, tokens.count}, graph::KvWriteAttributes{});
    g_.add(Op::kv_write, {values, value, tokens.start, tokens.count}, graph::KvWriteAttributes{});
    key = keys, value = values;
  }
  const TensorId offset = config.decodes ? tokens.start : kNone;
  const TensorId attended = g_.add(Op::attention, {query, key, value, offset, tokens.lengths, mask, kNone, buckets, distances}, attributes);
  return linear(step_.merge_heads(attended), layer.output);
}

TensorId StackBuilder::cross_attention(const StackConfig& config, const StackWeights::Layer& weights, std::size_t index, TensorId input) {
  if (source_lengths_ == kNone) source_lengths_ = step_.source_lengths();
  const TensorId query = step_.split_heads(linear(input, weights.cross_query), config.n_heads);
  graph::AttentionAttributes attributes;
  attributes.scale = config.attention_scale;
  const TensorId attended = g_.add(Op::attention, {query, step_.keys(2 * index + 1), step_.values(2 * index + 1), kNone, source_lengths_}, attributes);
  return linear(step_.merge_heads(attended), weights.cross_output);
}

TensorId StackBuilder::network(const StackConfig& config, const StackWeights::Layer& weights, TensorId input) {
  if (!config.gated) return linear(linear(input, weights.up, config.activation), weights.down);
  const TensorId gate = linear(input, weights.gate), up = linear(input, weights.up);
  return linear(g_.add(Op::glu, {gate, up}, graph::GluAttributes{config.activation}), weights.down);
}

TensorId StackBuilder::layer(const StackConfig& config, const StackWeights& weights, std::size_t index, const StepBuilder::Tokens& tokens, TensorId hidden) {
  const StackWeights::Layer& layer = weights.layers[index];
  const auto branch = [&](const NormWeights& norm_weights, const auto& make) {
    const TensorId made = make(config.norms_behind ? hidden : norm(hidden, norm_weights));
    hidden = add(made, hidden);
    if (config.norms_behind) hidden = norm(hidden, norm_weights);
  };
  branch(layer.attention_norm, [&](TensorId input) { return self_attention(config, weights, index, tokens, input); });
  if (config.decodes) branch(layer.cross_norm, [&](TensorId input) { return cross_attention(config, layer, index, input); });
  branch(layer.ffn_norm, [&](TensorId input) { return network(config, layer, input); });
  return hidden;
}

TensorId StackBuilder::stack(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, TensorId hidden) {
  for (std::size_t i = 0; i < weights.layers.size(); ++i) hidden = layer(config, weights, i, tokens, hidden);
  return hidden;
}

TensorId StackBuilder::encoded(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, TensorId hidden) {
  const std::optional<std::size_t> shown = step_.shown_layer();
  if (!shown) return norm(stack(config, weights, tokens, hidden), weights.final_norm);
  for (std::size_t i = 0; i < *shown; ++i) hidden = layer(config, weights, i, tokens, hidden);
  return self_attention(config, weights, *shown, tokens, config.norms_behind ? hidden : norm(hidden, weights.layers[*shown].attention_norm));
}

void StackBuilder::write_source(const StackConfig& config, const StackWeights& weights, const StepBuilder::Tokens& tokens, TensorId encoded) {
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    const StackWeights::Layer& layer = weights.layers[i];
    const TensorId key = linear(encoded, layer.cross_key), value = linear(encoded, layer.cross_value);
    g_.add(Op::kv_write, {step_.keys(2 * i + 1), step_.split_heads(key, config.n_heads), tokens.start, tokens.count}, graph::KvWriteAttributes{});
    g_.add(Op::kv_write, {step_.values(2 * i + 1), step_.split_heads(value, config.n_heads), tokens.start, tokens.count}, graph::KvWriteAttributes{});
  }
}

}  // namespace rondo::models
