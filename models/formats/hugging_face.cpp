#include "models/formats/hugging_face.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "models/formats/hugging_face_tokenizer.h"
#include "models/formats/hugging_face_encoders.h"
#include "models/formats/hugging_face_folder.h"
#include "models/formats/stacked_experts.h"
#include "models/json.h"
#include "models/printable.h"
#include "models/yarn.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using json = nlohmann::json;

/// How a tensor lies that GGUF has otherwise.
enum class Layout : std::uint8_t {
  kSame,
  kTransposed,  ///< (in, out), as Conv1D has it
  kByHead,      ///< rows of q, k and v of one head, then of the next
  kByGroup,     ///< rows of a KV head's queries, its keys and its values, then of the next KV head
  kBehindTwo,   ///< two rows that nobody needs come first
};

/// A tensor's name in a folder, below the layer's, and in GGUF; ".weight" and ".bias" follow.
struct Name {
  const char* theirs;
  const char* ours;
  Layout layout = Layout::kSame;
};

constexpr Name kLlama[] = {{"input_layernorm", "attn_norm"},   {"self_attn.q_proj", "attn_q"},         {"self_attn.k_proj", "attn_k"},   {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
                           {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},    {"self_attn.qkv_proj", "attn_qkv"}, {"mlp.gate_proj", "ffn_gate"},   {"mlp.up_proj", "ffn_up"},
                           {"mlp.gate_up_proj", "ffn_up"},      {"mlp.down_proj", "ffn_down"},          {"mlp.c_fc", "ffn_up"},           {"mlp.c_proj", "ffn_down"},     {"post_attention_layernorm", "ffn_norm"},
                           {"block_sparse_moe.gate", "ffn_gate_inp"}, {"mlp.gate", "ffn_gate_inp"},        {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}, {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
                           {"mlp.shared_expert.up_proj", "ffn_up_shexp"}, {"mlp.shared_expert.down_proj", "ffn_down_shexp"}};
constexpr Name kGptOss[] = {{"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"},
                            {"self_attn.sinks", "attn_sinks"}, {"post_attention_layernorm", "post_attention_norm"}, {"mlp.router", "ffn_gate_inp"}};
constexpr Name kGemma[] = {{"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},         {"self_attn.k_proj", "attn_k"},          {"self_attn.v_proj", "attn_v"},
                           {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},    {"self_attn.k_norm", "attn_k_norm"},     {"post_attention_layernorm", "post_attention_norm"},
                           {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},              {"mlp.down_proj", "ffn_down"},           {"pre_feedforward_layernorm", "ffn_norm"},
                           {"post_feedforward_layernorm", "post_ffw_norm"}};
constexpr Name kPhi[] = {{"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.dense", "attn_output"}, {"mlp.fc1", "ffn_up"}, {"mlp.fc2", "ffn_down"}};
constexpr Name kGpt2[] = {{"ln_1", "attn_norm"}, {"attn.c_attn", "attn_qkv", Layout::kTransposed}, {"attn.c_proj", "attn_output", Layout::kTransposed}, {"ln_2", "ffn_norm"}, {"mlp.c_fc", "ffn_up", Layout::kTransposed}, {"mlp.c_proj", "ffn_down", Layout::kTransposed}};
constexpr Name kGptJ[] = {{"ln_1", "attn_norm"}, {"attn.q_proj", "attn_q"}, {"attn.k_proj", "attn_k"}, {"attn.v_proj", "attn_v"}, {"attn.out_proj", "attn_output"}, {"mlp.fc_in", "ffn_up"}, {"mlp.fc_out", "ffn_down"}};
constexpr Name kBigCode[] = {{"ln_1", "attn_norm"}, {"attn.c_attn", "attn_qkv", Layout::kByGroup}, {"attn.c_proj", "attn_output"}, {"ln_2", "ffn_norm"}, {"mlp.c_fc", "ffn_up"}, {"mlp.c_proj", "ffn_down"}};
constexpr Name kNeoX[] = {{"input_layernorm", "attn_norm"},     {"attention.query_key_value", "attn_qkv", Layout::kByHead}, {"attention.dense", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
                          {"mlp.dense_h_to_4h", "ffn_up"},      {"mlp.dense_4h_to_h", "ffn_down"}};
constexpr Name kBloom[] = {{"input_layernorm", "attn_norm"},    {"self_attention.query_key_value", "attn_qkv", Layout::kByHead}, {"self_attention.dense", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
                           {"mlp.dense_h_to_4h", "ffn_up"},     {"mlp.dense_4h_to_h", "ffn_down"}};
constexpr Name kFalcon[] = {{"input_layernorm", "attn_norm"},   {"ln_mlp", "attn_norm"}, {"ln_attn", "attn_norm_2"}, {"self_attention.query_key_value", "attn_qkv", Layout::kByGroup}, {"self_attention.dense", "attn_output"},
                            {"mlp.dense_h_to_4h", "ffn_up"},    {"mlp.dense_4h_to_h", "ffn_down"}};
constexpr Name kMpt[] = {{"norm_1", "attn_norm"}, {"attn.Wqkv", "attn_qkv"}, {"attn.out_proj", "attn_output"}, {"norm_2", "ffn_norm"}, {"ffn.up_proj", "ffn_up"}, {"ffn.down_proj", "ffn_down"}};

constexpr Name kOpt[] = {{"self_attn_layer_norm", "attn_norm"}, {"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.out_proj", "attn_output"},
                         {"final_layer_norm", "ffn_norm"},      {"fc1", "ffn_up"},              {"fc2", "ffn_down"}};

constexpr Name kShaw[] = {{"self_attn.q_proj", "attn_q"}, {"self_attn.k_proj", "attn_k"}, {"self_attn.v_proj", "attn_v"}, {"self_attn.o_proj", "attn_output"}, {"self_attn.rel_k", "attn_distance_k"}, {"self_attn.rel_v", "attn_distance_v"},
                          {"norm1", "attn_norm"},          {"fc1", "ffn_up"},             {"fc2", "ffn_down"},           {"norm2", "ffn_norm"}};

constexpr Name kAround[] = {{"embed_tokens", "token_embd"}, {"norm", "output_norm"}, {"final_layernorm", "output_norm"}};
constexpr Name kAroundGpt2[] = {{"wte", "token_embd"}, {"wpe", "position_embd"}, {"ln_f", "output_norm"}};
constexpr Name kAroundNeoX[] = {{"embed_in", "token_embd"}, {"final_layer_norm", "output_norm"}};
constexpr Name kAroundBloom[] = {{"word_embeddings", "token_embd"}, {"word_embeddings_layernorm", "token_embd_norm"}, {"ln_f", "output_norm"}};
constexpr Name kAroundOpt[] = {{"embed_tokens", "token_embd"}, {"embed_positions", "position_embd", Layout::kBehindTwo}, {"final_layer_norm", "output_norm"}};
constexpr Name kAroundShaw[] = {{"embedding", "token_embd"}};
constexpr Name kAroundMpt[] = {{"wte", "token_embd"}, {"norm_f", "output_norm"}};

/// Before the names of what a layer's experts have together.
constexpr std::string_view kStackedExperts = ".mlp.experts.", kBlocks = "_blocks", kScales = "_scales";
/// Below those of one expert, mlp.experts.N and the like.
constexpr Name kOfExpert[] = {{"gate_proj", "ffn_gate"}, {"up_proj", "ffn_up"}, {"down_proj", "ffn_down"}, {"w1", "ffn_gate"}, {"w3", "ffn_up"}, {"w2", "ffn_down"}};

/// A model_type.
struct Kind {
  const char* model_type;
  const char* architecture;
  std::span<const Name> layer, around;
  const char* prefix;   ///< before all names but the head's; may be left out
  const char* layers;   ///< before a layer's number
  const char* epsilon;  ///< its field
  bool layer_norm = false;
  bool half_rope = false;  ///< GGUF's files have q and k permuted for pairs side by side; folders don't
  bool norm_offset = false;  ///< norms multiply by 1 + weight
  const char* activation = "silu";
  double rotary_part = 1;    ///< of a head, where no field says it
  std::uint32_t window = 0;  ///< where no field says it
};

constexpr std::string_view kTied[] = {"gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "opt", "bloom", "falcon", "mpt", "shaw_relative", "cohere", "cohere2", "starcoder2", "smollm3"};
constexpr std::string_view kUsesNoWindow[] = {"qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"};  // unless use_sliding_window says so
constexpr std::string_view kWindowed[] = {"mistral", "mixtral", "qwen2_moe", "qwen3_moe", "gemma2", "gemma3_text", "cohere2", "starcoder2", "phi3", "qwen2", "qwen3", "smollm3", "gpt_oss", "olmo3"};

template <std::size_t n>
bool is_one_of(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr Kind kKinds[] = {
    {"llama", "llama", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, true},
    {"mistral", "llama", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, true, false, "silu", 1, 4096},
    {"mixtral", "llama", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, true},
    {"qwen2", "qwen2", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"qwen2_moe", "qwen2moe", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"qwen3", "qwen3", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"qwen3_moe", "qwen3moe", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"olmoe", "olmoe", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"gpt_oss", "gpt-oss", kGptOss, kAround, "model.", "layers.", "rms_norm_eps", false, false, false, "silu", 1, 128},
    {"gemma", "gemma", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, false, true, "gelu_pytorch_tanh"},
    {"gemma2", "gemma2", kGemma, kAround, "model.", "layers.", "rms_norm_eps", false, false, true, "gelu_pytorch_tanh", 1, 4096},
    {"gemma3_text", "gemma3", kGemma, kAround, "model.", "layers.", "rms_norm_eps", false, false, true, "gelu_pytorch_tanh", 1, 4096},
    {"phi", "phi2", kPhi, kAround, "model.", "layers.", "layer_norm_eps", true, false, false, "gelu_new", 0.5},
    {"phi3", "phi3", kLlama, kAround, "model.", "layers.", "rms_norm_eps"},
    {"olmo2", "olmo2", kGemma, kAround, "model.", "layers.", "rms_norm_eps"},
    {"olmo3", "olmo2", kGemma, kAround, "model.", "layers.", "rms_norm_eps", false, false, false, "silu", 1, 4096},
    {"granite", "granite", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, true},
    {"cohere", "command-r", kLlama, kAround, "model.", "layers.", "layer_norm_eps", true},
    {"cohere2", "cohere2", kLlama, kAround, "model.", "layers.", "layer_norm_eps", true, false, false, "silu", 1, 4096},
    {"smollm3", "smollm3", kLlama, kAround, "model.", "layers.", "rms_norm_eps", false, true},
    {"starcoder2", "starcoder2", kLlama, kAround, "model.", "layers.", "norm_epsilon", true, false, false, "gelu_pytorch_tanh"},
    {"stablelm", "stablelm", kLlama, kAround, "model.", "layers.", "layer_norm_eps", true, false, false, "silu", 0.25},
    {"gpt2", "gpt2", kGpt2, kAroundGpt2, "transformer.", "h.", "layer_norm_epsilon", true, false, false, "gelu_new"},
    {"gptj", "gptj", kGptJ, kAroundGpt2, "transformer.", "h.", "layer_norm_epsilon", true, false, false, "gelu_new"},
    {"gpt_bigcode", "starcoder", kBigCode, kAroundGpt2, "transformer.", "h.", "layer_norm_epsilon", true, false, false, "gelu_pytorch_tanh"},
    {"opt", "opt", kOpt, kAroundOpt, "model.decoder.", "layers.", "layer_norm_eps", true, false, false, "relu"},
    {"gpt_neox", "gptneox", kNeoX, kAroundNeoX, "gpt_neox.", "layers.", "layer_norm_eps", true, false, false, "gelu", 0.25},
    {"falcon", "falcon", kFalcon, kAroundBloom, "transformer.", "h.", "layer_norm_epsilon", true, false, false, "gelu"},
    {"bloom", "bloom", kBloom, kAroundBloom, "transformer.", "h.", "layer_norm_epsilon", true, false, false, ""},
    {"shaw_relative", "shaw", kShaw, kAroundShaw, "", "layers.", "layer_norm_eps", true, false, false, "relu"},
    {"mpt", "mpt", kMpt, kAroundMpt, "transformer.", "blocks.", "layer_norm_epsilon", true, false, false, ""},
};

/// Makes the GGUF file.
class Translator {
 public:
  Translator(const FolderConfig& config, const FolderTensors& tensors, const Kind& kind, std::string folder) : config_(config), tensors_(tensors), kind_(kind), folder_(std::move(folder)) {}

  Result<ByteSource> translate() {
    RONDO_TRY(write_keys());
    RONDO_TRY(place_tensors());
    RONDO_TRY(write_tokenizer());
    return file_.finish(folder_);
  }

 private:
  Status write_tokenizer() {
    if (n_vocab_ > 0) return write_hugging_face_tokenizer(folder_, config_.value(), n_vocab_, file_.keys);
    file_.keys.string("tokenizer.ggml.model", "none");  // the network, which has no embedding, is refused soon
    return {};
  }

  bool is_gpt_oss() const { return std::string_view(kind_.model_type) == "gpt_oss"; }
  std::string key(const char* name) const { return fmt::format("{}.{}", kind_.architecture, name); }
  void u32(const char* name, std::uint32_t value) { file_.keys.u32(key(name), value); }
  void f32(const char* name, double value) { file_.keys.f32(key(name), static_cast<float>(value)); }

  Status copy_number(const char* field, const char* name, double fallback) {
    RONDO_ASSIGN(const std::optional<double> value, config_.number({field}));
    f32(name, value.value_or(fallback));
    return {};
  }

  Status write_mpt_attention() {
    if (!config_.has("attn_config")) return Status(StatusCode::kCorruptData, fmt::format("{}: 'attn_config' is missing", config_.name()));
    RONDO_ASSIGN(const json* attention, find_object(config_.value(), "attn_config", config_.name()));
    const auto is_true = [&](const char* field) { return attention->contains(field) && *attention->find(field) == true; };
    if (!is_true("alibi")) return config_.later("attn_config", "has no alibi");
    for (const char* field : {"qk_ln", "prefix_lm"}) {
      if (is_true(field)) return config_.later("attn_config", fmt::format("has {}", field));
    }
    for (const char* field : {"clip_qkv", "softmax_scale"}) {
      if (has_field(*attention, field)) return config_.later("attn_config", fmt::format("has {}", field));
    }
    RONDO_ASSIGN(const std::optional<double> bias, config_.number(*attention, {"alibi_bias_max"}));
    f32("attention.max_alibi_bias", bias.value_or(8));
    return {};
  }

  Status write_keys() {
    file_.keys.string("general.architecture", kind_.architecture);
    if (kind_.half_rope) file_.keys.string("rondo.rope_style", "half");
    if (kind_.norm_offset) file_.keys.f32("rondo.norm_weight_offset", 1);
    RONDO_TRY(write_sizes());
    RONDO_ASSIGN(const std::optional<double> epsilon, config_.number({kind_.epsilon}));
    if (!epsilon && !kind_.layer_norm) return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is missing", config_.name(), kind_.epsilon));
    f32(kind_.layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", epsilon.value_or(1e-5));
    RONDO_TRY(check_activation());
    RONDO_TRY(write_rope());
    RONDO_TRY(write_window());
    RONDO_TRY(write_experts());
    return write_scales();
  }

  /// Mixtures of experts. None has some layers without.
  Status write_experts() {
    RONDO_ASSIGN(const std::optional<std::uint32_t> n, config_.count({"num_local_experts", "num_experts"}));
    if (!n) return {};
    n_experts_ = *n;
    RONDO_ASSIGN(const std::uint32_t used, config_.need({"num_experts_per_tok", "experts_per_token"}));
    u32("expert_count", *n), u32("expert_used_count", used);
    for (const auto& [field, name] : {std::pair{"moe_intermediate_size", "expert_feed_forward_length"}, std::pair{"shared_expert_intermediate_size", "expert_shared_feed_forward_length"}}) {
      RONDO_ASSIGN(const std::optional<std::uint32_t> width, config_.count({field}));
      if (width) u32(name, *width);
    }
    if (is_gpt_oss()) {
      RONDO_ASSIGN(const std::uint32_t width, config_.need({"intermediate_size"}));
      u32("expert_feed_forward_length", width);
      RONDO_ASSIGN(const std::optional<double> limit, config_.number({"swiglu_limit"}));
      if (limit.value_or(7) != 7) return config_.later("swiglu_limit", fmt::format("is {} instead of 7", *limit));
      RONDO_ASSIGN(const std::optional<double> alpha, config_.number({"swiglu_alpha"}));
      if (alpha.value_or(1.702) != 1.702) return config_.later("swiglu_alpha", fmt::format("is {} instead of 1.702", *alpha));
    }
    RONDO_ASSIGN(const bool normalizes, config_.boolean_or("norm_topk_prob", is_gpt_oss() || std::string_view(kind_.model_type) == "mixtral"));
    file_.keys.boolean(key("expert_weights_norm"), normalizes);
    RONDO_ASSIGN(const std::optional<std::uint32_t> period, config_.count({"decoder_sparse_step"}));
    if (period.value_or(1) != 1) return config_.later("decoder_sparse_step", fmt::format("is {} instead of 1", *period));
    if (config_.has("mlp_only_layers")) {
      RONDO_ASSIGN(const json* layers, find_array(config_.value(), "mlp_only_layers", config_.name()));
      if (!layers->empty()) return config_.later("mlp_only_layers", "is not empty");
    }
    return {};
  }

  Status write_sizes() {
    RONDO_ASSIGN(n_layers_, config_.need({"num_hidden_layers", "n_layer", "n_layers"}));
    RONDO_ASSIGN(width_, config_.need({"hidden_size", "n_embd", "n_embed", "d_model"}));
    RONDO_ASSIGN(n_heads_, config_.need({"num_attention_heads", "n_head", "n_heads"}));
    RONDO_ASSIGN(const std::optional<std::uint32_t> kv_heads, config_.count({"num_key_value_heads", "num_kv_heads", "n_head_kv"}));
    n_kv_heads_ = kv_heads.value_or(n_heads_);
    const bool falcon = std::string_view(kind_.model_type) == "falcon";
    RONDO_ASSIGN(grouped_, config_.boolean_or("new_decoder_architecture", false));
    RONDO_ASSIGN(const bool multi_query, config_.boolean_or("multi_query", std::string_view(kind_.model_type) == "gpt_bigcode"));
    if (falcon && !grouped_) n_kv_heads_ = multi_query ? 1 : n_heads_;
    if (!falcon && multi_query) n_kv_heads_ = 1;
    RONDO_ASSIGN(const std::optional<std::uint32_t> head_dim, config_.count({"head_dim"}));
    RONDO_TRY(config_.check_range("num_hidden_layers", n_layers_, 4096));
    RONDO_TRY(config_.check_range("hidden_size", width_, 1 << 20));
    RONDO_TRY(config_.check_range("num_attention_heads", n_heads_, 1 << 14));
    RONDO_TRY(config_.check_range("num_key_value_heads", n_kv_heads_, n_heads_));
    if (!head_dim && width_ % n_heads_ != 0) return config_.wrong("hidden_size", fmt::format("is {}, which {} heads do not divide", width_, n_heads_));
    head_dim_ = head_dim.value_or(width_ / n_heads_);
    RONDO_TRY(config_.check_range("head_dim", head_dim_, 1 << 14));
    RONDO_ASSIGN(const std::optional<std::uint32_t> ffn, config_.count({"intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"}));
    RONDO_ASSIGN(const std::optional<std::uint32_t> expansion, config_.count({"expansion_ratio"}));
    RONDO_ASSIGN(const std::optional<std::uint32_t> context, config_.count({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"}));
    u32("block_count", n_layers_), u32("embedding_length", width_), u32("attention.head_count", n_heads_), u32("attention.head_count_kv", n_kv_heads_);
    u32("feed_forward_length", ffn.value_or(expansion.value_or(4) * width_)), u32("context_length", context.value_or(2048));
    if (head_dim) u32("attention.key_length", head_dim_), u32("attention.value_length", head_dim_);
    return {};
  }

  Status check_activation() const {
    for (const char* field : {"hidden_activation", "hidden_act", "activation_function", "activation"}) {
      if (!config_.has(field) || *kind_.activation == '\0') continue;
      const Result<std::string> found = find_string(config_.value(), field, config_.name());
      RONDO_TRY(Status(found.status()));
      const std::string& name = *found;
      const auto is_tanh = [](std::string_view text) { return text == "gelu_new" || text == "gelu_pytorch_tanh" || text == "gelu_fast"; };
      const bool old_gemma = name == "gelu" && is_tanh(kind_.activation) && kind_.norm_offset;  // their files say gelu and mean this one
      if (name != kind_.activation && !(is_tanh(name) && is_tanh(kind_.activation)) && !old_gemma) return config_.later(field, fmt::format("is '{}' instead of '{}'", printable(name), kind_.activation));
      return {};
    }
    return {};
  }

  Status write_rope() {
    const json* parameters = &config_.value();  // where theta and the like are
    const json* windowed = nullptr;                // those of layers with a window, where they have their own
    if (config_.has("rope_parameters")) {          // since transformers 5
      RONDO_ASSIGN(parameters, find_object(config_.value(), "rope_parameters", config_.name()));
      const std::string name = fmt::format("{}: rope_parameters", config_.name());
      if (has_field(*parameters, "sliding_attention")) {
        RONDO_ASSIGN(windowed, find_object(*parameters, "sliding_attention", name));
        RONDO_ASSIGN(const std::string type, config_.string_or(*windowed, "rope_type", "default"));
        if (type != "default") return config_.later("rope_parameters", fmt::format("has 'sliding_attention' of type '{}'", printable(type)));
        RONDO_ASSIGN(parameters, find_object(*parameters, "full_attention", name));
      }
    }
    RONDO_ASSIGN(std::optional<double> theta, config_.number(*parameters, {"rope_theta", "rotary_emb_base"}));
    if (!theta && is_gpt_oss()) theta = 150000;
    if (theta) f32("rope.freq_base", *theta);
    RONDO_ASSIGN(const std::optional<double> local_theta, windowed ? config_.number(*windowed, {"rope_theta"}) : config_.number({"rope_local_base_freq"}));
    if (local_theta) f32("rope.freq_base_swa", *local_theta);
    RONDO_ASSIGN(const std::optional<double> part, config_.number(*parameters, {"partial_rotary_factor", "rotary_pct"}));
    const double rotary_part = part.value_or(kind_.rotary_part);
    if (!(rotary_part > 0 && rotary_part <= 1)) return config_.wrong("partial_rotary_factor", fmt::format("is {} but must be in (0, 1]", rotary_part));
    RONDO_ASSIGN(const std::optional<std::uint32_t> rotated, config_.count({"rotary_dim"}));
    rotated_ = rotated.value_or(static_cast<std::uint32_t>(rotary_part * head_dim_));
    RONDO_TRY(config_.check_range("rotary_dim", rotated_, head_dim_));
    if (rotated_ != head_dim_) u32("rope.dimension_count", rotated_);
    const json* scaling = parameters;
    if (parameters == &config_.value()) {
      if (!config_.has("rope_scaling")) return is_gpt_oss() ? config_.wrong("rope_scaling", "is missing") : Status();
      RONDO_ASSIGN(scaling, find_object(config_.value(), "rope_scaling", config_.name()));
    }
    RONDO_ASSIGN(std::string type, config_.string_or(*scaling, "rope_type", ""));
    if (type.empty()) {
      RONDO_ASSIGN(type, config_.string_or(*scaling, "type", "default"));
    }
    if (type == "default" && !has_field(*scaling, "factor")) return {};
    RONDO_ASSIGN(const std::optional<double> factor, config_.number(*scaling, {"factor"}));
    std::optional<std::uint32_t> original;
    if (has_field(*scaling, "original_max_position_embeddings")) {
      RONDO_ASSIGN(const std::uint64_t value, find_u64(*scaling, "original_max_position_embeddings", fmt::format("{}: rope_scaling", config_.name())));
      if (value < 1 || value > 1u << 24) return config_.wrong("rope_scaling", fmt::format("has 'original_max_position_embeddings' of {}", value));
      original = static_cast<std::uint32_t>(value);
    }
    if (type == "llama3") return write_llama3_factors(*scaling, theta.value_or(10000), factor, original);
    if (type == "longrope" || type == "su") return write_long_factors(*scaling);
    if (type != "linear" && type != "yarn") return config_.later("rope_scaling", fmt::format("is of type '{}'", printable(type)));
    if (!factor || *factor < 1) return config_.wrong("rope_scaling", "has no 'factor' of at least 1");
    if (type == "yarn") {
      RONDO_ASSIGN(const bool written, write_yarn_factors(*scaling, theta.value_or(10000), *factor, original));
      if (written) return {};
    }
    file_.keys.string(key("rope.scaling.type"), type);
    f32("rope.scaling.factor", *factor);
    if (original) u32("rope.scaling.original_context_length", *original);
    return {};
  }

  Status refuse_in_scaling(const json& scaling, std::initializer_list<const char*> fields) const {
    for (const char* field : fields) {
      if (has_field(scaling, field)) return config_.later("rope_scaling", fmt::format("has '{}'", field));
    }
    return {};
  }

  /// YaRN with what GGUF's keys can't say: as factors. False: the keys say all.
  Result<bool> write_yarn_factors(const json& scaling, double theta, double factor, std::optional<std::uint32_t> original) {
    RONDO_TRY(refuse_in_scaling(scaling, {"mscale", "mscale_all_dim"}));
    Yarn yarn{.factor = factor};
    const Yarn usual = yarn;
    for (const auto& [field, turns] : {std::pair{"beta_fast", &yarn.fast_turns}, std::pair{"beta_slow", &yarn.slow_turns}}) {
      RONDO_ASSIGN(const std::optional<double> value, config_.number(scaling, {field}));
      if (value && !(*value > 0)) return config_.wrong("rope_scaling", fmt::format("has a '{}' of {}", field, *value));
      *turns = value.value_or(*turns);
    }
    RONDO_ASSIGN(yarn.whole_dimensions, config_.boolean_or(scaling, "truncate", true));
    RONDO_ASSIGN(const std::optional<double> attention, config_.number(scaling, {"attention_factor"}));
    if (attention && !(*attention > 0)) return config_.wrong("rope_scaling", fmt::format("has an 'attention_factor' of {}", *attention));
    if (!attention && yarn.whole_dimensions && yarn.fast_turns == usual.fast_turns && yarn.slow_turns == usual.slow_turns) return false;
    if (!original) {
      RONDO_ASSIGN(original, config_.need({"max_position_embeddings"}));
    }
    yarn.original_context = *original;
    if (!(theta > 1) || *original == 0) return config_.wrong("rope_scaling", fmt::format("can't be of a 'rope_theta' of {} and {} positions", theta, *original));
    file_.place_values("rope_freqs.weight", yarn_factors(yarn, rotated_, theta));
    f32("rope.scaling.attn_factor", attention.value_or(yarn_attention_factor(factor)));
    return true;
  }

  /// Llama 3.1: frequencies that turn seldom within the original context are divided, those that turn often stay.
  Status write_llama3_factors(const json& scaling, double theta, std::optional<double> factor, std::optional<std::uint32_t> original) {
    RONDO_ASSIGN(const std::optional<double> low, config_.number(scaling, {"low_freq_factor"}));
    RONDO_ASSIGN(const std::optional<double> high, config_.number(scaling, {"high_freq_factor"}));
    if (!factor || !original || !low || !high || *factor < 1 || *high <= *low) return config_.wrong("rope_scaling", "must have 'factor', 'low_freq_factor', 'high_freq_factor' and 'original_max_position_embeddings'");
    std::vector<float> factors;
    for (std::uint32_t i = 0; i < rotated_ / 2; ++i) {
      const double turns = *original * std::pow(theta, -2.0 * i / rotated_) / (2 * 3.14159265358979323846);
      const double kept = std::clamp((turns - *low) / (*high - *low), 0.0, 1.0);
      factors.push_back(static_cast<float>(1 / ((1 - kept) / *factor + kept)));
    }
    file_.place_values("rope_freqs.weight", std::move(factors));
    return {};
  }

  /// Ding et al. 2024: factors for contexts up to the original one, and for longer ones.
  Status write_long_factors(const json& scaling) {
    RONDO_TRY(refuse_in_scaling(scaling, {"attention_factor", "short_mscale", "long_mscale"}));
    for (const auto& [field, tensor] : {std::pair{"short_factor", "rope_factors_short.weight"}, std::pair{"long_factor", "rope_factors_long.weight"}}) {
      RONDO_ASSIGN(const json* list, find_array(scaling, field, fmt::format("{}: rope_scaling", config_.name())));
      std::vector<float> factors;
      for (const json& value : *list) {
        const auto* exact = value.get_ptr<const json::number_float_t*>();
        const auto* whole = value.get_ptr<const json::number_unsigned_t*>();
        if (!exact && !whole) return config_.wrong("rope_scaling", fmt::format("has something in '{}' that is no positive number", field));
        factors.push_back(exact ? static_cast<float>(*exact) : static_cast<float>(*whole));
      }
      file_.place_values(tensor, std::move(factors));
    }
    RONDO_ASSIGN(const std::uint32_t context, config_.need({"max_position_embeddings"}));
    RONDO_ASSIGN(const std::uint32_t original, config_.need({"original_max_position_embeddings"}));
    if (original < 2) return config_.wrong("original_max_position_embeddings", fmt::format("is {} but must be at least 2", original));
    u32("rope.scaling.original_context_length", original);
    const double factor = static_cast<double>(context) / original;
    if (factor > 1) f32("rope.scaling.attn_factor", std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(original))));
    return {};
  }

  Status write_window() {
    const std::string_view type = kind_.model_type;
    RONDO_ASSIGN(std::optional<std::uint32_t> window, config_.count({"sliding_window"}));
    if (!config_.value().contains("sliding_window") && kind_.window > 0) window = kind_.window;
    RONDO_ASSIGN(const bool used, config_.boolean_or("use_sliding_window", !is_one_of(type, kUsesNoWindow)));
    if (type == "gemma2" && !window) u32("attention.sliding_window", 0);  // null: none, where GGUF's absent key means the usual one
    if (!window || !used || !is_one_of(type, kWindowed)) return {};
    if (is_one_of(type, kUsesNoWindow)) return config_.later("use_sliding_window", "is true");
    if (*window == 0) return config_.wrong("sliding_window", "is 0 but must be positive");
    u32("attention.sliding_window", *window);
    RONDO_ASSIGN(const std::optional<std::uint32_t> pattern, config_.count({"sliding_window_pattern"}));
    if (pattern && !config_.has("layer_types")) u32("attention.sliding_window_pattern", *pattern);
    if (!config_.has("layer_types")) return {};
    RONDO_ASSIGN(const json* layers, layer_list("layer_types"));
    std::vector<std::uint8_t> windowed;
    for (const json& layer : *layers) {
      const bool sliding = layer == "sliding_attention";
      if (!sliding && layer != "full_attention") return config_.later("layer_types", fmt::format("has another kind of layer at {} than sliding_attention and full_attention", windowed.size()));
      windowed.push_back(sliding);
    }
    file_.keys.booleans(key("attention.sliding_window_pattern"), windowed);
    return {};
  }

  /// A list with an entry for each layer.
  Result<const json*> layer_list(const char* field) const {
    RONDO_ASSIGN(const json* list, find_array(config_.value(), field, config_.name()));
    if (list->size() != n_layers_) return config_.wrong(field, fmt::format("has {} entries but there are {} layers", list->size(), n_layers_));
    return list;
  }
  /// SmolLM 3's says what the builder does anyway.
  Status check_no_rope_layers() const {
    if (!config_.has("no_rope_layers")) return {};
    RONDO_ASSIGN(const json* layers, layer_list("no_rope_layers"));
    for (std::uint32_t i = 0; i < n_layers_; ++i) {
      if ((*layers)[i] != ((i + 1) % 4 != 0 ? 1 : 0)) return config_.later("no_rope_layers", fmt::format("has another kind of layer at {} than this model_type's", i));
    }
    return {};
  }

  Status write_scales() {
    RONDO_ASSIGN(const std::optional<double> scalar, config_.number({"query_pre_attn_scalar"}));
    const std::string_view type = kind_.model_type;
    const bool has_scalar = scalar || type == "gemma2" || type == "gemma3_text";
    if (scalar && *scalar <= 0) return config_.wrong("query_pre_attn_scalar", "must be positive");
    if (has_scalar) f32("attention.scale", 1 / std::sqrt(scalar.value_or(256)));
    for (const char* field : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      RONDO_ASSIGN(const std::optional<double> cap, config_.number({field}));
      // null means none, where GGUF's absent keys mean the usual ones.
      if (config_.value().contains(field)) f32(field, cap.value_or(0));
    }
    if (type == "granite") {
      RONDO_TRY(copy_number("embedding_multiplier", "embedding_scale", 1));
      RONDO_TRY(copy_number("residual_multiplier", "residual_scale", 1));
      RONDO_TRY(copy_number("logits_scaling", "logit_scale", 1));
      RONDO_TRY(copy_number("attention_multiplier", "attention.scale", 1));
    }
    if (type == "cohere" || type == "cohere2") RONDO_TRY(copy_number("logit_scale", "logit_scale", 0.0625));
    if (type == "mpt") RONDO_TRY(write_mpt_attention());
    if (type == "shaw_relative") {
      RONDO_ASSIGN(const std::uint32_t distance, config_.need({"clip_distance"}));
      u32("attention.max_distance", distance);
      RONDO_ASSIGN(const bool before, config_.boolean_or("normalize_before", false));
      if (before) return config_.later("normalize_before", "is true");
    }
    RONDO_ASSIGN(const std::optional<std::uint32_t> interval, config_.count({"no_rope_layer_interval"}));
    if (type == "smollm3" && interval.value_or(4) != 4) return config_.later("no_rope_layer_interval", fmt::format("is {} instead of 4", *interval));
    if (type == "smollm3") RONDO_TRY(check_no_rope_layers());
    if (config_.has("use_parallel_residual")) {
      RONDO_ASSIGN(const bool parallel, config_.boolean_or("use_parallel_residual", true));
      file_.keys.boolean(key("use_parallel_residual"), parallel);
    }
    return refuse_what_is_not_there();
  }

  Status refuse_what_is_not_there() const {
    for (const auto& [field, expected] : {std::pair{"parallel_attn", true}, std::pair{"alibi", false}, std::pair{"apply_residual_connection_post_layernorm", false},
                                          std::pair{"scale_attn_by_inverse_layer_idx", false}, std::pair{"use_qk_norm", false}, std::pair{"qk_layernorm", false}, std::pair{"do_layer_norm_before", true}, std::pair{"_remove_final_layer_norm", false}, std::pair{"scale_attn_weights", true}, std::pair{"use_bidirectional_attention", false}, std::pair{"is_causal", true}}) {
      RONDO_ASSIGN(const bool value, config_.boolean_or(field, expected));
      if (std::string_view(kind_.model_type) == "cohere" && std::string_view(field) == "use_qk_norm") continue;  // the tensors say it
      if (value != expected) return config_.later(field, value ? "is true" : "is false");
    }
    if (config_.has("clip_qkv")) return config_.later("clip_qkv", "is set");
    RONDO_ASSIGN(const std::optional<std::uint32_t> embedding_width, config_.count({"word_embed_proj_dim"}));
    if (embedding_width && *embedding_width != width_) return config_.later("word_embed_proj_dim", fmt::format("is {} instead of {}", *embedding_width, width_));
    return {};
  }

  /// GGUF's name of a tensor and how it lies, or nothing.
  std::optional<std::pair<std::string, Layout>> find_name(std::string_view theirs) const {
    if (theirs.starts_with("lm_head.") || theirs.starts_with("embed_out.")) return std::pair{"output" + std::string(theirs.substr(theirs.find('.'))), Layout::kSame};
    if (theirs.starts_with(kind_.prefix)) theirs.remove_prefix(std::string_view(kind_.prefix).size());
    const bool bare = theirs.ends_with(".sinks") || theirs.ends_with(".rel_k") || theirs.ends_with(".rel_v");
    const std::size_t dot = bare ? theirs.size() : theirs.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const std::string_view kind = bare ? ".weight" : theirs.substr(dot);
    if (kind != ".weight" && kind != ".bias") return std::nullopt;
    std::string_view stem = theirs.substr(0, dot);
    std::string ours;
    std::span<const Name> names = kind_.around;
    if (stem.starts_with(kind_.layers)) {
      stem.remove_prefix(std::string_view(kind_.layers).size());
      const std::size_t end = stem.find('.');
      if (end == std::string_view::npos) return std::nullopt;
      ours = fmt::format("blk.{}.", stem.substr(0, end));
      stem.remove_prefix(end + 1);
      names = kind_.layer;
    }
    // Experts keep a tensor each: blk.0.ffn_gate.3.weight.
    std::string expert;
    for (const std::string_view before : {"mlp.experts.", "block_sparse_moe.experts."}) {
      if (names.data() != kind_.layer.data() || !stem.starts_with(before)) continue;
      stem.remove_prefix(before.size());
      const std::size_t end = stem.find('.');
      if (end == std::string_view::npos) return std::nullopt;
      expert = fmt::format(".{}", stem.substr(0, end));
      stem.remove_prefix(end + 1);
      names = kOfExpert;
    }
    for (const Name& name : names) {
      if (stem == name.theirs) return std::pair{ours + name.ours + expert + std::string(kind), name.layout};
    }
    return std::nullopt;
  }

  /// Tables that old files carry and nobody needs.
  static bool is_left_over(std::string_view name) {
    for (const char* part : {".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias", "rotary_emb.inv_freq"}) {
      if (name.ends_with(part)) return true;
    }
    return false;
  }

  /// What a layer's experts have in one tensor: rows of all, one after the other; dims as GGUF's.
  struct StackedRows {
    ByteSource source;
    std::uint64_t offset_bytes = 0, n_rows = 0, row_bytes = 0;
    std::vector<std::uint64_t> dims = {};
    GgmlType type = GgmlType::kF32;
  };
  /// The matrix in `blocks` (expert, out, block, 16) and a tensor of scales (expert, out, block).
  Result<StackedRows> mxfp4_rows(const std::string& name, const FolderTensor& blocks) const {
    const std::string scales_name = name.substr(0, name.size() - kBlocks.size()) + std::string(kScales);
    const auto found = tensors_.all().find(scales_name);
    if (found == tensors_.all().end()) return blocks.error(StatusCode::kCorruptData, fmt::format("is there without '{}'", printable(scales_name)));
    const SafetensorsEntry& scales = found->second.entry;
    const std::vector<std::uint64_t>& shape = blocks.entry.shape;
    if (blocks.entry.dtype != SafetensorsDtype::kU8) return blocks.error(StatusCode::kUnsupported, fmt::format("is {}, which is not there yet (U8 is)", blocks.entry.spelling()));
    if (scales.dtype != SafetensorsDtype::kU8 || scales.shape != std::vector(shape.begin(), shape.end() - 1)) {
      return found->second.error(StatusCode::kCorruptData, fmt::format("does not fit '{}'", printable(name)));
    }
    StackedRows rows{join_mxfp4(*blocks.source, blocks.entry.offset_bytes, *found->second.source, scales.offset_bytes, scales.size_bytes)};
    rows.n_rows = shape[0] * shape[1], rows.row_bytes = shape[2] * 17, rows.dims = {shape[2] * 32, shape[1], shape[0]}, rows.type = GgmlType::kMXFP4;
    return rows;
  }
  /// A matrix (expert, in, out), or a bias (expert, out).
  Result<StackedRows> plain_rows(const FolderTensor& tensor) {
    const SafetensorsEntry& entry = tensor.entry;
    RONDO_ASSIGN(const GgmlType type, tensor.need_type());
    const std::uint64_t n = entry.shape[0], rows = entry.shape.back(), element_bytes = safetensors_dtype_bytes(entry.dtype);
    if (entry.shape.size() == 2) return StackedRows{*tensor.source, entry.offset_bytes, n * rows, element_bytes, {rows, n}, type};
    const std::uint64_t columns = entry.shape[1], matrix_bytes = rows * columns * element_bytes, offset = turned_.size_bytes();
    for (std::uint64_t i = 0; i < n; ++i) turned_.add_transposed(*tensor.source, entry.offset_bytes + i * matrix_bytes, rows, columns, element_bytes);
    return StackedRows{turned_.source(tensor.source->name), offset, n * rows, columns * element_bytes, {columns, rows, n}, type};
  }

  /// gpt-oss: gate_up_proj, gates and ups in alternate rows, and down_proj; each with _bias.
  Status place_stacked(const std::string& name, const FolderTensor& tensor) {
    const auto wrong = [&](StatusCode code, const std::string& why) { return tensor.error(code, why); };
    const std::size_t at = name.find(kStackedExperts);
    std::string_view layer = std::string_view(name).substr(0, at), kind = std::string_view(name).substr(at + kStackedExperts.size());
    for (const std::string_view before : {std::string_view(kind_.prefix), std::string_view(kind_.layers)}) {
      if (layer.starts_with(before)) layer.remove_prefix(before.size());
    }
    const auto take = [&kind](std::string_view matrix) {
      const bool found = kind.starts_with(matrix);
      if (found) kind.remove_prefix(matrix.size());
      return found;
    };
    const bool gated = take("gate_up_proj"), down = !gated && take("down_proj");
    if ((!gated && !down) || (kind != kBlocks && kind != kScales && kind != "_bias" && !kind.empty())) return wrong(StatusCode::kUnsupported, fmt::format("is none that a {} has, or not there yet", kind_.model_type));
    const std::vector<std::uint64_t>& shape = tensor.entry.shape;
    const std::size_t rank = kind == kBlocks ? 4 : kind == "_bias" ? 2 : 3;
    if (shape.size() != rank || std::find(shape.begin(), shape.end(), 0u) != shape.end() || (kind == kBlocks && shape[3] != 16)) return wrong(StatusCode::kCorruptData, "has another shape than experts have");
    if (shape[0] != n_experts_) return wrong(StatusCode::kCorruptData, fmt::format("is of {} experts, but the config of {}", shape[0], n_experts_));
    if (kind == kScales) {  // goes with its blocks
      const std::string blocks_name = name.substr(0, name.size() - kScales.size()) + std::string(kBlocks);
      return tensors_.all().contains(blocks_name) ? Status() : wrong(StatusCode::kCorruptData, fmt::format("is there without '{}'", printable(blocks_name)));
    }
    RONDO_ASSIGN(StackedRows rows, kind == kBlocks ? mxfp4_rows(name, tensor) : plain_rows(tensor));
    const std::string prefix = fmt::format("blk.{}.", layer), suffix = kind == "_bias" ? "_exps.bias" : "_exps.weight";
    if (down) {
      place_data(prefix + "ffn_down" + suffix, rows);
      return {};
    }
    std::uint64_t& n_out = rows.dims[rows.dims.size() - 2];
    if (n_out % 2 != 0) return wrong(StatusCode::kCorruptData, fmt::format("has {} rows, which can't be gates and ups in turn", n_out));
    n_out /= 2;
    const StackedRows both = rows;
    rows.n_rows /= 2, rows.offset_bytes = 0;
    for (const auto& [ours, first] : {std::pair{"ffn_gate", 0u}, std::pair{"ffn_up", 1u}}) {
      rows.source = alternate_rows(both.source, both.offset_bytes, both.n_rows, both.row_bytes, first);
      place_data(prefix + ours + suffix, rows);
    }
    return {};
  }
  void place_data(const std::string& name, const StackedRows& rows) {
    const std::uint64_t size_bytes = rows.n_rows * rows.row_bytes;
    file_.place(name, rows.dims, rows.type, size_bytes, [source = rows.source, offset = rows.offset_bytes, size_bytes](StitchedSource& file) { file.add_run(source, offset, size_bytes); });
  }

  Status place_tensors() {
    RONDO_ASSIGN(const bool tied, config_.boolean_or("tie_word_embeddings", is_one_of(kind_.model_type, kTied)));
    bool has_head = false;
    for (const auto& [name, tensor] : tensors_.all()) {
      if (is_left_over(name)) continue;
      if (is_gpt_oss() && name.find(kStackedExperts) != std::string::npos) {
        RONDO_TRY(place_stacked(name, tensor));
        continue;
      }
      const auto found = find_name(name);
      const auto wrong = [&tensor = tensor](StatusCode code, const std::string& what) { return tensor.error(code, what); };
      if (!found) return wrong(StatusCode::kUnsupported, fmt::format("is none that a {} has, or not there yet", kind_.model_type));
      if (tied && found->first == "output.weight") continue;  // a copy
      has_head = has_head || found->first == "output.weight";
      const SafetensorsEntry& entry = tensor.entry;
      RONDO_ASSIGN(const GgmlType type, tensor.need_type());
      if (std::find(entry.shape.begin(), entry.shape.end(), 0u) != entry.shape.end()) return wrong(StatusCode::kCorruptData, "has no elements");
      if (entry.shape.empty() || entry.shape.size() > 2) return wrong(StatusCode::kUnsupported, fmt::format("has {} dimensions, which is not there yet", entry.shape.size()));
      Layout layout = entry.shape.size() == 1 && found->second == Layout::kTransposed ? Layout::kSame : found->second;
      // Without groups: one KV head's queries, keys and values, or each head's.
      if (layout == Layout::kByGroup && !grouped_) layout = n_kv_heads_ == n_heads_ ? Layout::kByHead : Layout::kSame;
      RONDO_TRY(check_heads(tensor, layout));
      std::vector<std::uint64_t> dims(entry.shape.rbegin(), entry.shape.rend());
      if (layout == Layout::kTransposed) std::reverse(dims.begin(), dims.end());
      std::uint64_t size_bytes = entry.size_bytes;
      if (layout == Layout::kBehindTwo) {
        if (entry.shape.size() != 2 || entry.shape[0] <= 2) return wrong(StatusCode::kCorruptData, "must have more than two rows");
        size_bytes -= 2 * (size_bytes / entry.shape[0]);
        dims[1] -= 2;
      }
      file_.place(found->first, dims, type, size_bytes, [this, &tensor = tensor, layout](StitchedSource& file) { add_data(file, tensor, layout); });
      if (found->first == "token_embd.weight") n_vocab_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(dims.back(), 1 << 20));
    }
    if (!tied && !has_head) return Status(StatusCode::kCorruptData, fmt::format("{}: the head is missing (lm_head.weight), and 'tie_word_embeddings' is false", config_.name()));
    return {};
  }

  /// Heads that are to be taken apart must make up the rows.
  Status check_heads(const FolderTensor& tensor, Layout layout) const {
    if (layout != Layout::kByHead && layout != Layout::kByGroup) return {};
    const std::uint64_t rows = std::uint64_t{head_dim_} * (std::uint64_t{n_heads_} + 2 * std::uint64_t{n_kv_heads_});
    if (tensor.entry.shape[0] == rows && n_kv_heads_ > 0 && n_heads_ % n_kv_heads_ == 0) return {};
    return tensor.error(StatusCode::kCorruptData, fmt::format("has {} rows, but {} heads and {} KV heads of {} have {}", tensor.entry.shape[0], n_heads_, n_kv_heads_, head_dim_, rows));
  }

  void add_data(StitchedSource& file, const FolderTensor& tensor, Layout layout) const {
    const SafetensorsEntry& entry = tensor.entry;
    const ByteSource& source = *tensor.source;
    if (layout == Layout::kSame) return file.add_run(source, entry.offset_bytes, entry.size_bytes);
    const std::uint64_t row_bytes = entry.size_bytes / entry.shape[0];
    if (layout == Layout::kBehindTwo) return file.add_run(source, entry.offset_bytes + 2 * row_bytes, entry.size_bytes - 2 * row_bytes);
    if (layout == Layout::kTransposed) return file.add_transposed(source, entry.offset_bytes, entry.shape[1], entry.shape[0], safetensors_dtype_bytes(entry.dtype));
    // q of all heads, then k, then v.
    const std::uint64_t group = n_heads_ / n_kv_heads_, rows = (group + 2) * head_dim_;
    const std::uint64_t first[] = {0, group * head_dim_, (group + 1) * head_dim_}, count[] = {group * head_dim_, head_dim_, head_dim_};
    for (std::size_t part = 0; part < 3; ++part) {
      for (std::uint64_t head = 0; head < n_kv_heads_; ++head) file.add_run(source, entry.offset_bytes + (head * rows + first[part]) * row_bytes, count[part] * row_bytes);
    }
  }

  const FolderConfig& config_;
  const FolderTensors& tensors_;
  const Kind& kind_;
  std::string folder_;
  FolderFile file_;
  StitchedSource turned_;  // experts' matrices, of which one is kept in memory
  std::uint32_t n_layers_ = 0, width_ = 0, n_heads_ = 0, n_kv_heads_ = 0, head_dim_ = 0, rotated_ = 0, n_experts_ = 0, n_vocab_ = 0;
  bool grouped_ = false;
};

}  // namespace

Result<ByteSource> open_hugging_face_folder(const std::string& given, ModelHead wanted) {
  std::string folder = given;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string path = folder + "/config.json";
  Result<json> document = read_json_file(path);
  if (document.status().code() == StatusCode::kNotFound) return Status(StatusCode::kNotFound, fmt::format("{}: is a folder without config.json, which is no model", given));
  RONDO_TRY(document.status());
  const FolderConfig config(std::move(document).value(), path);
  RONDO_ASSIGN(const std::string type, find_string(config.value(), "model_type", path));
  std::string known;
  for (const Kind& kind : kKinds) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.model_type);
    if (type != kind.model_type) continue;
    RONDO_ASSIGN(const FolderTensors tensors, FolderTensors::open(folder));
    return Translator(config, tensors, kind, folder).translate();
  }
  if (is_encoder_model_type(type)) return open_encoder_folder(folder, config, type, wanted);
  return Status(StatusCode::kUnsupported, fmt::format("{}: 'model_type' is '{}', which is not there yet ({}, {} are)", path, printable(type), known, encoder_model_types()));
}

}  // namespace rondo::models
