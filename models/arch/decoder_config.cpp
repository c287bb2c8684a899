// A decoder's hyper-parameters from the keys of a GGUF file.
#include <algorithm>
#include <cmath>
#include <span>

#include "models/arch/decoder.h"
#include "models/arch/keys.h"
#include "models/printable.h"
#include "models/yarn.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using Keys = ArchitectureKeys;

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

/// Linear and yarn scaling become frequency factors; long rope has factors in the file.
Status read_rope_scaling(const Keys& keys, DecoderConfig& config) {
  RONDO_ASSIGN(const std::string_view type, keys.string_or("rope.scaling.type", "linear"));
  double factor = 0, attention_factor = 1;
  RONDO_TRY(keys.read_positive("rope.scale_linear", factor, true));
  RONDO_TRY(keys.read_positive("rope.scaling.factor", factor, true));
  RONDO_TRY(keys.read_positive("rope.scaling.attn_factor", attention_factor));
  RONDO_ASSIGN(config.original_context, keys.u32_or("rope.scaling.original_context_length", config.facts.context));
  config.rope.attention_factor = attention_factor;
  for (const auto& [key, usual] : {std::pair{"rope.scaling.yarn_ext_factor", 1.0}, std::pair{"rope.scaling.yarn_attn_factor", 1.0}, std::pair{"rope.scaling.yarn_beta_fast", 32.0},
                                   std::pair{"rope.scaling.yarn_beta_slow", 1.0}}) {
    double value = usual;
    RONDO_TRY(keys.read_positive(key, value));
    if (value != usual) return keys.unsupported(key, fmt::format(" is {} instead of {}, which is not there yet", value, usual));
  }
  if (type == "none" || type == "longrope") return {};
  if (type != "linear" && type != "yarn") return keys.unsupported("rope.scaling.type", fmt::format(" is '{}', which is not there yet (none, linear, yarn and longrope are)", printable(type)));
  if (factor == 0 || factor == 1) return {};
  if (type == "linear") {
    config.rope_factors.assign(static_cast<std::size_t>(config.rope.dimensions / 2), static_cast<float>(factor));
    return {};
  }
  if (config.original_context == 0) return keys.corrupt("rope.scaling.original_context_length", "is 0 but must be positive");
  config.rope_factors = yarn_factors({.factor = factor, .original_context = static_cast<double>(config.original_context)}, config.rope.dimensions, config.rope.theta);
  config.rope.attention_factor *= yarn_attention_factor(factor);
  return {};
}

Status read_rope(const Keys& keys, DecoderConfig& config) {
  config.rope.style = config.family.rope_style;
  RONDO_TRY(keys.read_positive("rope.freq_base", config.rope.theta));
  const std::uint32_t head_dim = config.facts.head_dim;
  RONDO_ASSIGN(const std::uint32_t dimensions, keys.u32_or("rope.dimension_count", head_dim));
  if (dimensions < 2 || dimensions > head_dim || dimensions % 2 != 0) {
    return keys.corrupt("rope.dimension_count", fmt::format("is {} but must be even and in [2, {}]", dimensions, head_dim));
  }
  config.rope.dimensions = dimensions;
  return read_rope_scaling(keys, config);
}

/// A tensor of frequency factors, if it is there.
Status read_factors(const GgufFile& file, const ByteSource& source, const char* name, std::int64_t dimensions, std::vector<float>& factors) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (!tensor) return {};
  const auto expected = static_cast<std::uint64_t>(dimensions / 2);
  if (tensor->type != GgmlType::kF32 || tensor->n_dims != 1 || tensor->dims[0] != expected) {
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' must be {} values of f32", file.name(), name, expected));
  }
  factors.resize(expected);
  RONDO_TRY(source.read(tensor->offset_bytes, std::as_writable_bytes(std::span(factors))));
  for (const float factor : factors) {
    if (factor > 0 && std::isfinite(factor)) continue;
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' holds {} but must be positive", file.name(), name, factor));
  }
  return {};
}

/// Which layers have a window, where there is one: the file says it of each, or that every so many have none.
Result<std::vector<bool>> read_window_layers(const Keys& keys, const DecoderConfig& config) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  std::vector<bool> windowed(config.facts.n_layers);
  if (keys.is_array(kPattern)) {
    RONDO_ASSIGN(const std::span<const std::uint8_t> pattern, keys.booleans(kPattern));
    if (pattern.size() != windowed.size()) return keys.corrupt(kPattern, fmt::format("has {} entries but there are {} layers", pattern.size(), windowed.size()));
    std::transform(pattern.begin(), pattern.end(), windowed.begin(), [](std::uint8_t entry) { return entry != 0; });
    return windowed;
  }
  RONDO_ASSIGN(const std::uint32_t period, keys.u32_or(kPattern, config.family.window_period));
  for (std::uint32_t i = 0; i < windowed.size(); ++i) windowed[i] = period == 0 || i % period + 1 < period;
  return windowed;
}

