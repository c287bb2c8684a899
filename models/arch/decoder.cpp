#include "models/arch/decoder.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "models/printable.h"
#include "models/step_builder.h"
#include "models/utf8.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

/// The keys below the architecture's name, with the file's errors.
class Keys {
 public:
  explicit Keys(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + '.') {}

  std::string name(const char* key) const { return prefix_ + key; }
  bool has(const char* key) const { return file_.has(name(key)); }
  Result<float> f32_or(const char* key, float fallback) const { return file_.f32_or(name(key), fallback); }
  Result<std::uint32_t> u32_or(const char* key, std::uint32_t fallback) const { return file_.u32_or(name(key), fallback); }
  Result<std::string_view> string(const char* key) const { return file_.string(name(key)); }
  Result<float> f32(const char* key) const { return file_.f32(name(key)); }

  /// A positive integer of at most `limit`.
  Status read_count(const char* key, std::uint32_t limit, std::uint32_t& value) const {
    RONDO_ASSIGN(value, file_.u32(name(key)));
    if (value >= 1 && value <= limit) return {};
    return corrupt(key, fmt::format("is {} but must be in [1, {}]", value, limit));
  }

  Status corrupt(const char* key, const std::string& what) const {
    return Status(StatusCode::kCorruptData, fmt::format("{}: metadata key '{}' {}", file_.name(), name(key), what));
  }
  Status unsupported(const char* key, const std::string& what) const {
    return Status(StatusCode::kUnsupported, fmt::format("{}: metadata key '{}'{}", file_.name(), name(key), what));
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

/// Linear scaling divides every frequency, which is what frequency factors do; other kinds aren't there yet.
Status check_rope_scaling(const Keys& keys) {
  if (keys.has("rope.scaling.type")) {
    RONDO_ASSIGN(const std::string_view type, keys.string("rope.scaling.type"));
    if (type != "none") return keys.unsupported("rope.scaling.type", fmt::format(" is '{}', which is not there yet", printable(type)));
  }
  for (const char* key : {"rope.scale_linear", "rope.scaling.factor"}) {
    if (!keys.has(key)) continue;
    RONDO_ASSIGN(const float factor, keys.f32(key));
    if (factor != 0.0f && factor != 1.0f) return keys.unsupported(key, fmt::format(" is {}, which is not there yet", factor));
  }
  return {};
}

Status read_heads(const Keys& keys, NetworkFacts& facts) {
  facts.n_kv_heads = facts.n_heads;
  if (keys.has("attention.head_count_kv")) RONDO_TRY(keys.read_count("attention.head_count_kv", facts.n_heads, facts.n_kv_heads));
  if (facts.n_heads % facts.n_kv_heads != 0) {
    return keys.corrupt("attention.head_count_kv", fmt::format("is {}, which does not divide the {} heads", facts.n_kv_heads, facts.n_heads));
  }
  facts.head_dim = facts.width / facts.n_heads;
  if (keys.has("attention.key_length")) {
    RONDO_TRY(keys.read_count("attention.key_length", 1 << 14, facts.head_dim));
    RONDO_ASSIGN(const std::uint32_t value_length, keys.u32_or("attention.value_length", facts.head_dim));
    if (value_length != facts.head_dim) return keys.unsupported("attention.value_length", " differs from the key's, which is not there yet");
  } else if (facts.width % facts.n_heads != 0) {
    return keys.corrupt("embedding_length", fmt::format("is {}, which {} heads do not divide", facts.width, facts.n_heads));
  }
  return {};
}

Status read_rope(const Keys& keys, std::uint32_t head_dim, graph::RopeAttributes& rope) {
  RONDO_TRY(check_rope_scaling(keys));
  RONDO_ASSIGN(const float theta, keys.f32_or("rope.freq_base", 10000.0f));
  if (!(theta > 0 && std::isfinite(theta))) return keys.corrupt("rope.freq_base", fmt::format("is {} but must be positive", theta));
  RONDO_ASSIGN(const std::uint32_t dimensions, keys.u32_or("rope.dimension_count", head_dim));
  if (dimensions < 2 || dimensions > head_dim || dimensions % 2 != 0) {
    return keys.corrupt("rope.dimension_count", fmt::format("is {} but must be even and in [2, {}]", dimensions, head_dim));
  }
  rope.dimensions = dimensions;
  rope.theta = static_cast<double>(theta);
  return {};
}

Status read_rope_factors(const GgufFile& file, const ByteSource& source, std::int64_t dimensions, std::vector<float>& factors) {
  const GgufTensor* tensor = file.find_tensor("rope_freqs.weight");
  if (!tensor) return {};
  const auto expected = static_cast<std::uint64_t>(dimensions / 2);
  if (tensor->type != GgmlType::kF32 || tensor->n_dims != 1 || tensor->dims[0] != expected) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'rope_freqs.weight' must be {} values of f32", file.name(), expected));
  }
  factors.resize(expected);
  RONDO_TRY(source.read(tensor->offset_bytes, std::as_writable_bytes(std::span(factors))));
  for (const float factor : factors) {
    if (factor > 0 && std::isfinite(factor)) continue;
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'rope_freqs.weight' holds {} but must be positive", file.name(), factor));
  }
  return {};
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const GgufFile& file, const ByteSource& source) {
  DecoderConfig config;
  NetworkFacts& facts = config.facts;
  RONDO_ASSIGN(const std::string_view architecture, file.string("general.architecture"));
  facts.architecture = architecture;
  if (file.has("general.name")) {
    RONDO_ASSIGN(const std::string_view name, file.string("general.name"));
    Utf8Stream text;  // files promise UTF-8 but hold anything
    facts.name = text.add(printable(name));
    facts.name += text.finish();
  }
  const Keys keys(file, facts.architecture);
  RONDO_TRY(keys.read_count("block_count", 4096, facts.n_layers));
  RONDO_TRY(keys.read_count("embedding_length", 1 << 20, facts.width));
  RONDO_TRY(keys.read_count("attention.head_count", 1 << 14, facts.n_heads));
  RONDO_TRY(keys.read_count("feed_forward_length", 1 << 22, facts.ffn));
  RONDO_TRY(keys.read_count("context_length", 1 << 24, facts.context));
  RONDO_TRY(read_heads(keys, facts));
  RONDO_ASSIGN(const float epsilon, keys.f32("attention.layer_norm_rms_epsilon"));
  if (!(epsilon > 0 && epsilon < 1)) return keys.corrupt("attention.layer_norm_rms_epsilon", fmt::format("is {} but must be in (0, 1)", epsilon));
  config.epsilon = static_cast<double>(epsilon);
  RONDO_ASSIGN(const std::uint32_t experts, keys.u32_or("expert_count", 0));
  if (experts > 0) return keys.unsupported("expert_count", ": mixtures of experts are not there yet");
  RONDO_TRY(read_rope(keys, facts.head_dim, config.rope));
  RONDO_TRY(read_rope_factors(file, source, config.rope.dimensions, config.rope_factors));
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (!embedding) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'token_embd.weight' is missing", file.name()));
  if (embedding->n_dims != 2 || embedding->dims[1] > (1u << 24)) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor 'token_embd.weight' is not a matrix of at most 2^24 rows", file.name()));
  }
  facts.n_vocab = static_cast<std::uint32_t>(embedding->dims[1]);
  return config;
}

