// The graph of a decoder's step.
#include "models/arch/decoder.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::TensorId;

/// What the network's build function keeps.
struct Decoder {
  DecoderConfig config;
  DecoderWeights weights;
  std::vector<WeightBlock> blocks;
  std::vector<CacheSpec> caches;
};

/// Slopes of Press et al. 2022; of heads that are no power of two those of twice as many lie between.
std::vector<float> alibi_slopes(std::uint32_t n_heads, double max_bias) {
  std::uint32_t power = 1;
  while (power * 2 <= n_heads) power *= 2;
  std::vector<float> slopes;
  for (std::uint32_t head = 0; head < n_heads; ++head) {
    const double exponent = head < power ? max_bias / power * (head + 1) : max_bias / 2 / power * (2 * (head - power) + 1);
    slopes.push_back(static_cast<float>(std::exp2(-exponent)));
  }
  return slopes;
}

/// Builds the graph of one step.
class Builder : LayerBuilder {
 public:
  Builder(const Decoder& decoder, Role role, std::int64_t rows, const StepPlaces& places)
      : LayerBuilder(decoder.blocks, decoder.caches, places, role, rows, {decoder.config.family.norm, decoder.config.epsilon, decoder.config.norm_weight_offset}),
        config_(decoder.config), facts_(config_.facts), weights_(decoder.weights), role_(role), n_ctx_(places.n_ctx), session_ctx_(places.session_ctx > 0 ? places.session_ctx : places.n_ctx) {}

  Graph build() {
    tokens_ = step_.begin();
    const bool is_long = !config_.long_rope_factors.empty() && session_ctx_ > config_.original_context;
    const std::vector<float>& factors = is_long ? config_.long_rope_factors : config_.rope_factors;
    if (!factors.empty()) rope_factors_ = g_.add_constant("rope factors", {static_cast<std::int64_t>(factors.size())}, factors);
    if (config_.max_alibi_bias > 0) {
      slopes_ = g_.add_constant("alibi slopes", {facts_.n_heads}, alibi_slopes(facts_.n_heads, config_.max_alibi_bias));
    }
    graph::EmbeddingAttributes embedding;
    embedding.scale = config_.embedding_scale;
    TensorId hidden = g_.add(Op::embedding, {tokens_.ids, step_.matrix(weights_.embedding)}, embedding);
    if (weights_.positions.is_there()) hidden = g_.add(Op::add, {hidden, g_.add(Op::embedding, {tokens_.positions, step_.matrix(weights_.positions)})});
    hidden = norm(hidden, weights_.embedding_norm);
    const std::size_t end = step_.shown_layer().value_or(weights_.layers.size());
    for (std::size_t i = 0; i < end; ++i) hidden = layer(i, hidden);
    if (step_.shown_layer()) return step_.finish(attention(end, attention_input(end, hidden)));
    return step_.finish(role_ == Role::kPrefill ? kNone : head(step_.rows_for_head(tokens_, hidden)));
  }

 private:
  /// Queries or keys (B, T, heads * D) as heads (B, heads, T, D), after their norm.
  TensorId heads(TensorId projected, std::int64_t n, const NormWeights& weights) {
    if (!weights.is_there()) return step_.split_heads(projected, n);
    const bool of_all = weights.weight.count == n * std::int64_t{facts_.head_dim};
    if (of_all && !weights.each_head) return step_.split_heads(norm(projected, weights), n);
    if (!g_.status().ok()) return kNone;
    const graph::Shape shape = g_.tensor(projected).shape;
    const TensorId apart = g_.reshape(projected, {shape[0], shape[1], n, facts_.head_dim});
    if (!weights.each_head) return g_.transpose(norm(apart, weights), {0, 2, 1, 3});
    const TensorId normed = g_.reshape(norm(apart, kNone, kNone), {shape[0], shape[1], n * facts_.head_dim});
    return step_.split_heads(g_.add(Op::mul, {normed, step_.vector(weights.weight)}), n);
  }

  /// What a layer's attention takes of the hidden state.
  TensorId attention_input(std::size_t index, TensorId hidden) {
    const DecoderWeights::Layer& weights = weights_.layers[index];
    if (config_.family.residuals == Residuals::kBehind) return hidden;
    return norm(hidden, weights.second_norm.is_there() ? weights.second_norm : weights.attention_norm);
  }

