#include "models/formats/hugging_face_encoders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/float16.h"
#include "models/formats/hugging_face_images.h"
#include "models/formats/hugging_face_tokenizer.h"
#include "models/json.h"
#include "models/printable.h"
#include "runtime/fmt.h"

namespace rondo::models {

namespace {

using json = nlohmann::json;

/// How a tensor lies that the network wants otherwise.
enum class Layout : std::uint8_t {
  kSame,
  kBehindTwo,  ///< two rows that nobody needs come first
  kReversed,   ///< rows from the last to the first; as they are under another name too, where products with keys are wanted
  kThirds,     ///< rows of queries, keys and values of cross-attention
  kLeftOut,    ///< a copy, or nothing that the network needs
};

/// A tensor's name in a folder and here; ".weight" or ".bias" follows where the folder has it. "*" is a layer's number.
struct Name {
  const char* theirs;
  const char* ours;
  Layout layout = Layout::kSame;
};

constexpr Name kBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings.position_ids", "", Layout::kLeftOut},
    {"encoder.layer.*.attention.self.query", "blk.*.attn_q"},
    {"encoder.layer.*.attention.self.key", "blk.*.attn_k"},
    {"encoder.layer.*.attention.self.value", "blk.*.attn_v"},
    {"encoder.layer.*.attention.self.distance_embedding", "blk.*.attn_distance", Layout::kReversed},
    {"encoder.layer.*.attention.output.dense", "blk.*.attn_output"},
    {"encoder.layer.*.attention.output.LayerNorm", "blk.*.attn_output_norm"},
    {"encoder.layer.*.intermediate.dense", "blk.*.ffn_up"},
    {"encoder.layer.*.output.dense", "blk.*.ffn_down"},
    {"encoder.layer.*.output.LayerNorm", "blk.*.layer_output_norm"},
    {"pooler.dense", "pooler"},
    {"cls.predictions.transform.dense", "cls"},
    {"cls.predictions.transform.LayerNorm", "cls.norm"},
    {"cls.predictions", "cls.output"},
    {"cls.predictions.decoder", "cls.output"},
    {"cls.seq_relationship", "", Layout::kLeftOut},
    {"lm_head.dense", "cls"},
    {"lm_head.layer_norm", "cls.norm"},
    {"lm_head", "cls.output"},
    {"lm_head.decoder", "cls.output"},
    {"classifier.dense", "cls"},
    {"classifier.out_proj", "cls.output"},
    {"classifier", "cls.output"},
    {"qa_outputs", "cls.output"},
};
constexpr Name kDistilBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"transformer.layer.*.attention.q_lin", "blk.*.attn_q"},
    {"transformer.layer.*.attention.k_lin", "blk.*.attn_k"},
    {"transformer.layer.*.attention.v_lin", "blk.*.attn_v"},
    {"transformer.layer.*.attention.out_lin", "blk.*.attn_output"},
    {"transformer.layer.*.sa_layer_norm", "blk.*.attn_output_norm"},
    {"transformer.layer.*.ffn.lin1", "blk.*.ffn_up"},
    {"transformer.layer.*.ffn.lin2", "blk.*.ffn_down"},
    {"transformer.layer.*.output_layer_norm", "blk.*.layer_output_norm"},
    {"vocab_transform", "cls"},
    {"vocab_layer_norm", "cls.norm"},
    {"vocab_projector", "cls.output"},
    {"pre_classifier", "cls"},
    {"classifier", "cls.output"},
    {"qa_outputs", "cls.output"},
};
constexpr Name kNomicBert[] = {
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"emb_ln", "token_embd_norm"},
    {"encoder.layers.*.attn.Wqkv", "blk.*.attn_qkv"},
    {"encoder.layers.*.attn.out_proj", "blk.*.attn_output"},
    {"encoder.layers.*.norm1", "blk.*.attn_output_norm"},
    {"encoder.layers.*.mlp.fc11", "blk.*.ffn_up"},
    {"encoder.layers.*.mlp.fc12", "blk.*.ffn_gate"},
    {"encoder.layers.*.mlp.fc2", "blk.*.ffn_down"},
    {"encoder.layers.*.norm2", "blk.*.layer_output_norm"},
};
constexpr Name kVit[] = {
    {"embeddings.cls_token", "class_embd"},
    {"embeddings.distillation_token", "distillation_embd"},
    {"embeddings.position_embeddings", "position_embd.weight"},
    {"embeddings.patch_embeddings.projection", "patch_embd"},
    {"embeddings.mask_token", "", Layout::kLeftOut},
    {"encoder.layer.*.layernorm_before", "blk.*.attn_norm"},
    {"encoder.layer.*.attention.attention.query", "blk.*.attn_q"},
    {"encoder.layer.*.attention.attention.key", "blk.*.attn_k"},
    {"encoder.layer.*.attention.attention.value", "blk.*.attn_v"},
    {"encoder.layer.*.attention.output.dense", "blk.*.attn_output"},
    {"encoder.layer.*.layernorm_after", "blk.*.ffn_norm"},
    {"encoder.layer.*.intermediate.dense", "blk.*.ffn_up"},
    {"encoder.layer.*.output.dense", "blk.*.ffn_down"},
    {"layernorm", "output_norm"},
    {"pooler.dense", "pooler"},
    {"classifier", "cls.output"},
};
constexpr Name kClip[] = {
    {"text_model.embeddings.token_embedding", "t.token_embd"},
    {"text_model.embeddings.position_embedding", "t.position_embd"},
    {"text_model.embeddings.position_ids", "", Layout::kLeftOut},
    {"text_model.encoder.layers.*.layer_norm1", "t.blk.*.attn_norm"},
    {"text_model.encoder.layers.*.self_attn.q_proj", "t.blk.*.attn_q"},
    {"text_model.encoder.layers.*.self_attn.k_proj", "t.blk.*.attn_k"},
    {"text_model.encoder.layers.*.self_attn.v_proj", "t.blk.*.attn_v"},
    {"text_model.encoder.layers.*.self_attn.out_proj", "t.blk.*.attn_output"},
    {"text_model.encoder.layers.*.layer_norm2", "t.blk.*.ffn_norm"},
    {"text_model.encoder.layers.*.mlp.fc1", "t.blk.*.ffn_up"},
    {"text_model.encoder.layers.*.mlp.fc2", "t.blk.*.ffn_down"},
    {"text_model.final_layer_norm", "t.output_norm"},
    {"text_projection", "t.projection"},
    {"vision_model.embeddings.class_embedding", "v.class_embd"},
    {"vision_model.embeddings.patch_embedding", "v.patch_embd"},
    {"vision_model.embeddings.position_embedding", "v.position_embd"},
    {"vision_model.embeddings.position_ids", "", Layout::kLeftOut},
    {"vision_model.pre_layrnorm", "v.pre_norm"},
    {"vision_model.encoder.layers.*.layer_norm1", "v.blk.*.attn_norm"},
    {"vision_model.encoder.layers.*.self_attn.q_proj", "v.blk.*.attn_q"},
    {"vision_model.encoder.layers.*.self_attn.k_proj", "v.blk.*.attn_k"},
    {"vision_model.encoder.layers.*.self_attn.v_proj", "v.blk.*.attn_v"},
    {"vision_model.encoder.layers.*.self_attn.out_proj", "v.blk.*.attn_output"},
    {"vision_model.encoder.layers.*.layer_norm2", "v.blk.*.ffn_norm"},
    {"vision_model.encoder.layers.*.mlp.fc1", "v.blk.*.ffn_up"},
    {"vision_model.encoder.layers.*.mlp.fc2", "v.blk.*.ffn_down"},
    {"vision_model.post_layernorm", "v.post_norm"},
    {"visual_projection", "v.projection"},
    {"logit_scale", "", Layout::kLeftOut},
};
constexpr Name kT5[] = {
    {"shared", "token_embd"},
    {"encoder.embed_tokens", "token_embd"},
    {"decoder.embed_tokens", "dec.token_embd"},
    {"encoder.block.*.layer.0.layer_norm", "enc.blk.*.attn_norm"},
    {"encoder.block.*.layer.0.SelfAttention.q", "enc.blk.*.attn_q"},
    {"encoder.block.*.layer.0.SelfAttention.k", "enc.blk.*.attn_k"},
    {"encoder.block.*.layer.0.SelfAttention.v", "enc.blk.*.attn_v"},
    {"encoder.block.*.layer.0.SelfAttention.o", "enc.blk.*.attn_o"},
    {"encoder.block.*.layer.0.SelfAttention.relative_attention_bias", "enc.blk.*.attn_rel_b"},
    {"encoder.block.*.layer.1.layer_norm", "enc.blk.*.ffn_norm"},
    {"encoder.block.*.layer.1.DenseReluDense.wi", "enc.blk.*.ffn_up"},
    {"encoder.block.*.layer.1.DenseReluDense.wi_0", "enc.blk.*.ffn_gate"},
    {"encoder.block.*.layer.1.DenseReluDense.wi_1", "enc.blk.*.ffn_up"},
    {"encoder.block.*.layer.1.DenseReluDense.wo", "enc.blk.*.ffn_down"},
    {"encoder.final_layer_norm", "enc.output_norm"},
    {"decoder.block.*.layer.0.layer_norm", "dec.blk.*.attn_norm"},
    {"decoder.block.*.layer.0.SelfAttention.q", "dec.blk.*.attn_q"},
    {"decoder.block.*.layer.0.SelfAttention.k", "dec.blk.*.attn_k"},
    {"decoder.block.*.layer.0.SelfAttention.v", "dec.blk.*.attn_v"},
    {"decoder.block.*.layer.0.SelfAttention.o", "dec.blk.*.attn_o"},
    {"decoder.block.*.layer.0.SelfAttention.relative_attention_bias", "dec.blk.*.attn_rel_b"},
    {"decoder.block.*.layer.1.layer_norm", "dec.blk.*.cross_attn_norm"},
    {"decoder.block.*.layer.1.EncDecAttention.q", "dec.blk.*.cross_attn_q"},
    {"decoder.block.*.layer.1.EncDecAttention.k", "dec.blk.*.cross_attn_k"},
    {"decoder.block.*.layer.1.EncDecAttention.v", "dec.blk.*.cross_attn_v"},
    {"decoder.block.*.layer.1.EncDecAttention.o", "dec.blk.*.cross_attn_o"},
    {"decoder.block.*.layer.1.EncDecAttention.relative_attention_bias", "", Layout::kLeftOut},  // of old files; none is used
    {"decoder.block.*.layer.2.layer_norm", "dec.blk.*.ffn_norm"},
    {"decoder.block.*.layer.2.DenseReluDense.wi", "dec.blk.*.ffn_up"},
    {"decoder.block.*.layer.2.DenseReluDense.wi_0", "dec.blk.*.ffn_gate"},
    {"decoder.block.*.layer.2.DenseReluDense.wi_1", "dec.blk.*.ffn_up"},
    {"decoder.block.*.layer.2.DenseReluDense.wo", "dec.blk.*.ffn_down"},
    {"decoder.final_layer_norm", "dec.output_norm"},
    {"lm_head", "output"},
};
constexpr Name kBart[] = {
    {"shared", "token_embd"},
    {"encoder.embed_tokens", "token_embd"},
    {"decoder.embed_tokens", "dec.token_embd"},
    {"encoder.embed_positions", "enc.position_embd", Layout::kBehindTwo},
    {"decoder.embed_positions", "dec.position_embd", Layout::kBehindTwo},
    {"encoder.layernorm_embedding", "enc.token_embd_norm"},
    {"decoder.layernorm_embedding", "dec.token_embd_norm"},
    {"encoder.layers.*.self_attn.q_proj", "enc.blk.*.attn_q"},
    {"encoder.layers.*.self_attn.k_proj", "enc.blk.*.attn_k"},
    {"encoder.layers.*.self_attn.v_proj", "enc.blk.*.attn_v"},
    {"encoder.layers.*.self_attn.out_proj", "enc.blk.*.attn_output"},
    {"encoder.layers.*.self_attn_layer_norm", "enc.blk.*.attn_norm"},
    {"encoder.layers.*.fc1", "enc.blk.*.ffn_up"},
    {"encoder.layers.*.fc2", "enc.blk.*.ffn_down"},
    {"encoder.layers.*.final_layer_norm", "enc.blk.*.ffn_norm"},
    {"encoder.layer_norm", "enc.output_norm"},
    {"decoder.layers.*.self_attn.q_proj", "dec.blk.*.attn_q"},
    {"decoder.layers.*.self_attn.k_proj", "dec.blk.*.attn_k"},
    {"decoder.layers.*.self_attn.v_proj", "dec.blk.*.attn_v"},
    {"decoder.layers.*.self_attn.out_proj", "dec.blk.*.attn_output"},
    {"decoder.layers.*.self_attn_layer_norm", "dec.blk.*.attn_norm"},
    {"decoder.layers.*.encoder_attn.q_proj", "dec.blk.*.cross_attn_q"},
    {"decoder.layers.*.encoder_attn.k_proj", "dec.blk.*.cross_attn_k"},
    {"decoder.layers.*.encoder_attn.v_proj", "dec.blk.*.cross_attn_v"},
    {"decoder.layers.*.encoder_attn.out_proj", "dec.blk.*.cross_attn_output"},
    {"decoder.layers.*.encoder_attn_layer_norm", "dec.blk.*.cross_attn_norm"},
    {"decoder.layers.*.fc1", "dec.blk.*.ffn_up"},
    {"decoder.layers.*.fc2", "dec.blk.*.ffn_down"},
    {"decoder.layers.*.final_layer_norm", "dec.blk.*.ffn_norm"},
    {"decoder.layer_norm", "dec.output_norm"},
    {"lm_head", "output"},
    {"final_logits_bias", "output.bias"},
    {"encoder.embed_positions.weights", "", Layout::kLeftOut},
    {"decoder.embed_positions.weights", "", Layout::kLeftOut},
};
constexpr Name kTorchTransformer[] = {
    {"embedding", "token_embd"},
    {"encoder.layers.*.self_attn.in_proj", "enc.blk.*.attn_qkv"},
    {"encoder.layers.*.self_attn.out_proj", "enc.blk.*.attn_output"},
    {"encoder.layers.*.norm1", "enc.blk.*.attn_norm"},
    {"encoder.layers.*.linear1", "enc.blk.*.ffn_up"},
    {"encoder.layers.*.linear2", "enc.blk.*.ffn_down"},
    {"encoder.layers.*.norm2", "enc.blk.*.ffn_norm"},
    {"encoder.norm", "enc.output_norm"},
    {"decoder.layers.*.self_attn.in_proj", "dec.blk.*.attn_qkv"},
    {"decoder.layers.*.self_attn.out_proj", "dec.blk.*.attn_output"},
    {"decoder.layers.*.norm1", "dec.blk.*.attn_norm"},
    {"decoder.layers.*.multihead_attn.in_proj", "dec.blk.*.cross_attn_", Layout::kThirds},
    {"decoder.layers.*.multihead_attn.out_proj", "dec.blk.*.cross_attn_output"},
    {"decoder.layers.*.norm2", "dec.blk.*.cross_attn_norm"},
    {"decoder.layers.*.linear1", "dec.blk.*.ffn_up"},
    {"decoder.layers.*.linear2", "dec.blk.*.ffn_down"},
    {"decoder.layers.*.norm3", "dec.blk.*.ffn_norm"},
    {"decoder.norm", "dec.output_norm"},
    {"output", "output"},
};