namespace {

/// Finds a layer's weights, whose names all begin with `prefix`.
Status find_layer(WeightFinder& find, const DecoderConfig& config, const GgufFile& file, const std::string& prefix, DecoderWeights::Layer& layer) {
  const NetworkFacts& facts = config.facts;
  const std::int64_t width = facts.width, ffn = facts.ffn;
  const std::int64_t query_rows = std::int64_t{facts.n_heads} * facts.head_dim, kv_rows = std::int64_t{facts.n_kv_heads} * facts.head_dim;
  for (const char* bias : {"ffn_gate.bias", "ffn_up.bias", "ffn_down.bias"}) {
    if (find.has(prefix + bias)) return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}{}': biases of the feed-forward network are not there yet", file.name(), prefix, bias));
  }
  RONDO_TRY(find.vector({prefix + "attn_norm.weight", width, &layer.attention_norm}));
  const WantedWeight projections[] = {{prefix + "attn_q.weight", query_rows, &layer.query}, {prefix + "attn_k.weight", kv_rows, &layer.key}, {prefix + "attn_v.weight", kv_rows, &layer.value}};
  RONDO_TRY(find.matrices(projections, width));
  const WantedWeight biases[] = {{prefix + "attn_q.bias", query_rows, &layer.query_bias}, {prefix + "attn_k.bias", kv_rows, &layer.key_bias}, {prefix + "attn_v.bias", kv_rows, &layer.value_bias}};
  const bool biased = std::any_of(std::begin(biases), std::end(biases), [&](const WantedWeight& bias) { return find.has(bias.tensor); });
  if (biased || config.query_key_value_bias == Presence::kAlways) RONDO_TRY(find.vectors(biases));
  RONDO_TRY(find.matrix({prefix + "attn_output.weight", width, &layer.output}, query_rows));
  if (find.has(prefix + "attn_output.bias")) RONDO_TRY(find.vector({prefix + "attn_output.bias", width, &layer.output_bias}));
  RONDO_TRY(find.vector({prefix + "ffn_norm.weight", width, &layer.ffn_norm}));
  const WantedWeight gate_and_up[] = {{prefix + "ffn_gate.weight", ffn, &layer.gate}, {prefix + "ffn_up.weight", ffn, &layer.up}};
  RONDO_TRY(find.matrices(gate_and_up, width));
  return find.matrix({prefix + "ffn_down.weight", width, &layer.down}, ffn);
}

}  // namespace