  /// What attention adds to the hidden state, or what it weighs, where the step is for that of this layer. Steps that encode have no
  /// caches: each takes a whole text.
  TensorId attention(std::size_t index, TensorId input) {
    const DecoderWeights::Layer& weights = weights_.layers[index];
    const LayerConfig& layer = config_.layers[index];
    const bool cached = !encodes(role_), shown = step_.shown_layer() == index;
    const TensorId keys = cached ? step_.keys(index) : kNone, values = cached ? step_.values(index) : kNone;
    const TensorId projected_query = linear(input, weights.query), projected_key = linear(input, weights.key), projected_value = shown ? kNone : linear(input, weights.value);
    TensorId query = heads(projected_query, facts_.n_heads, weights.query_norm), key = heads(projected_key, facts_.n_kv_heads, weights.key_norm);
    const TensorId value = shown ? kNone : step_.split_heads(projected_value, facts_.n_kv_heads);
    if (layer.rope) {
      graph::RopeAttributes rope = config_.rope;
      rope.theta = layer.theta;
      rope.max_position = n_ctx_;
      if (!layer.scaled) rope.attention_factor = 1;
      const TensorId factors = layer.scaled ? rope_factors_ : kNone;
      query = g_.add(Op::rope, {query, tokens_.positions, factors}, rope);
      key = g_.add(Op::rope, {key, tokens_.positions, factors}, rope);
    }
    const bool ring = cached && g_.status().ok() && g_.tensor(keys).shape[2] < n_ctx_;
    if (cached) g_.add(Op::kv_write, {keys, key, tokens_.start, tokens_.count}, graph::KvWriteAttributes{ring});
    if (cached) g_.add(Op::kv_write, {values, value, tokens_.start, tokens_.count}, graph::KvWriteAttributes{ring});
    graph::AttentionAttributes attributes;
    attributes.ring = ring;
    attributes.causal = true;
    attributes.scale = config_.attention_scale;
    attributes.softcap = config_.attention_softcap;
    if (layer.window > 0 && layer.window < session_ctx_) attributes.window_back = layer.window - 1;
    const TensorId key_distances = distances(weights.key_distances);
    if (shown) return g_.add(Op::attention_weights, {query, key, tokens_.start, tokens_.lengths, kNone, slopes_, kNone, key_distances, step_.vector(weights.sinks)}, attributes);
    const TensorId attended = g_.add(Op::attention, {query, cached ? keys : key, cached ? values : value, tokens_.start, tokens_.lengths, kNone, slopes_, kNone, key_distances, distances(weights.value_distances), step_.vector(weights.sinks)}, attributes);
    return scaled(norm(linear(step_.merge_heads(attended), weights.output), weights.attention_post_norm), config_.residual_scale);
  }

  TensorId distances(const WeightSlice& slice) {
    const TensorId values = step_.vector(slice);
    return values == kNone || !g_.status().ok() ? kNone : g_.reshape(values, {slice.count / facts_.head_dim, facts_.head_dim});
  }

  graph::GluAttributes glu() const { return {config_.family.activation, config_.family.glu_limit, config_.family.glu_up_bias}; }

  /// What a network makes; what its gate lets through is multiplied by `share`, if there is one.
  TensorId network(const DecoderWeights::Layer& weights, TensorId input, TensorId share = kNone) {
    if (!weights.gate.is_there()) return linear(linear(input, weights.up, config_.family.activation), weights.down);
    const TensorId gate = linear(input, weights.gate), up = linear(input, weights.up), inner = g_.add(Op::glu, {gate, up}, glu());
    return linear(share == kNone ? inner : g_.add(Op::mul, {inner, share}), weights.down);
  }

  /// The sum of what a token's experts make, each times its weight.
  TensorId experts(const DecoderWeights::Layer& weights, TensorId input) {
    const ExpertsConfig& config = config_.experts;
    g_.add(Op::route, {linear(input, weights.router)}, graph::RouteAttributes{config.used, config.normalize});
    if (!g_.status().ok()) return kNone;
    const TensorId chosen = g_.last_outputs()[0], shares = g_.last_outputs()[1];
    const auto of_experts = [&](TensorId x, const LinearWeights& linear) {
      return g_.add(Op::expert_linear, {x, step_.matrix(linear.weight), chosen, step_.vector(linear.bias)}, graph::ExpertAttributes{config.n, {}});
    };
    const TensorId gate = of_experts(input, weights.expert_gate), up = of_experts(input, weights.expert_up);
    return g_.add(Op::weighted_sum, {of_experts(g_.add(Op::glu, {gate, up}, glu()), weights.expert_down), shares});
  }