class Translator;

/// A model_type.
struct Kind {
  const char* model_type;
  const char* architecture;
  const char* prefix;  ///< before names; may be left out
  std::span<const Name> names;
  Status (Translator::*write_keys)();
};

/// Makes the GGUF file.
class Translator {
 public:
  Translator(const FolderConfig& config, const FolderTensors& tensors, const Kind& kind, std::string folder, ModelHead wanted)
      : config_(config), tensors_(tensors), kind_(kind), folder_(std::move(folder)), architecture_(kind.architecture), wanted_(wanted) {}

  Result<ByteSource> translate() {
    RONDO_TRY(read_class());
    RONDO_TRY((this->*kind_.write_keys)());
    file_.keys.string("general.architecture", architecture_);
    for (const auto& [name, tensor] : tensors_.all()) RONDO_TRY(place(name, tensor));
    RONDO_TRY(write_hugging_face_tokenizer(folder_, config_.value(), n_vocab_, file_.keys));
    return file_.finish(folder_);
  }

  Status write_bert() {
    RONDO_TRY(refuse_unless({{"is_decoder", false}, {"add_cross_attention", false}}));
    RONDO_TRY(write_stack(config_, "", {"num_hidden_layers", "n_layers"}, {"hidden_size", "dim"}, {"num_attention_heads", "n_heads"}, {"intermediate_size", "hidden_dim"}));
    RONDO_TRY(write_epsilon(config_, "", {"layer_norm_eps"}, 1e-12));
    const bool distil = kind_.names.data() == kDistilBert;
    RONDO_ASSIGN(const std::string activation, write_activation(config_, {"hidden_act", "activation"}, "gelu"));
    RONDO_TRY(write_context(2));
    RONDO_TRY(write_relative_positions());
    RONDO_TRY(write_pooling());
    return write_text_head(distil, activation);
  }