Result<Network> open_decoder(const GgufFile& file, DecoderConfig config) {
  WeightFinder find(file);
  DecoderWeights weights;
  const NetworkFacts& facts = config.facts;
  RONDO_TRY(find.matrix({"token_embd.weight", facts.n_vocab, &weights.embedding}, facts.width));
  for (std::uint32_t i = 0; i < facts.n_layers; ++i) RONDO_TRY(find_layer(find, config, file, fmt::format("blk.{}.", i), weights.layers.emplace_back()));
  RONDO_TRY(find.vector({"output_norm.weight", facts.width, &weights.output_norm}));
  weights.output = weights.embedding;  // tied unless the file has a head of its own
  if (find.has("output.weight")) RONDO_TRY(find.matrix({"output.weight", facts.n_vocab, &weights.output}, facts.width));
  return make_decoder(std::move(config), std::move(weights), find.take_blocks());
}

namespace {

using graph::Graph;
using graph::Op;
using graph::TensorId;

/// What every layer of a step reads.
struct Shared {
  StepBuilder::Tokens tokens;
  TensorId rope_factors = graph::kNone;
  graph::RmsNormAttributes norm;
  graph::RopeAttributes rope;
  const NetworkFacts& facts;
};

TensorId add_layer(StepBuilder& step, const Shared& shared, const DecoderWeights::Layer& weights, std::size_t index, TensorId hidden) {
  Graph& g = step.graph();
  const auto& [tokens, factors, norm, rope, facts] = shared;
  const auto project = [&](TensorId input, const WeightSlice& weight, const WeightSlice& bias) {
    return g.add(Op::linear, {input, step.matrix(weight), graph::kNone, step.vector(bias)});
  };
  const TensorId keys = step.keys(index), values = step.values(index);
  const TensorId normed = g.add(Op::rms_norm, {hidden, step.vector(weights.attention_norm)}, norm);
  const TensorId query = step.split_heads(project(normed, weights.query, weights.query_bias), facts.n_heads);
  const TensorId key = step.split_heads(project(normed, weights.key, weights.key_bias), facts.n_kv_heads);
  const TensorId value = step.split_heads(project(normed, weights.value, weights.value_bias), facts.n_kv_heads);
  const TensorId rotated_query = g.add(Op::rope, {query, tokens.positions, factors}, rope);
  const TensorId rotated_key = g.add(Op::rope, {key, tokens.positions, factors}, rope);
  g.add(Op::kv_write, {keys, rotated_key, tokens.start, tokens.count});
  g.add(Op::kv_write, {values, value, tokens.start, tokens.count});
  graph::AttentionAttributes attention;
  attention.causal = true;
  const TensorId attended = g.add(Op::attention, {rotated_query, keys, values, tokens.start, tokens.lengths}, attention);
  const TensorId after_attention = g.add(Op::add, {project(step.merge_heads(attended), weights.output, weights.output_bias), hidden});

  const TensorId ffn_normed = g.add(Op::rms_norm, {after_attention, step.vector(weights.ffn_norm)}, norm);
  const TensorId gate = g.add(Op::linear, {ffn_normed, step.matrix(weights.gate)});
  const TensorId up = g.add(Op::linear, {ffn_normed, step.matrix(weights.up)});
  const TensorId down = g.add(Op::linear, {g.add(Op::glu, {gate, up}), step.matrix(weights.down)});
  return g.add(Op::add, {down, after_attention});
}

/// What the network's build function keeps.
struct Decoder {
  DecoderConfig config;
  DecoderWeights weights;
  std::vector<WeightBlock> blocks;
  std::vector<CacheSpec> caches;