  /// `residual` with what the layer's network, its experts and the shared one among them add to it.
  TensorId feed_forward(const DecoderWeights::Layer& weights, TensorId input, TensorId residual) {
    const bool has_experts = weights.router.is_there();
    // The shared one has its share before its last linear, which adds to the residual then; no family that has one scales or norms it.
    if (has_experts && weights.gate.is_there()) residual = g_.add(Op::add, {network(weights, input, linear(input, weights.shared_router, graph::Activation::kSigmoid)), residual});
    const TensorId made = has_experts ? experts(weights, input) : network(weights, input);
    return g_.add(Op::add, {scaled(norm(made, weights.ffn_post_norm), config_.residual_scale), residual});
  }

  TensorId layer(std::size_t index, TensorId hidden) {
    const DecoderWeights::Layer& weights = weights_.layers[index];
    if (config_.family.residuals == Residuals::kBehind) {
      const TensorId attended = norm(g_.add(Op::add, {attention(index, hidden), hidden}), weights.attention_norm);
      return norm(feed_forward(weights, attended, attended), weights.ffn_norm);
    }
    const TensorId normed = norm(hidden, weights.attention_norm);
    const TensorId attended = attention(index, weights.second_norm.is_there() ? norm(hidden, weights.second_norm) : normed);
    // Without a second norm, where there may be one, both branches take the first one's output.
    const bool parallel = config_.family.residuals == Residuals::kParallel || (config_.family.ffn_norm == Presence::kIfThere && !weights.ffn_norm.is_there());
    const TensorId after_attention = g_.add(Op::add, {attended, hidden});
    if (!parallel) return feed_forward(weights, norm(after_attention, weights.ffn_norm), after_attention);
    const TensorId input = weights.ffn_norm.is_there() ? norm(hidden, weights.ffn_norm) : normed;
    return feed_forward(weights, input, after_attention);
  }

  TensorId head(TensorId hidden) {
    TensorId logits = scaled(linear(norm(hidden, weights_.output_norm), weights_.output), config_.logit_scale);
    if (config_.final_softcap == 0) return logits;
    return scaled(g_.add(Op::tanh, {scaled(logits, 1 / config_.final_softcap)}), config_.final_softcap);
  }

  const DecoderConfig& config_;
  const NetworkFacts& facts_;
  const DecoderWeights& weights_;
  Role role_;
  std::int64_t n_ctx_, session_ctx_;
  StepBuilder::Tokens tokens_;
  TensorId rope_factors_ = kNone, slopes_ = kNone;
};

}  // namespace

Network make_decoder(DecoderConfig config, DecoderWeights weights, std::vector<WeightBlock> blocks) {
  const NetworkFacts& facts = config.facts;
  Network network;
  network.facts = facts;
  if (weights.positions.is_there()) network.positions_end = facts.context;
  network.blocks = blocks;
  for (std::uint32_t i = 0; i < facts.n_layers; ++i) {
    const std::int64_t window = config.layers[i].window;
    network.caches.push_back({fmt::format("layer {}", i), facts.n_kv_heads, facts.head_dim, facts.head_dim, window > 0 ? CacheExtent::kWindow : CacheExtent::kContext, window});
  }
  network.roles = {{Role::kPrefill}, {Role::kPrefillAndSample}, {Role::kDecode}, {Role::kLogits, network.facts.n_vocab}, attention_role(Role::kAttention, facts.n_heads, facts.n_layers)};
  const std::int64_t heads = std::int64_t{facts.n_heads} + 2 * std::int64_t{facts.n_kv_heads};
  network.widest_row = std::max({std::int64_t{facts.width}, heads * facts.head_dim, 2 * std::int64_t{facts.ffn}, 2 * std::int64_t{config.experts.used} * config.experts.ffn});
  auto decoder = std::make_shared<const Decoder>(Decoder{std::move(config), std::move(weights), std::move(blocks), network.caches});
  network.build = [decoder](Role role, std::int64_t rows, const StepPlaces& places) { return Builder(*decoder, role, rows, places).build(); };
  return network;
}

}  // namespace rondo::models