  Status write_nomic_bert() {
    RONDO_TRY(refuse_unless({{"causal", false}, {"parallel_block", false}, {"prenorm", false}, {"use_rms_norm", false}, {"rotary_emb_interleaved", false}}));
    RONDO_TRY(write_stack(config_, "", {"n_layer", "num_hidden_layers"}, {"n_embd", "hidden_size"}, {"n_head", "num_attention_heads"}, {"n_inner", "intermediate_size"}));
    RONDO_TRY(write_epsilon(config_, "", {"layer_norm_epsilon", "layer_norm_eps"}, 1e-12));
    RONDO_ASSIGN(const std::string activation, config_.string_or(config_.value(), "activation_function", "swiglu"));
    if (activation != "swiglu") return config_.later("activation_function", fmt::format("is '{}' instead of 'swiglu'", printable(activation)));
    for (const char* field : {"rotary_scaling_factor", "rotary_emb_scale_base"}) {
      if (config_.has(field)) return config_.later(field, "is set");
    }
    RONDO_ASSIGN(const std::optional<double> base, config_.number({"rotary_emb_base", "rope_theta"}));
    f32("rope.freq_base", base.value_or(10000));
    RONDO_ASSIGN(const std::optional<double> part, config_.number({"rotary_emb_fraction"}));
    if (part.value_or(1) != 1) return config_.later("rotary_emb_fraction", fmt::format("is {} instead of 1", *part));
    RONDO_ASSIGN(const std::uint32_t context, config_.need({"n_positions", "max_position_embeddings"}));
    u32("context_length", context);
    return write_pooling();
  }