/// What each layer sees, and how it is told positions.
Status read_layers(const Keys& keys, DecoderConfig& config) {
  const Family& family = config.family;
  RONDO_ASSIGN(const std::uint32_t window, keys.u32_or("attention.sliding_window", family.default_window));
  RONDO_ASSIGN(const std::vector<bool> window_layers, read_window_layers(keys, config));
  if (window > 1u << 24) return keys.corrupt("attention.sliding_window", fmt::format("is {} but must be at most {}", window, 1u << 24));
  double window_theta = family.window_theta != 0 ? family.window_theta : config.rope.theta;
  RONDO_TRY(keys.read_positive("rope.freq_base_swa", window_theta));
  for (std::uint32_t i = 0; i < config.facts.n_layers; ++i) {
    LayerConfig layer;
    const bool windowed = window > 0 && window_layers[i];
    if (windowed) layer.window = window;
    layer.rope = family.positions == Positions::kRope && (family.no_rope_period == 0 || (i + 1) % family.no_rope_period != 0) && (windowed || !family.rope_in_windows_only);
    layer.theta = windowed ? window_theta : config.rope.theta;
    layer.scaled = !windowed || !family.scales_full_layers_only;
    config.layers.push_back(layer);
  }
  return {};
}

Status read_scales(const Keys& keys, DecoderConfig& config) {
  const Family& family = config.family;
  const NetworkFacts& facts = config.facts;
  if (family.scales_embedding) config.embedding_scale = std::sqrt(static_cast<float>(facts.width));
  if (facts.n_layers == family.layers_of_wide_scale) config.attention_scale = 1 / std::sqrt(static_cast<double>(facts.width / facts.n_heads));
  config.attention_softcap = family.default_attention_softcap;
  config.final_softcap = family.default_final_softcap;
  if (family.positions == Positions::kAlibi) config.max_alibi_bias = 8;
  RONDO_TRY(keys.read_positive("embedding_scale", config.embedding_scale));
  RONDO_TRY(keys.read_positive("residual_scale", config.residual_scale));
  RONDO_TRY(keys.read_positive("logit_scale", config.logit_scale));
  RONDO_TRY(keys.read_positive("attention.scale", config.attention_scale, true));
  RONDO_TRY(keys.read_positive("attn_logit_softcapping", config.attention_softcap, true));
  RONDO_TRY(keys.read_positive("final_logit_softcapping", config.final_softcap, true));
  RONDO_TRY(keys.read_positive("attention.max_alibi_bias", config.max_alibi_bias, true));
  if (family.divides_logits) config.logit_scale = 1 / config.logit_scale;
  double clamp = 0;
  RONDO_TRY(keys.read_positive("attention.clamp_kqv", clamp, true));
  if (clamp > 0) return keys.unsupported("attention.clamp_kqv", fmt::format(" is {}, which is not there yet", clamp));
  return {};
}

Status read_experts(const Keys& keys, DecoderConfig& config) {
  ExpertsConfig& experts = config.experts;
  RONDO_ASSIGN(experts.n, keys.u32_or("expert_count", 0));
  if (experts.n > 0 || config.family.has_experts) RONDO_TRY(keys.read_count("expert_count", 1024, experts.n));
  RONDO_ASSIGN(experts.used, keys.u32_or("expert_used_count", 0));
  if (experts.n == 0 && experts.used == 0) return {};
  if (experts.used < 1 || experts.used > experts.n) return keys.corrupt("expert_used_count", fmt::format("is {} of {} experts", experts.used, experts.n));
  experts.ffn = config.facts.ffn;
  if (keys.has("expert_feed_forward_length")) RONDO_TRY(keys.read_count("expert_feed_forward_length", 1 << 22, experts.ffn));
  experts.shared_ffn = config.facts.ffn;
  if (keys.has("expert_shared_feed_forward_length")) RONDO_TRY(keys.read_count("expert_shared_feed_forward_length", 1 << 22, experts.shared_ffn));
  RONDO_ASSIGN(experts.normalize, keys.boolean_or("expert_weights_norm", config.family.normalizes_experts));
  // 1: softmax over all; 3: over those chosen, which is the same as what normalised ones of 1 are.
  RONDO_ASSIGN(const std::uint32_t gating, keys.u32_or("expert_gating_func", 0));
  if (gating != 0 && gating != 1 && gating != 3) return keys.unsupported("expert_gating_func", fmt::format(" is {}, which is not there yet (softmax, 1 and 3, is)", gating));
  if (gating == 3) experts.normalize = true;
  double scale = 1;
  RONDO_TRY(keys.read_positive("expert_weights_scale", scale, true));
  if (scale != 1 && scale != 0) return keys.unsupported("expert_weights_scale", fmt::format(" is {}, which is not there yet", scale));
  for (const auto& [key, most] : {std::pair{"expert_group_count", 1u}, std::pair{"leading_dense_block_count", 0u}}) {
    RONDO_ASSIGN(const std::uint32_t value, keys.u32_or(key, 0));
    if (value > most) return keys.unsupported(key, fmt::format(" is {}, which is not there yet", value));
  }
  return {};
}

