#include "tests/support/family_gguf.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "models/formats/gguf.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/small_vocabulary.h"

namespace rondo::tests {

namespace {

constexpr std::uint32_t kFfn = 104, kVocabulary = 307;

constexpr FamilyFile kFiles[] = {
    {.name = "llama", .architecture = "llama", .head = true},
    {.name = "llama-3.1", .architecture = "llama", .theta = 500000, .rope_factors = 1},
    {.name = "llama-linear", .architecture = "llama", .scaling = "linear", .scaling_factor = 4},
    {.name = "llama-yarn", .architecture = "llama", .scaling = "yarn", .scaling_factor = 4, .original_context = 24},
    {.name = "llama-biases", .architecture = "llama", .qkv_bias = true, .output_bias = true},
    {.name = "qwen2", .architecture = "qwen2", .qkv_bias = true, .theta = 1000000},
    {.name = "qwen3", .architecture = "qwen3", .head_norm = 1, .head_dim = 24, .theta = 1000000},
    {.name = "gemma", .architecture = "gemma", .n_kv_heads = 1, .head_dim = 32},
    {.name = "gemma2", .architecture = "gemma2", .norms_behind = true, .n_layers = 3, .head_dim = 24, .window = 9, .attention_softcap = 5, .final_softcap = 10},
    {.name = "gemma3", .architecture = "gemma3", .head_norm = 1, .norms_behind = true, .n_layers = 7, .head_dim = 24, .window = 9, .theta = 1000000, .scaling = "linear", .scaling_factor = 8},
    {.name = "phi2", .architecture = "phi2", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .ffn_norm = false, .head = true, .head_bias = true, .n_kv_heads = 6, .rotated = 8},
    {.name = "phi3", .architecture = "phi3", .fused_qkv = true, .fused_gate = true, .head = true},
    {.name = "phi3-long", .architecture = "phi3", .fused_qkv = true, .fused_gate = true, .head = true, .original_context = 4096, .rope_factors = 2},
    {.name = "phi3-longer", .architecture = "phi3", .fused_qkv = true, .fused_gate = true, .head = true, .original_context = 16, .rope_factors = 2},
    {.name = "olmo2", .architecture = "olmo2", .head_norm = 2, .norms_before = false, .norms_behind = true, .head = true},
    {.name = "olmo2-windows", .architecture = "olmo2", .head_norm = 2, .norms_before = false, .norms_behind = true, .head = true, .n_layers = 5, .window = 9, .scaling = "yarn", .scaling_factor = 4, .original_context = 24},
    {.name = "granite", .architecture = "granite", .embedding_scale = 3, .residual_scale = 0.4f, .logit_scale = 5, .attention_scale = 0.15f},
    {.name = "command-r", .architecture = "command-r", .layer_norm = true, .ffn_norm = false, .logit_scale = 0.3f},
    {.name = "cohere2", .architecture = "cohere2", .layer_norm = true, .ffn_norm = false, .n_layers = 5, .window = 9, .logit_scale = 0.3f},
    {.name = "smollm3", .architecture = "smollm3", .n_layers = 5},
    {.name = "starcoder2", .architecture = "starcoder2", .layer_norm = true, .norm_bias = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true},
    {.name = "stablelm", .architecture = "stablelm", .layer_norm = true, .norm_bias = true, .qkv_bias = true, .head = true, .rotated = 4},
    {.name = "stablelm-parallel", .architecture = "stablelm", .layer_norm = true, .norm_bias = true, .ffn_norm = false, .head = true, .rotated = 4},
    {.name = "stablelm-heads", .architecture = "stablelm", .layer_norm = true, .norm_bias = true, .head_norm = 3, .ffn_norm = false, .head = true, .rotated = 4},
    {.name = "stablelm-stale-key", .architecture = "stablelm", .layer_norm = true, .norm_bias = true, .head = true, .rotated = 4, .parallel_key = 1},
    {.name = "gpt2", .architecture = "gpt2", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .positions = true, .n_kv_heads = 6},
    {.name = "starcoder", .architecture = "starcoder", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .positions = true, .n_kv_heads = 1},
    {.name = "gptj", .architecture = "gptj", .layer_norm = true, .norm_bias = true, .gated = false, .ffn_bias = true, .ffn_norm = false, .head = true, .head_bias = true, .n_kv_heads = 6, .rotated = 8},
    {.name = "opt", .architecture = "opt", .layer_norm = true, .norm_bias = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .positions = true, .n_kv_heads = 6},
    {.name = "gptneox", .architecture = "gptneox", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .head = true, .n_kv_heads = 6, .rotated = 4, .parallel_key = 1},
    {.name = "gptneox-serial", .architecture = "gptneox", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .head = true, .n_kv_heads = 6, .rotated = 4, .parallel_key = 0},
    {.name = "falcon-7b", .architecture = "falcon", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .gated = false, .ffn_norm = false, .n_kv_heads = 1},
    {.name = "falcon-40b", .architecture = "falcon", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .gated = false, .ffn_norm = false, .second_norm = true, .head = true},
    {.name = "bloom", .architecture = "bloom", .layer_norm = true, .norm_bias = true, .fused_qkv = true, .qkv_bias = true, .output_bias = true, .gated = false, .ffn_bias = true, .embedding_norm = true, .n_kv_heads = 6},
    {.name = "mixtral", .architecture = "llama", .head = true, .n_experts = 5, .experts_used = 2},
    {.name = "qwen3moe", .architecture = "qwen3moe", .head_norm = 1, .head_dim = 24, .theta = 1000000, .n_experts = 7, .experts_used = 3, .expert_ffn = 40},
    {.name = "qwen2moe", .architecture = "qwen2moe", .qkv_bias = true, .head = true, .n_experts = 6, .experts_used = 2, .expert_ffn = 40, .shared_ffn = 72},
    {.name = "olmoe", .architecture = "olmoe", .head_norm = 2, .head = true, .n_kv_heads = 6, .n_experts = 6, .experts_used = 3},
    {.name = "gpt-oss", .architecture = "gpt-oss", .qkv_bias = true, .output_bias = true, .head = true, .n_layers = 3, .head_dim = 32, .window = 9, .theta = 150000, .scaling = "yarn", .scaling_factor = 4,
     .original_context = 24, .n_experts = 6, .experts_used = 3, .expert_ffn = 64, .expert_bias = true, .sinks = true},
    {.name = "mpt", .architecture = "mpt", .layer_norm = true, .fused_qkv = true, .gated = false, .n_kv_heads = 6, .max_alibi_bias = 6},
};

class Maker {
 public:
  Maker(const FamilyFile& family, std::uint32_t seed, const FamilyFault& fault, std::vector<std::string>* names)
      : family_(family), fault_(fault), names_(names), bits_(seed * 2654435761u + 12345) {}