  Status write_vit() {
    RONDO_TRY(write_vision(config_, "", 1e-12, "gelu"));
    if (class_.ends_with("ForImageClassification") || class_.ends_with("ForImageClassificationWithTeacher") || has_any("classifier.")) {
      file_.keys.string("rondo.head", "text");
      RONDO_TRY(write_labels("classifier.weight"));
    }
    RONDO_ASSIGN(const std::string pooler, config_.string_or(config_.value(), "pooler_act", "tanh"));
    if (pooler != "tanh") return config_.later("pooler_act", fmt::format("is '{}' instead of 'tanh'", printable(pooler)));
    return write_image_preprocessing(config_);
  }

  Status write_clip() {
    RONDO_ASSIGN(const FolderConfig text, part("text_config"));
    RONDO_ASSIGN(const FolderConfig vision, part("vision_config"));
    RONDO_TRY(write_vision(vision, "vision.", 1e-5, "quick_gelu"));
    RONDO_TRY(write_stack(text, "text.", {"num_hidden_layers"}, {"hidden_size"}, {"num_attention_heads"}, {"intermediate_size"}));
    RONDO_TRY(write_epsilon(text, "text.", {"layer_norm_eps"}, 1e-5));
    RONDO_ASSIGN(const std::string of_text, activation_of(text, {"hidden_act"}, "quick_gelu"));
    RONDO_ASSIGN(const std::string of_images, activation_of(vision, {"hidden_act"}, "quick_gelu"));
    if (of_text != of_images) return text.later("hidden_act", fmt::format("is another than the vision_config's, '{}'", of_images));
    RONDO_ASSIGN(const std::uint32_t context, text.need({"max_position_embeddings"}));
    u32("text.context_length", context);
    RONDO_ASSIGN(const std::uint32_t projection, config_.need({"projection_dim"}));
    u32("projection_dim", projection);
    // Files from before the end of text had its own id say 2, and mean the largest id of a text.
    RONDO_ASSIGN(const std::optional<std::uint32_t> end, text.count({"eos_token_id"}));
    if (end.value_or(2) != 2) file_.keys.u32("rondo.text_end", *end);
    RONDO_TRY(write_logit_scale());
    return write_image_preprocessing(vision);
  }

  Status write_t5() {
    const bool decodes = std::any_of(tensors_.all().begin(), tensors_.all().end(), [](const auto& entry) { return entry.first.starts_with("decoder."); });
    const bool encodes_only = class_ == "T5EncoderModel" || class_ == "MT5EncoderModel" || (class_.empty() && !decodes);
    if (encodes_only) architecture_ = "t5encoder";
    RONDO_TRY(write_stack(config_, "", {"num_layers"}, {"d_model"}, {"num_heads"}, {"d_ff"}));
    RONDO_ASSIGN(const std::uint32_t head_dim, config_.need({"d_kv"}));
    RONDO_TRY(config_.check_range("d_kv", head_dim, 1 << 14));
    u32("attention.key_length", head_dim), u32("attention.value_length", head_dim);
    RONDO_ASSIGN(const std::optional<std::uint32_t> buckets, config_.count({"relative_attention_num_buckets"}));
    RONDO_ASSIGN(const std::optional<std::uint32_t> farthest, config_.count({"relative_attention_max_distance"}));
    u32("attention.relative_buckets_count", buckets.value_or(32)), u32("attention.relative_max_distance", farthest.value_or(128));
    RONDO_ASSIGN(const std::optional<double> epsilon, config_.number({"layer_norm_epsilon"}));
    f32("attention.layer_norm_rms_epsilon", epsilon.value_or(1e-6));
    RONDO_ASSIGN(const std::optional<std::uint32_t> context, config_.count({"n_positions"}));
    u32("context_length", context.value_or(512));
    RONDO_ASSIGN(const std::string network, config_.string_or(config_.value(), "feed_forward_proj", "relu"));
    const bool gated = network.starts_with("gated-");
    const std::string function = gated ? network.substr(6) : network;
    RONDO_ASSIGN(const std::string activation, name_activation(config_, "feed_forward_proj", gated && function == "gelu" ? "gelu_new" : function));
    file_.keys.string("rondo.activation", activation);
    if (encodes_only) return write_pooling();
    RONDO_ASSIGN(const std::optional<std::uint32_t> layers, config_.count({"num_decoder_layers"}));
    if (layers) u32("decoder_block_count", *layers);
    RONDO_ASSIGN(tied_, config_.boolean_or("tie_word_embeddings", std::string_view(kind_.model_type) == "t5"));
    RONDO_ASSIGN(const std::uint32_t width, config_.need({"d_model"}));
    if (tied_) f32("logit_scale", 1 / std::sqrt(static_cast<double>(width)));
    return write_start();
  }