  Graph build(Role role, std::int64_t rows, const StepPlaces& places) const;
};

Graph Decoder::build(Role role, std::int64_t rows, const StepPlaces& places) const {
  StepBuilder step(blocks, caches, places, role, rows);
  Graph& g = step.graph();
  Shared shared{step.begin(), graph::kNone, {config.epsilon}, config.rope, config.facts};
  shared.rope.max_position = places.n_ctx;
  if (!config.rope_factors.empty()) shared.rope_factors = g.add_constant("rope factors", {static_cast<std::int64_t>(config.rope_factors.size())}, config.rope_factors);
  TensorId hidden = g.add(Op::embedding, {shared.tokens.ids, step.matrix(weights.embedding)});
  for (std::size_t i = 0; i < weights.layers.size(); ++i) hidden = add_layer(step, shared, weights.layers[i], i, hidden);
  TensorId logits = graph::kNone;
  if (role != Role::kPrefill) {
    const TensorId normed = g.add(Op::rms_norm, {step.rows_for_head(shared.tokens, hidden), step.vector(weights.output_norm)}, shared.norm);
    logits = g.add(Op::linear, {normed, step.matrix(weights.output)});
  }
  return step.finish(logits);
}

}  // namespace

Network make_decoder(DecoderConfig config, DecoderWeights weights, std::vector<WeightBlock> blocks) {
  const NetworkFacts& facts = config.facts;
  Network network;
  network.facts = facts;
  network.blocks = blocks;
  for (std::uint32_t i = 0; i < facts.n_layers; ++i) network.caches.push_back({fmt::format("layer {}", i), facts.n_kv_heads, facts.head_dim, facts.head_dim});
  network.roles = {{Role::kPrefill}, {Role::kPrefillAndSample}, {Role::kDecode}, {Role::kLogits, network.facts.n_vocab}};
  const std::int64_t heads = std::int64_t{facts.n_heads} + 2 * std::int64_t{facts.n_kv_heads};
  network.widest_row = std::max({std::int64_t{facts.width}, heads * facts.head_dim, 2 * std::int64_t{facts.ffn}});
  auto decoder = std::make_shared<const Decoder>(Decoder{std::move(config), std::move(weights), std::move(blocks), network.caches});
  network.build = [decoder](Role role, std::int64_t rows, const StepPlaces& places) { return decoder->build(role, rows, places); };
  return network;
}

}  // namespace rondo::models