  std::string build() {
    write_keys();
    rondo::testing::write_byte_tokenizer(writer_, kVocabulary);
    matrix("token_embd.weight", kVocabulary, family_.width, 1);
    if (family_.positions) matrix("position_embd.weight", family_.context, family_.width, 1);
    if (family_.embedding_norm) norm("token_embd_norm", family_.width);
    for (std::uint32_t i = 0; i < family_.n_layers; ++i) write_layer("blk." + std::to_string(i) + ".");
    norm("output_norm", family_.width);
    if (family_.head) matrix("output.weight", kVocabulary, family_.width, 1.5f / std::sqrt(static_cast<float>(family_.width)));
    if (family_.head_bias) vector("output.bias", kVocabulary, -0.5f, 0.5f);
    if (family_.rope_factors == 1) vector("rope_freqs.weight", rotated() / 2, 1, 8);
    if (family_.rope_factors == 2) {
      vector("rope_factors_short.weight", rotated() / 2, 1, 2);
      vector("rope_factors_long.weight", rotated() / 2, 1, 30);
    }
    return writer_.build();
  }

 private:
  std::uint32_t rotated() const { return family_.rotated ? family_.rotated : family_.head_dim; }

  /// Writes a key, or leaves it out, or makes it wrong.
  template <typename Write>
  void key(const char* name, const Write& write) {
    const std::string whole = std::string(family_.architecture) + "." + name;
    if (names_) names_->push_back(whole);
    if (whole == fault_.without) return;
    if (whole != fault_.changed_key) return write(whole);
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const bool is_float = is_float_key(name);
    switch (fault_.value) {
      case FamilyFault::Value::kText: writer_.strings(whole, {"wrong"}); break;
      case FamilyFault::Value::kZero: is_float ? writer_.f32(whole, 0) : writer_.u32(whole, 0); break;
      case FamilyFault::Value::kHuge: is_float ? writer_.f32(whole, 3e38f) : writer_.u32(whole, 0xffffffffu); break;
      case FamilyFault::Value::kNegative: is_float ? writer_.f32(whole, -1) : writer_.u32(whole, 0x80000000u); break;
      case FamilyFault::Value::kNan: is_float ? writer_.f32(whole, kNan) : writer_.u32(whole, 7); break;
    }
  }
  void count(const char* name, std::uint32_t value) {
    key(name, [&](const std::string& whole) { writer_.u32(whole, value); });
  }
  void number(const char* name, double value) {
    if (value != 0) key(name, [&](const std::string& whole) { writer_.f32(whole, static_cast<float>(value)); });
  }
  static bool is_float_key(std::string_view name) {
    for (const char* part : {"epsilon", "freq_base", "factor", "softcapping", "_scale", "attention.scale", "max_alibi_bias"}) {
      if (name.find(part) != std::string_view::npos) return true;
    }
    return false;
  }