  /// BART, mBART, Marian, M2M-100, and torch.nn.Transformer.
  Status write_bart() {
    RONDO_TRY(write_stack(config_, "", {"encoder_layers"}, {"d_model"}, {"encoder_attention_heads"}, {"encoder_ffn_dim"}));
    const auto of_decoder = [&](const char* field, const char* name) -> Status {
      RONDO_ASSIGN(const std::uint32_t value, config_.need({field}));
      u32(name, value);
      return {};
    };
    RONDO_TRY(of_decoder("decoder_layers", "decoder_block_count"));
    RONDO_TRY(of_decoder("decoder_attention_heads", "decoder_head_count"));
    RONDO_TRY(of_decoder("decoder_ffn_dim", "decoder_feed_forward_length"));
    RONDO_TRY(write_epsilon(config_, "", {"layer_norm_eps"}, 1e-5));
    RONDO_TRY(write_activation(config_, {"activation_function"}, "gelu").status());
    const std::string_view type = kind_.model_type;
    const bool torch = type == "torch_nn_transformer", before = type == "mbart" || type == "m2m_100";
    if (torch) {
      RONDO_ASSIGN(const bool norms_before, config_.boolean_or("normalize_before", false));
      file_.keys.boolean("rondo.norms_behind", !norms_before);
      RONDO_ASSIGN(const std::string positions, config_.string_or(config_.value(), "position_embedding_type", "sinusoidal_interleaved"));
      if (positions != "sinusoidal_interleaved") return config_.later("position_embedding_type", fmt::format("is '{}' instead of 'sinusoidal_interleaved'", printable(positions)));
    } else {
      RONDO_TRY(refuse_unless({{"normalize_before", before}, {"add_final_layer_norm", before}, {"normalize_embedding", type == "bart" || type == "mbart"},
                               {"static_position_embeddings", type == "marian" || type == "m2m_100"}}));
    }
    RONDO_ASSIGN(const bool scales, config_.boolean_or("scale_embedding", torch || type == "m2m_100"));
    RONDO_ASSIGN(const std::uint32_t width, config_.need({"d_model"}));
    if (scales) f32("embedding_scale", std::sqrt(static_cast<double>(width)));
    RONDO_ASSIGN(const std::optional<std::uint32_t> context, config_.count({"max_position_embeddings"}));
    u32("context_length", context.value_or(1024));
    RONDO_ASSIGN(tied_, config_.boolean_or("tie_word_embeddings", true));
    return write_start();
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  void u32(std::string_view name, std::uint32_t value) { file_.keys.u32(key(name), value); }
  void f32(std::string_view name, double value) { file_.keys.f32(key(name), static_cast<float>(value)); }

  /// What the model is for: BertForMaskedLM and the like.
  Status read_class() {
    if (!config_.has("architectures")) return {};
    RONDO_ASSIGN(const json* classes, find_array(config_.value(), "architectures", config_.name()));
    for (const json& name : *classes) {
      if (!name.is_string()) continue;
      const auto& text = name.get_ref<const std::string&>();
      if (class_.empty() || (wanted_ != ModelHead::kNone && head_of(text) == wanted_)) class_ = text;
      if (wanted_ == ModelHead::kNone || head_of(class_) == wanted_) break;
    }
    return {};
  }

  /// The head that a class has by its name.
  static ModelHead head_of(std::string_view name) {
    constexpr std::pair<std::string_view, ModelHead> kTasks[] = {{"ForMaskedLM", ModelHead::kMaskedWords},         {"ForPreTraining", ModelHead::kMaskedWords},
                                                                  {"ForTokenClassification", ModelHead::kTokenLabels}, {"ForQuestionAnswering", ModelHead::kAnswers},
                                                                  {"ForSequenceClassification", ModelHead::kLabels},   {"ForImageClassification", ModelHead::kLabels}};
    for (const auto& [task, head] : kTasks) {
      if (name.find(task) != std::string_view::npos) return head;
    }
    return ModelHead::kNone;
  }

  Result<FolderConfig> part(const char* field) const {
    RONDO_ASSIGN(const json* object, find_object(config_.value(), field, config_.name()));
    return FolderConfig(*object, fmt::format("{}: {}", config_.name(), field));
  }

  Status refuse_unless(std::initializer_list<std::pair<const char*, bool>> fields) const {
    for (const auto& [field, expected] : fields) {
      RONDO_ASSIGN(const bool value, config_.boolean_or(field, expected));
      if (value != expected) return config_.later(field, value ? "is true" : "is false");
    }
    return {};
  }

  bool is_of_words() const { return head_ == ModelHead::kMaskedWords; }

  bool has_any(std::string_view part) const {
    return std::any_of(tensors_.all().begin(), tensors_.all().end(), [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
  }
  Status need_tensor(const std::string& name) const {
    if (tensors_.all().contains(name)) return {};
    return Status(StatusCode::kCorruptData, fmt::format("{}: tensor '{}' is missing, which a {} has", folder_, name, class_.empty() ? kind_.model_type : printable(class_)));
  }

  using Fields = std::initializer_list<const char*>;
  Status write_stack(const FolderConfig& config, const std::string& prefix, Fields layers, Fields width, Fields heads, Fields ffn) {
    struct Size {
      Fields fields;
      const char* name;
      std::uint32_t most;
    };
    for (const Size& size : {Size{layers, "block_count", 4096}, Size{width, "embedding_length", 1 << 20}, Size{heads, "attention.head_count", 1 << 14}, Size{ffn, "feed_forward_length", 1 << 22}}) {
      RONDO_ASSIGN(const std::uint32_t value, config.need(size.fields));
      RONDO_TRY(config.check_range(*size.fields.begin(), value, size.most));
      u32(prefix + size.name, value);
    }
    return {};
  }

  Status write_epsilon(const FolderConfig& config, const std::string& prefix, Fields fields, double usual) {
    RONDO_ASSIGN(const std::optional<double> epsilon, config.number(fields));
    f32(prefix + "attention.layer_norm_epsilon", epsilon.value_or(usual));
    return {};
  }

  static Result<std::string> name_activation(const FolderConfig& config, const char* field, const std::string& name) {
    constexpr std::pair<std::string_view, const char*> kNames[] = {{"gelu", "gelu"}, {"gelu_new", "gelu_tanh"}, {"gelu_pytorch_tanh", "gelu_tanh"}, {"gelu_fast", "gelu_tanh"}, {"relu", "relu"},
                                                                   {"silu", "silu"}, {"swish", "silu"},         {"quick_gelu", "quick_gelu"},       {"tanh", "tanh"}};
    for (const auto& [theirs, ours] : kNames) {
      if (name == theirs) return std::string(ours);
    }
    return config.later(field, fmt::format("is '{}'", printable(name)));
  }
  static Result<std::string> activation_of(const FolderConfig& config, Fields fields, const char* usual) {
    for (const char* field : fields) {
      if (!config.has(field)) continue;
      RONDO_ASSIGN(const std::string name, find_string(config.value(), field, config.name()));
      return name_activation(config, field, name);
    }
    return std::string(usual);
  }
  Result<std::string> write_activation(const FolderConfig& config, Fields fields, const char* usual) {
    RONDO_ASSIGN(std::string name, activation_of(config, fields, usual));
    file_.keys.string("rondo.activation", name);
    return name;
  }

  /// Positions of BERT; RoBERTa's begin behind the one of padding, `first` rows into the table.
  Status write_context(std::uint32_t first) {
    RONDO_ASSIGN(std::uint32_t context, config_.need({"max_position_embeddings"}));
    RONDO_TRY(config_.check_range("max_position_embeddings", context, 1 << 24));
    behind_padding_ = is_roberta();
    if (behind_padding_) {
      RONDO_ASSIGN(const std::optional<std::uint32_t> padding, config_.count({"pad_token_id"}));
      if (padding.value_or(1) + 1 != first) return config_.later("pad_token_id", fmt::format("is {} instead of {}", *padding, first - 1));
      if (context <= first) return config_.wrong("max_position_embeddings", fmt::format("is {} but must be above {}", context, first));
      context -= first;
    }
    u32("context_length", context);
    return {};
  }
  bool is_roberta() const {
    const std::string_view type = kind_.model_type;
    return type == "roberta" || type == "xlm-roberta" || type == "camembert";
  }

  Status write_relative_positions() {
    RONDO_ASSIGN(const std::string type, config_.string_or(config_.value(), "position_embedding_type", "absolute"));
    if (type == "absolute") return {};
    if (type != "relative_key" && type != "relative_key_query") return config_.later("position_embedding_type", fmt::format("is '{}'", printable(type)));
    relative_ = true;
    wants_forward_rows_ = type == "relative_key_query";
    file_.keys.string("rondo.relative_positions", wants_forward_rows_ ? "keys and queries" : "keys");
    return {};
  }

  /// What sentence-transformers write beside a model.
  Status write_pooling() {
    RONDO_ASSIGN(const JsonDocument pooling, JsonDocument::read(folder_ + "/1_Pooling/config.json"));
    if (pooling.value().is_null()) return {};
    std::uint32_t type = 0;
    for (const auto& [field, its_type] : {std::pair{"pooling_mode_mean_tokens", 1u}, std::pair{"pooling_mode_cls_token", 2u}, std::pair{"pooling_mode_lasttoken", 3u}, std::pair{"pooling_mode_max_tokens", 0u},
                                          std::pair{"pooling_mode_mean_sqrt_len_tokens", 0u}, std::pair{"pooling_mode_weightedmean_tokens", 0u}}) {
      RONDO_ASSIGN(const bool used, pooling.boolean_or(pooling.value(), field, false));
      if (!used) continue;
      if (its_type == 0 || type != 0) return pooling.later(field, "is true");
      type = its_type;
    }
    if (type != 0) u32("pooling_type", type);
    return {};
  }

  /// The head that the class has, or that the tensors tell of.
  Status write_text_head(bool distil, const std::string& activation) {
    const bool roberta = is_roberta();
    const auto set = [&](const char* head, std::string_view function) {
      file_.keys.string("rondo.head", head);
      file_.keys.string("rondo.head_activation", function);
    };
    head_ = head_of(class_);
    if (head_ == ModelHead::kNone && class_.find("For") != std::string::npos) return config_.later("architectures", fmt::format("has '{}'", printable(class_)));
    if (head_ == ModelHead::kNone) {
      if (has_any("cls.predictions.transform.") || has_any("lm_head.dense") || has_any("vocab_transform")) head_ = ModelHead::kMaskedWords;
      else if (has_any("qa_outputs.")) head_ = ModelHead::kAnswers;
      else if (has_any("classifier.")) head_ = ModelHead::kLabels;
    }
    if (head_ == ModelHead::kMaskedWords) {
      RONDO_TRY(need_tensor(distil ? "vocab_transform.weight" : roberta ? "lm_head.dense.weight" : "cls.predictions.transform.dense.weight"));
      set("words", roberta ? "gelu" : activation);
      RONDO_ASSIGN(tied_, config_.boolean_or("tie_word_embeddings", true));
      if (!tied_) file_.keys.boolean("rondo.head_tied", false);
    } else if (head_ == ModelHead::kTokenLabels) {
      RONDO_TRY(write_labels("classifier.weight"));
      set("tokens", activation);
    } else if (head_ == ModelHead::kAnswers) {
      RONDO_TRY(need_tensor("qa_outputs.weight"));
      set("answers", activation);
    } else if (head_ == ModelHead::kLabels) {
      RONDO_TRY(write_labels(roberta ? "classifier.out_proj.weight" : "classifier.weight"));
      if (distil) RONDO_TRY(need_tensor("pre_classifier.weight"));
      pooler_is_dense_ = !distil && !roberta;
      if (pooler_is_dense_) RONDO_TRY(need_tensor(std::string(kind_.prefix) + "pooler.dense.weight"));
      set("text", distil ? "relu" : "tanh");
    }
    return {};
  }

  /// Names of the labels that the matrix `classifier` gives, in the order of their numbers.
  Status write_labels(const std::string& classifier) {
    RONDO_TRY(need_tensor(classifier));
    if (!config_.has("id2label")) return {};
    RONDO_ASSIGN(const json* names, find_object(config_.value(), "id2label", config_.name()));
    std::vector<std::string> labels(names->size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const json::const_iterator name = names->find(std::to_string(i));
      if (name == names->end() || !name->is_string()) return config_.wrong("id2label", fmt::format("must have a text for each number from 0 to {}", labels.size() - 1));
      labels[i] = name->get_ref<const std::string&>();
    }
    const std::vector<std::uint64_t>& shape = tensors_.all().find(classifier)->second.entry.shape;
    if (shape.empty() || shape[0] != labels.size()) return config_.wrong("id2label", fmt::format("has {} labels but the classifier {}", labels.size(), shape.empty() ? 0 : shape[0]));
    file_.keys.strings("rondo.labels", labels);
    return {};
  }

  /// Whether a tensor is of a head beside the one that the class has.
  bool is_of_another_head(std::string_view theirs) const {
    if (head_ == ModelHead::kNone) return false;
    const bool words = theirs.starts_with("cls.predictions.") || theirs.starts_with("lm_head.") || theirs.starts_with("vocab_");
    const bool labels = theirs.starts_with("classifier.") || theirs.starts_with("pre_classifier.");
    const bool answers = theirs.starts_with("qa_outputs.");
    switch (head_) {
      case ModelHead::kMaskedWords: return labels || answers;
      case ModelHead::kAnswers: return labels || words;
      case ModelHead::kTokenLabels: return words || answers || theirs.starts_with("pre_classifier.");
      default: return words || answers;
    }
  }

  Result<std::pair<std::uint32_t, std::uint32_t>> pair_of(const FolderConfig& config, const char* field) const {
    const json::const_iterator found = config.value().find(field);
    if (found != config.value().end() && found->is_array()) {
      std::uint32_t sizes[2] = {};
      if (found->size() != 2) return config.wrong(field, "must be a number, or two");
      for (std::size_t i = 0; i < 2; ++i) {
        const auto* value = (*found)[i].get_ptr<const json::number_unsigned_t*>();
        if (!value || *value < 1 || *value > 1 << 14) return config.wrong(field, fmt::format("must have numbers in [1, {}]", 1 << 14));
        sizes[i] = static_cast<std::uint32_t>(*value);
      }
      return std::pair{sizes[0], sizes[1]};
    }
    RONDO_ASSIGN(const std::uint32_t size, config.need({field}));
    RONDO_TRY(config.check_range(field, size, 1 << 14));
    return std::pair{size, size};
  }

  Status write_vision(const FolderConfig& config, const std::string& prefix, double epsilon, const char* activation) {
    RONDO_TRY(write_stack(config, prefix, {"num_hidden_layers"}, {"hidden_size"}, {"num_attention_heads"}, {"intermediate_size"}));
    RONDO_TRY(write_epsilon(config, prefix, {"layer_norm_eps"}, epsilon));
    RONDO_TRY(write_activation(config, {"hidden_act"}, activation).status());
    RONDO_ASSIGN(const auto image, pair_of(config, "image_size"));
    RONDO_ASSIGN(const auto patch, pair_of(config, "patch_size"));
    if (patch.first != patch.second) return config.later("patch_size", "is not square");
    RONDO_ASSIGN(const std::optional<std::uint32_t> channels, config.count({"num_channels"}));
    u32(prefix + "image_height", image.first), u32(prefix + "image_width", image.second), u32(prefix + "image_channels", channels.value_or(3)), u32(prefix + "patch_size", patch.first);
    return {};
  }

  Status write_image_preprocessing(const FolderConfig& vision) {
    RONDO_ASSIGN(const std::optional<std::uint32_t> channels, vision.count({"num_channels"}));
    return models::write_image_preprocessing(folder_, kind_.model_type, channels.value_or(3), file_.keys);
  }

  Status write_logit_scale() {
    const auto found = tensors_.all().find("logit_scale");
    if (found == tensors_.all().end()) return need_tensor("logit_scale");
    const SafetensorsEntry& entry = found->second.entry;
    RONDO_ASSIGN(const GgmlType type, found->second.need_type());
    std::array<std::byte, 4> bytes{};
    const std::size_t n = safetensors_dtype_bytes(entry.dtype);
    if (entry.size_bytes != n) return found->second.error(StatusCode::kCorruptData, "is not one number");
    RONDO_TRY(found->second.source->read(entry.offset_bytes, std::span(bytes).first(n)));
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data(), 4);
    float value = 0;
    if (type == GgmlType::kF16) value = graph::half_to_float(static_cast<std::uint16_t>(word));
    else if (type == GgmlType::kBF16) value = std::bit_cast<float>(word << 16);
    else value = std::bit_cast<float>(word);
    f32("logit_scale", static_cast<double>(value));
    return {};
  }

  /// What a decoder begins with; generation_config.json has the last word.
  Status write_start() {
    if (!tied_) RONDO_TRY(need_tensor(kind_.names.data() == kTorchTransformer ? "output.weight" : "lm_head.weight"));
    RONDO_ASSIGN(JsonDocument document, JsonDocument::read(folder_ + "/generation_config.json"));
    const FolderConfig generation(document.value().is_null() ? json::object() : document.value(), document.name());
    for (const auto& [field, name] : {std::pair{"decoder_start_token_id", key("decoder_start_token_id")}, std::pair{"forced_bos_token_id", std::string("rondo.first_token_id")}}) {
      RONDO_ASSIGN(std::optional<std::uint32_t> id, generation.count({field}));
      if (!id) {
        RONDO_ASSIGN(id, config_.count({field}));
      }
      if (id) file_.keys.u32(name, *id);
      else if (name != "rondo.first_token_id") return Status(StatusCode::kCorruptData, fmt::format("{}: '{}' is missing", config_.name(), field));
    }
    return {};
  }

  /// The rule for a tensor's name, and its name here; nothing where there is none.
  std::optional<std::pair<const Name*, std::string>> find_name(std::string_view name) const {
    for (const std::string_view prefix : {std::string_view(kind_.prefix), std::string_view("model."), std::string_view()}) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view whole = name.substr(prefix.size());
      std::string suffix;
      std::string_view stem = whole;
      for (const auto& [theirs, ours] : {std::pair{".weight", ".weight"}, std::pair{".bias", ".bias"}, std::pair{".gamma", ".weight"}, std::pair{".beta", ".bias"}, std::pair{"in_proj_weight", ".weight"}, std::pair{"in_proj_bias", ".bias"}}) {
        if (!whole.ends_with(theirs)) continue;
        suffix = ours;
        stem = whole.substr(0, whole.size() - (theirs[0] == '.' ? std::strlen(theirs) : std::strlen(ours)));
        break;
      }
      for (const Name& rule : kind_.names) {
        const std::optional<std::string> number = match(rule.theirs, stem), of_whole = number ? std::nullopt : match(rule.theirs, whole);
        if (!number && !of_whole) continue;
        std::string ours = rule.ours;
        if (const std::size_t star = ours.find('*'); star != std::string::npos) ours.replace(star, 1, number ? *number : *of_whole);
        return std::pair{&rule, ours + (number ? suffix : "")};
      }
    }
    return std::nullopt;
  }
  /// What "*" stands for where `text` is as `pattern` says; "" where that has none.
  static std::optional<std::string> match(std::string_view pattern, std::string_view text) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return pattern == text ? std::optional<std::string>("") : std::nullopt;
    const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
    if (text.size() < before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) return std::nullopt;
    const std::string_view number = text.substr(before.size(), text.size() - before.size() - after.size());
    const bool digits = !number.empty() && std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits ? std::optional<std::string>(number) : std::nullopt;
  }

