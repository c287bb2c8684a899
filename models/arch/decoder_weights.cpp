// Where a GGUF file has a decoder's weights.
#include <algorithm>
#include <iterator>

#include "models/arch/decoder.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

/// With what decoders alone have.
class Finder : public LayerFinder {
 public:
  Finder(WeightFinder& find, const DecoderConfig& config, const GgufFile& file, std::string prefix)
      : LayerFinder(find, std::move(prefix), config.family.norm, config.family.biases == Biases::kNorms || config.family.biases == Biases::kAll), config_(config), file_(file) {}

  /// Norms of queries and of keys. Those of one head's elements that have no bias lie together, as fusion needs them.
  Status head_norms(NormWeights& query, NormWeights& key) {
    const auto is_of_a_head = [&](const char* name) {
      const GgufTensor* tensor = file_.find_tensor(prefix_ + name + ".weight");
      return tensor && tensor->n_dims == 1 && tensor->dims[0] == config_.facts.head_dim;
    };
    for (const auto& [name, other] : {std::pair{"attn_q_norm", "attn_k_norm"}, std::pair{"attn_k_norm", "attn_q_norm"}}) {
      if (has(std::string(other) + ".weight") && !has(std::string(name) + ".weight")) return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}{}.weight' is missing", file_.name(), prefix_, name));
    }
    const std::int64_t head_dim = config_.facts.head_dim;
    if (config_.family.norm == NormKind::kRms && is_of_a_head("attn_q_norm") && is_of_a_head("attn_k_norm")) {
      const WantedWeight wanted[] = {{prefix_ + "attn_q_norm.weight", head_dim, &query.weight}, {prefix_ + "attn_k_norm.weight", head_dim, &key.weight}};
      return find_.vectors(wanted);
    }
    RONDO_TRY(head_norm("attn_q_norm", config_.facts.n_heads, query));
    return head_norm("attn_k_norm", config_.facts.n_kv_heads, key);
  }

  /// A norm of queries or keys: of one head's elements for all, of all heads' together, or for each head of its own.
  Status head_norm(const std::string& name, std::int64_t heads, NormWeights& wanted) {
    const GgufTensor* tensor = file_.find_tensor(prefix_ + name + ".weight");
    if (!tensor) return config_.family.head_norms ? norm(name, config_.facts.head_dim, wanted, Presence::kAlways) : Status();
    const std::int64_t head_dim = config_.facts.head_dim;
    if (tensor->n_dims != 1) {
      wanted.each_head = true;
      return find_.vector({prefix_ + name + ".weight", heads * head_dim, &wanted.weight, heads});
    }
    const bool whole = tensor->dims[0] != static_cast<std::uint64_t>(head_dim);
    return norm(name, whole ? heads * head_dim : head_dim, wanted);
  }

  /// A score of each head that no key has (Xiao et al. 2024).
  Status sinks(WeightSlice& wanted, bool needed) {
    if (!needed && !has("attn_sinks.weight")) return {};
    return find_.vector({prefix_ + "attn_sinks.weight", config_.facts.n_heads, &wanted});
  }

  /// Linears of all experts, of one input: NAME_exps has them stacked, or each expert has a tensor NAME.E, as old files do.
  Status expert_linears(std::initializer_list<Part> parts, std::int64_t columns, bool biased) {
    const std::int64_t n = config_.experts.n;
    const bool stacked = !has(std::string(parts.begin()->name) + ".0.weight");
    std::vector<WantedWeight> matrices, biases;
    std::vector<WeightSlice> apart(parts.size() * static_cast<std::size_t>(n));  // each expert's own, part after part
    for (const Part& part : parts) {
      const std::string name = prefix_ + part.name;
      biases.push_back({name + "_exps.bias", n * part.rows, &part.linear->bias, n});
      if (stacked) matrices.push_back({name + "_exps.weight", n * part.rows, &part.linear->weight, n});
      for (std::int64_t i = 0; !stacked && i < n; ++i) matrices.push_back({fmt::format("{}.{}.weight", name, i), part.rows, &apart[matrices.size()]});
    }
    RONDO_TRY(find_.matrices(matrices, columns));
    const WeightSlice* first = apart.data();
    for (const Part& part : parts) {
      if (stacked) break;
      const WeightSlice& last = first[n - 1];
      if (first->block != last.block) return Status(StatusCode::kUnsupported, fmt::format("{}: tensors '{}{}.*.weight' are of several types, which is not there", file_.name(), prefix_, part.name));
      part.linear->weight = {first->block, first->first, n * part.rows};
      first += n;
    }
    biased = biased || std::any_of(biases.begin(), biases.end(), [&](const WantedWeight& bias) { return find_.has(bias.tensor); });
    return biased ? find_.vectors(biases) : Status();
  }

 private:
  const DecoderConfig& config_;
  const GgufFile& file_;
};