  void write_keys() {
    writer_.string("general.architecture", family_.architecture);
    count("block_count", family_.n_layers), count("embedding_length", family_.width), count("attention.head_count", family_.n_heads);
    count("attention.head_count_kv", family_.n_kv_heads), count("feed_forward_length", kFfn), count("context_length", family_.context);
    number(family_.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
    if (family_.head_dim * family_.n_heads != family_.width) count("attention.key_length", family_.head_dim), count("attention.value_length", family_.head_dim);
    if (family_.rotated) count("rope.dimension_count", family_.rotated);
    number("rope.freq_base", family_.theta);
    if (family_.n_experts) count("expert_count", family_.n_experts), count("expert_used_count", family_.experts_used);
    if (family_.expert_ffn) count("expert_feed_forward_length", family_.expert_ffn);
    if (family_.shared_ffn) count("expert_shared_feed_forward_length", family_.shared_ffn);
    if (family_.scaling) key("rope.scaling.type", [&](const std::string& whole) { writer_.string(whole, family_.scaling); });
    if (family_.window) count("attention.sliding_window", family_.window);
    if (!family_.window_layers.empty()) {
      std::string entries(family_.window_layers);
      for (char& entry : entries) entry = static_cast<char>(entry - '0');
      key("attention.sliding_window_pattern", [&](const std::string& whole) { writer_.raw_array(whole, static_cast<std::uint32_t>(models::GgufValueType::kBool), entries.size(), entries); });
    }
    if (family_.original_context) count("rope.scaling.original_context_length", family_.original_context);
    if (family_.parallel_key >= 0) key("use_parallel_residual", [&](const std::string& whole) { writer_.boolean(whole, family_.parallel_key == 1); });
    number("rope.scaling.factor", family_.scaling_factor), number("attn_logit_softcapping", family_.attention_softcap), number("final_logit_softcapping", family_.final_softcap);
    number("embedding_scale", family_.embedding_scale), number("residual_scale", family_.residual_scale), number("logit_scale", family_.logit_scale);
    number("attention.scale", family_.attention_scale), number("attention.max_alibi_bias", family_.max_alibi_bias);
  }

  void write_layer(const std::string& prefix) {
    const std::uint32_t width = family_.width, query = family_.n_heads * family_.head_dim, kv = family_.n_kv_heads * family_.head_dim;
    if (family_.norms_before) norm(prefix + "attn_norm", width);
    if (family_.second_norm) norm(prefix + "attn_norm_2", width);
    if (family_.fused_qkv) {
      linear(prefix + "attn_qkv", query + 2 * kv, width, family_.qkv_bias);
    } else {
      linear(prefix + "attn_q", query, width, family_.qkv_bias);
      linear(prefix + "attn_k", kv, width, family_.qkv_bias);
      linear(prefix + "attn_v", kv, width, family_.qkv_bias);
    }
    if (family_.head_norm == 1) vector(prefix + "attn_q_norm.weight", family_.head_dim, 0.6f, 1.6f), vector(prefix + "attn_k_norm.weight", family_.head_dim, 0.6f, 1.6f);
    if (family_.head_norm == 2) vector(prefix + "attn_q_norm.weight", query, 0.6f, 1.6f), vector(prefix + "attn_k_norm.weight", kv, 0.6f, 1.6f);
    if (family_.head_norm == 3) matrix_of_norms(prefix + "attn_q_norm", family_.n_heads), matrix_of_norms(prefix + "attn_k_norm", family_.n_kv_heads);
    linear(prefix + "attn_output", width, query, family_.output_bias);
    if (family_.sinks) vector(prefix + "attn_sinks.weight", family_.n_heads, -1, 3);
    if (family_.norms_behind) norm(prefix + "post_attention_norm", width);
    if (family_.norms_before && family_.ffn_norm) norm(prefix + (family_.sinks ? "post_attention_norm" : "ffn_norm"), width);
    if (family_.n_experts) return write_experts(prefix);
    if (family_.gated && !family_.fused_gate) linear(prefix + "ffn_gate", kFfn, width, false);
    linear(prefix + "ffn_up", family_.fused_gate ? 2 * kFfn : kFfn, width, family_.ffn_bias);
    linear(prefix + "ffn_down", width, kFfn, family_.ffn_bias, has_gelu() ? 0.4f : 2.0f);
    if (family_.norms_behind) vector(prefix + "post_ffw_norm.weight", width, has_gelu() ? 0.1f : 0.6f, has_gelu() ? 0.4f : 1.6f);
  }

  void write_experts(const std::string& prefix) {
    const std::uint32_t width = family_.width, n = family_.n_experts, ffn = family_.expert_ffn ? family_.expert_ffn : kFfn;
    linear(prefix + "ffn_gate_inp", n, width, family_.expert_bias, 4);
    const auto stacked = [&](const char* name, std::uint32_t rows, std::uint32_t columns, float scale) {
      scale /= std::sqrt(static_cast<float>(columns));
      tensor(prefix + name + ".weight", {columns, rows, n}, std::size_t{n} * rows * columns, -scale, scale);
      if (family_.expert_bias) tensor(prefix + name + ".bias", {rows, n}, std::size_t{n} * rows, -0.5f, 0.5f);
    };
    stacked("ffn_gate_exps", ffn, width, family_.expert_bias ? 6 : 2);  // so that some are clamped
    stacked("ffn_up_exps", ffn, width, family_.expert_bias ? 6 : 2);
    stacked("ffn_down_exps", width, ffn, 2);
    if (!family_.shared_ffn) return;
    vector(prefix + "ffn_gate_inp_shexp.weight", width, -0.2f, 0.2f);
    linear(prefix + "ffn_gate_shexp", family_.shared_ffn, width, false);
    linear(prefix + "ffn_up_shexp", family_.shared_ffn, width, false);
    linear(prefix + "ffn_down_shexp", width, family_.shared_ffn, false);
  }

  float next(float low, float high) {
    bits_ ^= bits_ << 13;
    bits_ ^= bits_ >> 17;
    bits_ ^= bits_ << 5;
    return low + (high - low) * (static_cast<float>(bits_ >> 8) * 0x1p-24f);
  }

  std::string floats(std::size_t n, float low, float high) {
    std::vector<float> values(n);
    for (float& value : values) value = next(low, high);
    return {reinterpret_cast<const char*>(values.data()), n * sizeof(float)};
  }

  /// Numbers come in the same order whether a tensor is left out or not.
  void tensor(const std::string& name, const std::vector<std::uint64_t>& dims, std::size_t n, float low, float high) {
    const std::string data = floats(n, low, high);
    if (names_) names_->push_back(name);
    if (name != fault_.without) writer_.tensor(name, dims, models::GgmlType::kF32, data);
  }
  void vector(const std::string& name, std::uint32_t n, float low, float high) { tensor(name, {n}, n, low, high); }
  void matrix(const std::string& name, std::uint32_t rows, std::uint32_t columns, float scale) { tensor(name, {columns, rows}, std::size_t{rows} * columns, -scale, scale); }
  void matrix_of_norms(const std::string& name, std::uint32_t heads) { tensor(name + ".weight", {family_.head_dim, heads}, std::size_t{heads} * family_.head_dim, 0.6f, 1.6f); }
  void norm(const std::string& name, std::uint32_t n) {
    vector(name + ".weight", n, 0.6f, 1.6f);
    if (family_.norm_bias) vector(name + ".bias", n, -0.5f, 0.5f);
  }
  /// llama.cpp takes GELU from a table of f16, so that what comes out of it is off by 2^-11: it is given less weight.
  bool has_gelu() const { return !family_.gated || std::string_view(family_.architecture).starts_with("gemma"); }
  void linear(const std::string& name, std::uint32_t rows, std::uint32_t columns, bool biased, float scale = 2) {
    matrix(name + ".weight", rows, columns, scale / std::sqrt(static_cast<float>(columns)));
    if (biased) vector(name + ".bias", rows, -0.5f, 0.5f);
  }

  const FamilyFile& family_;
  const FamilyFault& fault_;
  std::vector<std::string>* names_;
  std::uint32_t bits_;
  testing::GgufWriter writer_;
};

}  // namespace

std::span<const FamilyFile> family_files() { return kFiles; }

std::string build_family_file(const FamilyFile& family, std::uint32_t seed, const FamilyFault& fault, std::vector<std::string>* names) { return Maker(family, seed, fault, names).build(); }

}  // namespace rondo::tests