  /// Copies of one embedding under several names, and heads that are tied to it.
  bool is_copy(const std::string& ours, std::string_view theirs) const {
    const bool shared = has_any("shared.weight");
    if (shared && theirs.ends_with("embed_tokens.weight")) return true;
    if (ours == "dec.token_embd.weight" && !has_any("encoder.embed_tokens.weight")) return true;
    constexpr std::string_view kDecoder = ".decoder.bias";
    if (is_of_words() && theirs.ends_with(kDecoder) && tensors_.all().contains(std::string(theirs.substr(0, theirs.size() - kDecoder.size())) + ".bias")) return true;
    return tied_ && ours == (is_of_words() ? "cls.output.weight" : "output.weight");
  }

  Status place(const std::string& name, const FolderTensor& tensor) {
    auto found = find_name(name);
    if (!found) return tensor.error(StatusCode::kUnsupported, fmt::format("is none that a {} has, or not there yet", kind_.model_type));
    auto& [rule, ours] = *found;
    Layout layout = rule->layout;
    if (layout == Layout::kLeftOut || is_of_another_head(name) || is_copy(ours, name) || (relative_ && ours == "position_embd.weight")) return {};
    if (architecture_ == "t5encoder" && !ours.starts_with("enc.") && ours != "token_embd.weight") return {};
    if (layout == Layout::kSame && behind_padding_ && ours == "position_embd.weight") layout = Layout::kBehindTwo;
    if (std::string_view(kind_.model_type) == "marian" && layout == Layout::kBehindTwo) layout = Layout::kSame;
    if (pooler_is_dense_ && ours.starts_with("pooler.")) ours = "cls" + ours.substr(6);
    return place(ours, tensor, layout);
  }