Status read_facts(const GgufFile& file, const Keys& keys, NetworkFacts& facts) {
  RONDO_TRY(read_name(file, facts));
  RONDO_TRY(keys.read_count("block_count", 4096, facts.n_layers));
  RONDO_TRY(keys.read_count("embedding_length", 1 << 20, facts.width));
  RONDO_TRY(keys.read_count("attention.head_count", 1 << 14, facts.n_heads));
  // Those whose networks are experts may say only how wide these are.
  const char* ffn = keys.has("feed_forward_length") || !keys.has("expert_feed_forward_length") ? "feed_forward_length" : "expert_feed_forward_length";
  RONDO_TRY(keys.read_count(ffn, 1 << 22, facts.ffn));
  RONDO_TRY(keys.read_count("context_length", 1 << 24, facts.context));
  RONDO_TRY(read_heads(keys, facts));
  return read_vocabulary(file, "token_embd.weight", facts.n_vocab);
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const GgufFile& file, const ByteSource& source, const Family& family) {
  DecoderConfig config;
  config.family = family;
  config.facts.architecture = family.name;
  const Keys keys(file, family.name);
  RONDO_TRY(read_facts(file, keys, config.facts));
  const char* epsilon = family.norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  for (const char* needed : {epsilon, family.needed_key ? family.needed_key : epsilon}) {
    if (!keys.has(needed)) return Status(StatusCode::kNotFound, fmt::format("{}: metadata key '{}' is missing", file.name(), keys.name(needed)));
  }
  RONDO_TRY(keys.read_positive(epsilon, config.epsilon));
  if (config.epsilon >= 1) return keys.corrupt(epsilon, fmt::format("is {} but must be in (0, 1)", config.epsilon));
  RONDO_ASSIGN(const float norm_weight_offset, file.f32_or("rondo.norm_weight_offset", 0));
  if (!std::isfinite(norm_weight_offset) || (norm_weight_offset != 0 && family.norm != NormKind::kRms)) return file.key_error("rondo.norm_weight_offset", fmt::format("is {} for norms that take none", norm_weight_offset));
  config.norm_weight_offset = static_cast<double>(norm_weight_offset);
  if (family.positions == Positions::kRope) {
    RONDO_ASSIGN(const std::string_view style, file.string_or("rondo.rope_style", ""));
    if (style == "half") config.family.rope_style = graph::RopeStyle::kHalf;
    else if (!style.empty()) return file.key_error("rondo.rope_style", fmt::format("is '{}' but must be 'half'", printable(style)));
    RONDO_TRY(read_rope(keys, config));
    const std::int64_t dimensions = config.rope.dimensions;
    std::vector<float> factors;
    RONDO_TRY(read_factors(file, source, "rope_freqs.weight", dimensions, factors));
    for (std::size_t i = 0; i < std::min(factors.size(), config.rope_factors.size()); ++i) factors[i] *= config.rope_factors[i];
    if (!factors.empty()) config.rope_factors = std::move(factors);
    RONDO_TRY(read_factors(file, source, "rope_factors_short.weight", dimensions, config.rope_factors));
    RONDO_TRY(read_factors(file, source, "rope_factors_long.weight", dimensions, config.long_rope_factors));
  }
  if (family.positions == Positions::kShaw) {
    std::uint32_t farthest = 0;
    RONDO_TRY(keys.read_count("attention.max_distance", 1 << 15, farthest));
    config.farthest = farthest;
  }
  RONDO_TRY(read_experts(keys, config));
  RONDO_TRY(read_layers(keys, config));
  RONDO_TRY(read_scales(keys, config));
  if (config.family.may_be_serial) {
    RONDO_ASSIGN(const bool parallel, keys.boolean_or("use_parallel_residual", true));
    config.family.residuals = parallel ? Residuals::kParallel : Residuals::kSerial;
  }
  RONDO_ASSIGN(const bool causal, keys.boolean_or("attention.causal", true));
  if (!causal) return keys.unsupported("attention.causal", " is false, which is not there yet");
  return config;
}

}  // namespace rondo::models