/// The feed-forward network of a layer, or its experts.
Status find_network(Finder& find, const DecoderConfig& config, DecoderWeights::Layer& layer) {
  const ExpertsConfig& experts = config.experts;
  const bool all_biases = config.family.biases == Biases::kAll;
  const std::int64_t width = config.facts.width;
  std::int64_t ffn = config.facts.ffn;
  if (experts.n > 0) {
    RONDO_TRY(find.linear("ffn_gate_inp", experts.n, width, layer.router, all_biases));
    RONDO_TRY(find.expert_linears({{"ffn_gate", experts.ffn, &layer.expert_gate}, {"ffn_up", experts.ffn, &layer.expert_up}}, width, all_biases));
    RONDO_TRY(find.expert_linears({{"ffn_down", width, &layer.expert_down}}, experts.ffn, all_biases));
    if (!find.has("ffn_gate_shexp.weight")) return {};
    ffn = experts.shared_ffn;
    RONDO_TRY(find.linear("ffn_gate_inp_shexp", 1, width, layer.shared_router, false));
    RONDO_TRY(find.linears(nullptr, {{"ffn_gate_shexp", ffn, &layer.gate}, {"ffn_up_shexp", ffn, &layer.up}}, width));
    return find.linear("ffn_down_shexp", width, ffn, layer.down, false);
  }
  if (!config.family.gated) RONDO_TRY(find.linear("ffn_up", ffn, width, layer.up, all_biases));
  else if (find.has("ffn_gate.weight")) RONDO_TRY(find.linears(nullptr, {{"ffn_gate", ffn, &layer.gate}, {"ffn_up", ffn, &layer.up}}, width));
  else RONDO_TRY(find.linears("ffn_up", {{"ffn_gate", ffn, &layer.gate}, {"ffn_up", ffn, &layer.up}}, width));
  return find.linear("ffn_down", width, ffn, layer.down, all_biases);
}

Status find_layer(Finder& find, const DecoderConfig& config, DecoderWeights::Layer& layer) {
  const NetworkFacts& facts = config.facts;
  const std::int64_t width = facts.width;
  const std::int64_t query_rows = std::int64_t{facts.n_heads} * facts.head_dim, kv_rows = std::int64_t{facts.n_kv_heads} * facts.head_dim;
  const Family& family = config.family;
  const auto if_it_has = [](bool has) { return has ? Presence::kAlways : Presence::kNever; };
  const bool all_biases = family.biases == Biases::kAll;
  RONDO_TRY(find.norm("attn_norm", width, layer.attention_norm, if_it_has(family.norms_before)));
  RONDO_TRY(find.norm("attn_norm_2", width, layer.second_norm));
  RONDO_TRY(find.linears("attn_qkv", {{"attn_q", query_rows, &layer.query}, {"attn_k", kv_rows, &layer.key}, {"attn_v", kv_rows, &layer.value}}, width, all_biases || family.biases == Biases::kQueryKeyValue));
  RONDO_TRY(find.head_norms(layer.query_norm, layer.key_norm));
  RONDO_TRY(find.linear("attn_output", width, query_rows, layer.output, all_biases));
  RONDO_TRY(find.sinks(layer.sinks, family.has_sinks));
  if (family.positions == Positions::kShaw) {
    RONDO_TRY(find.table("attn_distance_k.weight", 2 * config.farthest + 1, facts.head_dim, layer.key_distances));
    RONDO_TRY(find.table("attn_distance_v.weight", 2 * config.farthest + 1, facts.head_dim, layer.value_distances));
  }
  RONDO_TRY(find.norm("post_attention_norm", width, layer.attention_post_norm, if_it_has(family.norms_behind)));
  RONDO_TRY(find.norm(family.ffn_norm_name, width, layer.ffn_norm, family.ffn_norm));
  RONDO_TRY(find_network(find, config, layer));
  return find.norm("post_ffw_norm", width, layer.ffn_post_norm, if_it_has(family.norms_behind));
}

/// Factors of RoPE, which are read apart, and what old files have and nobody needs.
bool is_known(std::string_view tensor) {
  return tensor == "rope_freqs.weight" || tensor == "rope_factors_short.weight" || tensor == "rope_factors_long.weight" || tensor.ends_with(".attn_rot_embd.weight");
}

}  // namespace

Result<Network> open_decoder(const GgufFile& file, DecoderConfig config) {
  WeightFinder find(file);
  DecoderWeights weights;
  const NetworkFacts& facts = config.facts;
  Finder around(find, config, file, "");
  RONDO_TRY(find.matrix({"token_embd.weight", facts.n_vocab, &weights.embedding}, facts.width));
  RONDO_TRY(around.norm("token_embd_norm", facts.width, weights.embedding_norm, config.family.embedding_norm ? Presence::kAlways : Presence::kNever));
  const bool learned = config.family.positions == Positions::kLearned || (config.family.positions == Positions::kAlibi && around.has("position_embd.weight"));
  if (learned) RONDO_TRY(find.matrix({"position_embd.weight", facts.context, &weights.positions}, facts.width));
  for (std::uint32_t i = 0; i < facts.n_layers; ++i) {
    Finder layer(find, config, file, fmt::format("blk.{}.", i));
    RONDO_TRY(find_layer(layer, config, weights.layers.emplace_back()));
  }
  RONDO_TRY(around.norm("output_norm", facts.width, weights.output_norm, config.family.output_norm));
  weights.output.weight = weights.embedding;  // tied unless the file has a head of its own
  if (around.has("output.weight")) RONDO_TRY(around.linear("output", facts.n_vocab, facts.width, weights.output, false));
  for (const GgufTensor& tensor : file.tensors()) {
    if (find.was_found(tensor.name) || is_known(tensor.name)) continue;
    return Status(StatusCode::kUnsupported, fmt::format("{}: tensor '{}' is none that a {} has, or not there yet", file.name(), printable(tensor.name), facts.architecture));
  }
  return make_decoder(std::move(config), std::move(weights), find.take_blocks());
}

}  // namespace rondo::models