  Status place(const std::string& ours, const FolderTensor& tensor, Layout layout) {
    const SafetensorsEntry& entry = tensor.entry;
    RONDO_ASSIGN(const GgmlType type, tensor.need_type());
    if (std::find(entry.shape.begin(), entry.shape.end(), 0u) != entry.shape.end() || entry.shape.empty()) return tensor.error(StatusCode::kCorruptData, "has no elements");
    // Rows and columns; of a convolution's weight the columns are its patches.
    std::vector<std::uint64_t> shape = entry.shape;
    while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
    if (shape.size() == 4) shape = {shape[0], shape[1] * shape[2] * shape[3]};
    if (shape.size() > 2) return tensor.error(StatusCode::kUnsupported, fmt::format("has {} dimensions, which is not there yet", entry.shape.size()));
    const bool embedding = ours == "token_embd.weight" || ours == "t.token_embd.weight";
    if (embedding && shape.size() == 2) n_vocab_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape[0], 1 << 20));
    const std::uint64_t row_bytes = entry.size_bytes / shape[0];
    // A tensor of `n` rows from row `first` on.
    const auto place_rows = [&](const std::string& name, std::uint64_t first, std::uint64_t n, bool reversed = false) {
      std::vector<std::uint64_t> dims(shape.rbegin(), shape.rend());
      dims.back() = n;
      const std::uint64_t at = entry.offset_bytes + first * row_bytes;
      file_.place(name, dims, type, n * row_bytes, [source = tensor.source, at, n, row_bytes, reversed](StitchedSource& file) {
        if (!reversed) return file.add_run(*source, at, n * row_bytes);
        for (std::uint64_t row = n; row-- > 0;) file.add_run(*source, at + row * row_bytes, row_bytes);
      });
    };
    switch (layout) {
      case Layout::kBehindTwo:
        if (shape[0] <= 2) return tensor.error(StatusCode::kCorruptData, "must have more than two rows");
        place_rows(ours, 2, shape[0] - 2);
        return {};
      case Layout::kThirds: {
        if (shape[0] % 3 != 0) return tensor.error(StatusCode::kCorruptData, fmt::format("has {} rows, which can't be as many of queries, keys and values", shape[0]));
        const std::size_t dot = ours.rfind('.');
        for (std::uint64_t i = 0; i < 3; ++i) place_rows(ours.substr(0, dot) + "qkv"[i] + ours.substr(dot), i * (shape[0] / 3), shape[0] / 3);
        return {};
      }
      case Layout::kReversed:
        if (shape[0] > 1 << 16) return tensor.error(StatusCode::kUnsupported, fmt::format("has {} rows, which is not there yet", shape[0]));
        if (wants_forward_rows_) place_rows(ours.substr(0, ours.rfind('.')) + "_back.weight", 0, shape[0]);
        place_rows(ours, 0, shape[0], true);
        return {};
      default:
        place_rows(ours, 0, shape[0]);
        return {};
    }
  }

  const FolderConfig& config_;
  const FolderTensors& tensors_;
  const Kind& kind_;
  std::string folder_, architecture_, class_;
  FolderFile file_;
  std::uint32_t n_vocab_ = 0;
  bool tied_ = false;
  ModelHead wanted_, head_ = ModelHead::kNone;
  bool behind_padding_ = false;       ///< positions are: RoBERTa
  bool relative_ = false;             ///< there are no other positions
  bool wants_forward_rows_ = false;   ///< of Layout::kReversed
  bool pooler_is_dense_ = false;      ///< of the head
};

