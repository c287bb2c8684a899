#include "models/arch/families.h"

namespace rondo::models {

namespace {

using graph::Activation;
using graph::RopeStyle;

/// GGUF's names and what its files leave unsaid; weights that only some members have (biases, norms of queries, heads of their
/// own) are used where they are. In the order of their appearance.
constexpr Family kFamilies[] = {
    // Shaw et al. 2018: no positions but distances; norms behind the branches, none at the end.
    {.name = "shaw", .norm = NormKind::kLayer, .positions = Positions::kShaw, .gated = false, .activation = Activation::kRelu, .residuals = Residuals::kBehind, .biases = Biases::kAll, .output_norm = Presence::kNever},
    // Radford et al. 2019.
    {.name = "gpt2", .norm = NormKind::kLayer, .positions = Positions::kLearned, .gated = false, .activation = Activation::kGeluTanh, .biases = Biases::kAll},
    // GPT-J; Wang and Komatsuzaki 2021.
    {.name = "gptj", .norm = NormKind::kLayer, .rope_style = RopeStyle::kInterleaved, .gated = false, .activation = Activation::kGeluTanh, .residuals = Residuals::kParallel, .biases = Biases::kNorms, .ffn_norm = Presence::kNever},
    // GPT-NeoX, Pythia; Black et al. 2022. use_parallel_residual may say that a file's are serial.
    {.name = "gptneox", .norm = NormKind::kLayer, .gated = false, .activation = Activation::kGelu, .residuals = Residuals::kParallel, .biases = Biases::kAll, .may_be_serial = true},
    // BLOOM; Le Scao et al. 2022.
    {.name = "bloom", .norm = NormKind::kLayer, .positions = Positions::kAlibi, .gated = false, .activation = Activation::kGeluTanh, .biases = Biases::kAll, .embedding_norm = true},
    // OPT; Zhang et al. 2022.
    {.name = "opt", .norm = NormKind::kLayer, .positions = Positions::kLearned, .gated = false, .activation = Activation::kRelu, .biases = Biases::kAll},
    // Llama 1 to 3, SmolLM, TinyLlama, Mistral, Mixtral; Touvron et al. 2023. GGUF's files hold q and k permuted for pairs side by side.
    {.name = "llama", .rope_style = RopeStyle::kInterleaved},
    // MPT; MosaicML 2023.
    {.name = "mpt", .norm = NormKind::kLayer, .positions = Positions::kAlibi, .gated = false, .activation = Activation::kGelu},
    // Falcon 7B and 40B; Almazrouei et al. 2023.
    {.name = "falcon", .norm = NormKind::kLayer, .gated = false, .activation = Activation::kGelu, .residuals = Residuals::kParallel, .biases = Biases::kNorms, .ffn_norm = Presence::kNever},
    // StarCoder, GPT-BigCode; Li et al. 2023.
    {.name = "starcoder", .norm = NormKind::kLayer, .positions = Positions::kLearned, .gated = false, .activation = Activation::kGeluTanh, .biases = Biases::kAll},
    // StableLM 3B and 2; Stability AI 2023.
    {.name = "stablelm", .norm = NormKind::kLayer, .biases = Biases::kNorms, .ffn_norm = Presence::kIfThere},
    // Phi-1.5 and Phi-2; Microsoft 2023.
    {.name = "phi2", .norm = NormKind::kLayer, .gated = false, .activation = Activation::kGeluTanh, .residuals = Residuals::kParallel, .biases = Biases::kAll, .ffn_norm = Presence::kNever},
    // Phi-3 and 3.5, Phi-4 mini; Abdin et al. 2024.
    {.name = "phi3"},
    // Qwen 1.5, 2 and 2.5, and those with experts beside one for all tokens; Yang et al. 2024.
    {.name = "qwen2", .biases = Biases::kQueryKeyValue},
    {.name = "qwen2moe", .biases = Biases::kQueryKeyValue, .has_experts = true, .normalizes_experts = false},
    // Gemma, Gemma 2 and Gemma 3; Gemma Team 2024 and 2025. GGUF's norms have the 1 added to their weights.
    {.name = "gemma", .activation = Activation::kGeluTanh, .scales_embedding = true},
    {.name = "gemma2", .activation = Activation::kGeluTanh, .scales_embedding = true, .norms_behind = true, .window_period = 2, .default_window = 4096, .default_attention_softcap = 50, .default_final_softcap = 30, .layers_of_wide_scale = 46},
    {.name = "gemma3", .activation = Activation::kGeluTanh, .scales_embedding = true, .norms_behind = true, .head_norms = true, .window_period = 6, .scales_full_layers_only = true, .window_theta = 10000, .layers_of_wide_scale = 62},
    // Command-R; Cohere 2024. Command R7B: windows, with positions in them only.
    {.name = "command-r", .norm = NormKind::kLayer, .rope_style = RopeStyle::kInterleaved, .residuals = Residuals::kParallel, .ffn_norm = Presence::kNever, .needed_key = "logit_scale"},
    {.name = "cohere2", .norm = NormKind::kLayer, .rope_style = RopeStyle::kInterleaved, .residuals = Residuals::kParallel, .ffn_norm = Presence::kNever, .needed_key = "attention.sliding_window", .window_period = 4, .rope_in_windows_only = true},
    // StarCoder 2; Lozhkov et al. 2024.
    {.name = "starcoder2", .norm = NormKind::kLayer, .gated = false, .activation = Activation::kGeluTanh, .biases = Biases::kNorms},
    // Granite 3; IBM 2024.
    {.name = "granite", .rope_style = RopeStyle::kInterleaved, .divides_logits = true, .needed_key = "logit_scale"},
    // OLMo 2: norms behind the branches alone; OLMo Team 2024. OLMo 3: windows.
    {.name = "olmo2", .norms_before = false, .norms_behind = true, .ffn_norm = Presence::kNever, .head_norms = true, .window_period = 4, .scales_full_layers_only = true},
    // OLMoE: experts, norms of queries and keys of all heads together; Muennighoff et al. 2024.
    {.name = "olmoe", .head_norms = true, .has_experts = true, .normalizes_experts = false},
    // Qwen 3: norms of queries and keys; Yang et al. 2025.
    {.name = "qwen3", .head_norms = true},
    {.name = "qwen3moe", .head_norms = true, .has_experts = true},
    // gpt-oss: sinks, every second layer with a window, experts with a clamped GLU; OpenAI 2025.
    {.name = "gpt-oss", .activation = Activation::kQuickGelu, .biases = Biases::kAll, .needed_key = "attention.sliding_window", .window_period = 2, .has_experts = true,
     .ffn_norm_name = "post_attention_norm", .has_sinks = true, .glu_limit = 7, .glu_up_bias = 1},
    // SmolLM 3: every fourth layer without positions; Hugging Face 2025.
    {.name = "smollm3", .rope_style = RopeStyle::kInterleaved, .no_rope_period = 4},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

}  // namespace rondo::models