constexpr Kind kKinds[] = {
    {"bert", "bert", "bert.", kBert, &Translator::write_bert},
    {"roberta", "bert", "roberta.", kBert, &Translator::write_bert},
    {"xlm-roberta", "bert", "roberta.", kBert, &Translator::write_bert},
    {"camembert", "bert", "roberta.", kBert, &Translator::write_bert},
    {"distilbert", "bert", "distilbert.", kDistilBert, &Translator::write_bert},
    {"nomic_bert", "nomic-bert", "bert.", kNomicBert, &Translator::write_nomic_bert},
    {"vit", "vit", "vit.", kVit, &Translator::write_vit},
    {"deit", "vit", "deit.", kVit, &Translator::write_vit},
    {"clip", "clip", "clip.", kClip, &Translator::write_clip},
    {"torch_nn_transformer", "transformer", "transformer.", kTorchTransformer, &Translator::write_bart},
    {"marian", "marian", "model.", kBart, &Translator::write_bart},
    {"bart", "bart", "model.", kBart, &Translator::write_bart},
    {"mbart", "mbart", "model.", kBart, &Translator::write_bart},
    {"m2m_100", "m2m_100", "model.", kBart, &Translator::write_bart},
    {"t5", "t5", "transformer.", kT5, &Translator::write_t5},
    {"mt5", "t5", "transformer.", kT5, &Translator::write_t5},
};

}  // namespace

std::string encoder_model_types() {
  std::string types;
  for (const Kind& kind : kKinds) types += fmt::format("{}{}", types.empty() ? "" : ", ", kind.model_type);
  return types;
}

bool is_encoder_model_type(std::string_view model_type) {
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.model_type == model_type; });
}

Result<ByteSource> open_encoder_folder(const std::string& folder, const FolderConfig& config, std::string_view model_type, ModelHead wanted) {
  const Kind& kind = *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& each) { return each.model_type == model_type; });
  RONDO_ASSIGN(const FolderTensors tensors, FolderTensors::open(folder));
  return Translator(config, tensors, kind, folder, wanted).translate();
}

}  // namespace rondo::models
