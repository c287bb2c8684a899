"""Tiny random encoders and encoder-decoders in the form of transformers' folders, with outputs that PyTorch computes in float64.

usage: encoder_references.py [--data FOLDER] OUT.safetensors
  FOLDER  independent results of transformers and PyTorch (bert, bart, marian, t5_relu, vit, aiayn_torch), which the code of
          encoder_models.py must give too before anything is written

For each case NAME: NAME/weights/<name in model.safetensors>, NAME/inputs/<name>, NAME/expected/<name>, and the text of its
config.json under NAME in __metadata__. Texts are padded on the right; rows of outputs at padded positions mean nothing.
Encoder-decoders have gen_tokens (B, 8): greedy from decoder_start_token_id without a stop, each best by at least 2 % of the range of
the logits they are taken from. Every tensor is random, also what training leaves at 0 or 1: leaving one out changes the outputs.
"""
import argparse
import json
import os

import numpy as np
import torch

import encoder_models
import tensor_files
from tensor_files import Tensor

CHECKED = ("bert", "bart", "marian", "t5_relu", "vit", "aiayn_torch")
TOLERANCE, LEAST_EFFECT, LEAST_GAP, LEAST_DISTINCT, MAX_FILE_BYTES = 2e-5, 1e-2, 0.02, 4, 700_000
GENERATED, VOCABULARY, POSITIONS, TEXTS = 8, 96, 40, (13, 7, 1)
WIDTH, INNER, NARROW, NARROW_INNER = 24, 28, 16, 20
# Keys' biases add the same to all scores of a query.
WITHOUT_EFFECT = (".key.bias", ".k_proj.bias", ".k_lin.bias")


class Weights(dict):
    """Random tensors by name, as a file stores them."""

    def __init__(self, seed, dtype="BF16"):
        super().__init__()
        self.numbers, self.dtype = np.random.default_rng(seed), dtype

    def store(self, name, values):
        self[name] = Tensor("BF16", tensor_files.bf16_bits(values)) if self.dtype == "BF16" else Tensor("F16", np.float16(values))

    def table(self, name, *shape, deviation=1.0):
        self.store(name, self.numbers.normal(0, deviation, shape))

    def linear(self, name, n_out, n_in, bias=True, gain=1.3):
        self.table(name + ".weight", n_out, n_in, deviation=gain / n_in ** 0.5)
        if bias:
            self.table(name + ".bias", n_out, deviation=0.4)

    def norm(self, name, width, bias=True):
        self.store(name + ".weight", self.numbers.uniform(0.4, 1.9, width))
        if bias:
            self.table(name + ".bias", width, deviation=0.4)

    def attention(self, prefix, names, width, inner=None, bias=True, out_bias=True):
        """The linears `names`: query, key, value, output."""
        inner = inner or width
        for name, gain in zip(names, (1.6, 1.6, 1.3)):
            self.linear(prefix + name, inner, width, bias, gain)
        self.linear(prefix + names[3], width, inner, out_bias)


def values_of(weights):
    return {name: torch.tensor(tensor_files.bf16_values(array) if dtype == "BF16" else array.astype(np.float64)) for name, (dtype, array) in weights.items()}


def configuration(architecture, model_type, dtype="bfloat16", n_labels=None, **keys):
    labels = {f"LABEL_{i}": i for i in range(n_labels)} if n_labels else {}
    named = {"id2label": {str(i): name for name, i in labels.items()}, "label2id": labels} if labels else {}
    return {"architectures": [architecture], "model_type": model_type} | keys | named | {"torch_dtype": dtype, "transformers_version": "4.47.0"}


def texts(numbers, padding, lengths=TEXTS, first=5, last=VOCABULARY - 1):
    """Random ids from `first` to `last` and their mask, padded on the right."""
    real = np.arange(max(lengths)) < np.array(lengths)[:, None]
    ids = np.where(real, numbers.integers(first, last + 1, real.shape), padding)
    return {"input_ids": Tensor("I32", ids), "attention_mask": Tensor("I32", real)}


def with_types(inputs, numbers):
    types = numbers.integers(0, 2, inputs["input_ids"].array.shape) * inputs["attention_mask"].array
    return inputs | {"token_type_ids": Tensor("I32", types)}


def bert_layers(weights, prefix, width, inner, n_layers):
    for i in range(n_layers):
        layer = f"{prefix}encoder.layer.{i}."
        weights.attention(layer + "attention.", ("self.query", "self.key", "self.value", "output.dense"), width)
        weights.norm(layer + "attention.output.LayerNorm", width)
        weights.linear(layer + "intermediate.dense", inner, width)
        weights.linear(layer + "output.dense", width, inner)
        weights.norm(layer + "output.LayerNorm", width)


def bert_embeddings(weights, prefix, width, n_types, n_positions):
    weights.table(prefix + "embeddings.word_embeddings.weight", VOCABULARY, width, deviation=0.4)
    if n_positions:
        weights.table(prefix + "embeddings.position_embeddings.weight", n_positions, width, deviation=0.3)
    weights.table(prefix + "embeddings.token_type_embeddings.weight", n_types, width, deviation=0.3)
    weights.norm(prefix + "embeddings.LayerNorm", width)


def bert_keys(width, n_heads, inner, n_layers, **changed):
    return {"vocab_size": VOCABULARY, "hidden_size": width, "num_hidden_layers": n_layers, "num_attention_heads": n_heads,
            "intermediate_size": inner, "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0,
            "position_embedding_type": "absolute", "use_cache": True, "classifier_dropout": None} | changed


def bert_mlm(seed):
    weights, width, inner = Weights(seed), 32, 52
    bert_embeddings(weights, "bert.", width, 2, POSITIONS)
    bert_layers(weights, "bert.", width, inner, 2)
    weights.linear("cls.predictions.transform.dense", width, width)
    weights.norm("cls.predictions.transform.LayerNorm", width)
    weights.table("cls.predictions.bias", VOCABULARY)
    return configuration("BertForMaskedLM", "bert", **bert_keys(width, 4, inner, 2)), weights, with_types(texts(weights.numbers, 0), weights.numbers)


def bert_head(architecture, head, n_labels, pooled=False):
    def of(seed):
        weights = Weights(seed)
        bert_embeddings(weights, "bert.", NARROW, 2, POSITIONS)
        bert_layers(weights, "bert.", NARROW, NARROW_INNER, 1)
        if pooled:
            weights.linear("bert.pooler.dense", NARROW, NARROW)
        weights.linear(head, n_labels, NARROW)
        keys = bert_keys(NARROW, 2, NARROW_INNER, 1)
        config = configuration(architecture, "bert", n_labels=n_labels if n_labels != 2 else None, **keys)
        return config, weights, with_types(texts(weights.numbers, 0), weights.numbers)
    return of


def bert_relative(kind, act, width, inner, n_heads):
    def of(seed):
        weights = Weights(seed)
        bert_embeddings(weights, "", width, 2, POSITIONS)  # the file has positions that are not used
        bert_layers(weights, "", width, inner, 2)
        for i in range(2):
            weights.table(f"encoder.layer.{i}.attention.self.distance_embedding.weight", 2 * POSITIONS - 1, width // n_heads)
        weights.linear("pooler.dense", width, width)
        keys = bert_keys(width, n_heads, inner, 2, position_embedding_type=kind, hidden_act=act)
        return configuration("BertModel", "bert", **keys), weights, with_types(texts(weights.numbers, 0), weights.numbers)
    return of


def bert_alibi(seed):
    weights, n_heads = Weights(seed), 3
    bert_embeddings(weights, "", WIDTH, 2, 0)
    for i in range(2):
        layer = f"encoder.layer.{i}."
        weights.attention(layer + "attention.", ("self.query", "self.key", "self.value", "output.dense"), WIDTH)
        weights.norm(layer + "attention.output.LayerNorm", WIDTH)
        weights.linear(layer + "mlp.gated_layers", 2 * INNER, WIDTH, bias=False)
        weights.linear(layer + "mlp.wo", WIDTH, INNER)
        weights.norm(layer + "mlp.layernorm", WIDTH)
    weights.linear("pooler.dense", WIDTH, WIDTH)
    keys = bert_keys(WIDTH, n_heads, INNER, 2, position_embedding_type="alibi", feed_forward_type="geglu", emb_pooler="mean", attn_implementation="torch")
    return configuration("JinaBertModel", "bert", **keys), weights, with_types(texts(weights.numbers, 0), weights.numbers)


def roberta_keys(n_layers):
    return bert_keys(NARROW, 2, NARROW_INNER, n_layers, type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)


def roberta(seed):
    weights = Weights(seed)
    bert_embeddings(weights, "roberta.", NARROW, 1, POSITIONS)
    bert_layers(weights, "roberta.", NARROW, NARROW_INNER, 2)
    weights.linear("lm_head.dense", NARROW, NARROW)
    weights.norm("lm_head.layer_norm", NARROW)
    weights.table("lm_head.bias", VOCABULARY)
    return configuration("RobertaForMaskedLM", "roberta", **roberta_keys(2)), weights, texts(weights.numbers, 1)


def roberta_cls(seed):
    weights = Weights(seed)
    bert_embeddings(weights, "roberta.", NARROW, 1, POSITIONS)
    bert_layers(weights, "roberta.", NARROW, NARROW_INNER, 1)
    weights.linear("classifier.dense", NARROW, NARROW)
    weights.linear("classifier.out_proj", 3, NARROW)
    return configuration("RobertaForSequenceClassification", "roberta", n_labels=3, **roberta_keys(1)), weights, texts(weights.numbers, 1)


def distilbert(architecture, act, width, inner, n_layers, add_head, n_labels=None):
    def of(seed):
        weights = Weights(seed)
        weights.table("distilbert.embeddings.word_embeddings.weight", VOCABULARY, width, deviation=0.4)
        weights.table("distilbert.embeddings.position_embeddings.weight", POSITIONS, width, deviation=0.3)
        weights.norm("distilbert.embeddings.LayerNorm", width)
        for i in range(n_layers):
            layer = f"distilbert.transformer.layer.{i}."
            weights.attention(layer + "attention.", ("q_lin", "k_lin", "v_lin", "out_lin"), width)
            weights.norm(layer + "sa_layer_norm", width)
            weights.linear(layer + "ffn.lin1", inner, width)
            weights.linear(layer + "ffn.lin2", width, inner)
            weights.norm(layer + "output_layer_norm", width)
        add_head(weights, width)
        config = configuration(
            architecture, "distilbert", n_labels=n_labels, activation=act, attention_dropout=0.0, dim=width, dropout=0.0, hidden_dim=inner,
            initializer_range=0.02, max_position_embeddings=POSITIONS, n_heads=2, n_layers=n_layers, pad_token_id=0, qa_dropout=0.0,
            seq_classif_dropout=0.0, sinusoidal_pos_embds=False, tie_weights_=True, vocab_size=VOCABULARY)
        return config, weights, texts(weights.numbers, 0)
    return of


def distilbert_classifier(weights, width):
    weights.linear("pre_classifier", width, width)
    weights.linear("classifier", 3, width)


def distilbert_words(weights, width):
    weights.linear("vocab_transform", width, width)
    weights.norm("vocab_layer_norm", width)
    weights.table("vocab_projector.bias", VOCABULARY)


def nomic_bert(seed):
    # Nomic's code makes the network's width a multiple of 256.
    weights, width, inner, n_layers = Weights(seed), NARROW, 256, 1
    weights.table("embeddings.word_embeddings.weight", VOCABULARY, width)
    weights.table("embeddings.token_type_embeddings.weight", 2, width)
    weights.norm("emb_ln", width)
    for i in range(n_layers):
        layer = f"encoder.layers.{i}."
        weights.linear(layer + "attn.Wqkv", 3 * width, width, bias=False, gain=1.6)
        weights.linear(layer + "attn.out_proj", width, width, bias=False)
        for name in ("fc11", "fc12"):
            weights.linear(layer + "mlp." + name, inner, width, bias=False)
        weights.linear(layer + "mlp.fc2", width, inner, bias=False)
        weights.norm(layer + "norm1", width)
        weights.norm(layer + "norm2", width)
    config = configuration(
        "NomicBertModel", "nomic_bert", activation_function="swiglu", attn_pdrop=0.0, bos_token_id=None, causal=False, dense_seq_output=True,
        embd_pdrop=0.0, eos_token_id=None, fused_bias_fc=True, fused_dropout_add_ln=True, initializer_range=0.02, layer_norm_epsilon=1e-12,
        max_trained_positions=2048, mlp_fc1_bias=False, mlp_fc2_bias=False, n_embd=width, n_head=2, n_inner=inner, n_layer=n_layers, n_positions=64,
        pad_vocab_size_multiple=32, parallel_block=False, parallel_block_tied_norm=False, prenorm=False, qkv_proj_bias=False,
        reorder_and_upcast_attn=False, resid_pdrop=0.0, rotary_emb_base=1000, rotary_emb_fraction=1.0, rotary_emb_interleaved=False,
        rotary_emb_scale_base=None, rotary_scaling_factor=None, scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True,
        type_vocab_size=2, use_cache=True, use_flash_attn=True, use_rms_norm=False, use_xentropy=True, vocab_size=VOCABULARY)
    return config, weights, with_types(texts(weights.numbers, 0), weights.numbers)


def vit(architecture, model_type, size, patch, width, inner, n_heads, n_layers, tokens=("cls_token",), qkv_bias=True, pooled=False):
    def of(seed):
        weights, prefix = Weights(seed, "F16"), "" if pooled else model_type + "."
        for token in tokens:
            weights.table(prefix + "embeddings." + token, 1, 1, width)
        weights.table(prefix + "embeddings.position_embeddings", 1, (size // patch) ** 2 + len(tokens), width, deviation=0.7)
        weights.table(prefix + "embeddings.patch_embeddings.projection.weight", width, 3, patch, patch, deviation=1 / (3 * patch * patch) ** 0.5)
        weights.table(prefix + "embeddings.patch_embeddings.projection.bias", width, deviation=0.4)
        for i in range(n_layers):
            layer = f"{prefix}encoder.layer.{i}."
            names = ("attention.query", "attention.key", "attention.value", "output.dense")
            weights.attention(layer + "attention.", names, width, bias=qkv_bias)
            weights.linear(layer + "intermediate.dense", inner, width)
            weights.linear(layer + "output.dense", width, inner)
            weights.norm(layer + "layernorm_before", width)
            weights.norm(layer + "layernorm_after", width)
        weights.norm(prefix + "layernorm", width)
        weights.linear("pooler.dense" if pooled else "classifier", width if pooled else 3, width)
        config = configuration(
            architecture, model_type, "float16", None if pooled else 3, hidden_size=width, num_hidden_layers=n_layers, num_attention_heads=n_heads,
            intermediate_size=inner, hidden_act="gelu", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.02,
            layer_norm_eps=1e-12, image_size=size, patch_size=patch, num_channels=3, qkv_bias=qkv_bias, encoder_stride=16)
        return config, weights, {"pixel_values": Tensor("F32", weights.numbers.normal(0, 1, (2, 3, size, size)).astype(np.float32))}
    return of


def clip_layers(weights, prefix, width, inner, n_layers):
    for i in range(n_layers):
        layer = f"{prefix}encoder.layers.{i}."
        weights.attention(layer + "self_attn.", ("q_proj", "k_proj", "v_proj", "out_proj"), width)
        weights.norm(layer + "layer_norm1", width)
        weights.linear(layer + "mlp.fc1", inner, width)
        weights.linear(layer + "mlp.fc2", width, inner)
        weights.norm(layer + "layer_norm2", width)


def clip(end, widths, inners, n_layers):
    """Texts end with the highest id where `end` is 2, as in old files, and with `end`, repeated as padding, elsewhere."""
    def of(seed):
        weights, projected, size, patch, n_positions = Weights(seed, "F16"), 20, 12, 4, 20
        weights.table("text_model.embeddings.token_embedding.weight", VOCABULARY, widths[0])
        weights.table("text_model.embeddings.position_embedding.weight", n_positions, widths[0], deviation=0.7)
        clip_layers(weights, "text_model.", widths[0], inners[0], n_layers)
        weights.norm("text_model.final_layer_norm", widths[0])
        weights.table("vision_model.embeddings.class_embedding", widths[1])
        weights.table("vision_model.embeddings.patch_embedding.weight", widths[1], 3, patch, patch, deviation=1 / (3 * patch * patch) ** 0.5)
        weights.table("vision_model.embeddings.position_embedding.weight", (size // patch) ** 2 + 1, widths[1], deviation=0.7)
        weights.norm("vision_model.pre_layrnorm", widths[1])
        clip_layers(weights, "vision_model.", widths[1], inners[1], n_layers)
        weights.norm("vision_model.post_layernorm", widths[1])
        weights.linear("visual_projection", projected, widths[1], bias=False)
        weights.linear("text_projection", projected, widths[0], bias=False)
        weights.store("logit_scale", np.array(2.1))
        towers = [{"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": n_layers, "num_attention_heads": 2, "projection_dim": projected,
                   "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "attention_dropout": 0.0} for width, inner in zip(widths, inners)]
        text = towers[0] | {"model_type": "clip_text_model", "vocab_size": VOCABULARY, "max_position_embeddings": n_positions,
                            "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": end}
        vision = towers[1] | {"model_type": "clip_vision_model", "image_size": size, "patch_size": patch, "num_channels": 3}
        config = configuration("CLIPModel", "clip", "float16", projection_dim=projected, logit_scale_init_value=2.6592,
                               text_config=text, vision_config=vision)
        inputs = texts(weights.numbers, 1 if end == 2 else end, last=VOCABULARY - 2)
        ids = inputs["input_ids"].array
        ids[(ids == end) & (inputs["attention_mask"].array == 1)] = 3
        ids[np.arange(len(TEXTS)), np.array(TEXTS) - 1] = VOCABULARY - 1 if end == 2 else end
        return config, weights, inputs | {"pixel_values": Tensor("F32", weights.numbers.normal(0, 1, (2, 3, size, size)).astype(np.float32))}
    return of


def with_decoder(inputs, numbers, start):
    ids = numbers.integers(5, VOCABULARY, (len(TEXTS), 5))
    ids[:, 0] = start
    return inputs | {"decoder_input_ids": Tensor("I32", ids)}


def bart_like(model_type, architecture, act, n_layers, n_heads, inner, stored):
    """mBART and M2M100; layers, heads and inner widths of encoder and decoder."""
    def of(seed):
        weights = Weights(seed)
        weights.table("model.shared.weight", VOCABULARY, NARROW, deviation=1 / NARROW ** 0.5)
        if stored:
            weights.table("final_logits_bias", 1, VOCABULARY, deviation=0.5)
        for side, layers, size in zip(("encoder", "decoder"), n_layers, inner):
            if stored:
                weights.table(f"model.{side}.embed_positions.weight", POSITIONS + 2, NARROW, deviation=0.7)
                weights.norm(f"model.{side}.layernorm_embedding", NARROW)
            for i in range(layers):
                layer = f"model.{side}.layers.{i}."
                for part in ("self_attn", "encoder_attn")[:1 if side == "encoder" else 2]:
                    weights.attention(f"{layer}{part}.", ("q_proj", "k_proj", "v_proj", "out_proj"), NARROW)
                    weights.norm(f"{layer}{part}_layer_norm", NARROW)
                weights.linear(layer + "fc1", size, NARROW)
                weights.linear(layer + "fc2", NARROW, size)
                weights.norm(layer + "final_layer_norm", NARROW)
            weights.norm(f"model.{side}.layer_norm", NARROW)
        config = configuration(
            architecture, model_type, vocab_size=VOCABULARY, max_position_embeddings=POSITIONS, d_model=NARROW,
            encoder_layers=n_layers[0], encoder_attention_heads=n_heads[0], encoder_ffn_dim=inner[0],
            decoder_layers=n_layers[1], decoder_attention_heads=n_heads[1], decoder_ffn_dim=inner[1],
            encoder_layerdrop=0.0, decoder_layerdrop=0.0, activation_function=act, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
            init_std=0.02, scale_embedding=True, use_cache=True, is_encoder_decoder=True, num_hidden_layers=n_layers[0], pad_token_id=1,
            bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
        return config, weights, with_decoder(texts(weights.numbers, 1), weights.numbers, 2)
    return of


def t5(architecture, projection, n_heads, key_width, n_layers):
    """T5; layers of encoder and decoder, none of which makes a T5EncoderModel."""
    def of(seed):
        weights, buckets, gated = Weights(seed), 8, projection.startswith("gated-")
        weights.table("shared.weight", VOCABULARY, NARROW)
        for side, layers in zip(("encoder", "decoder"), n_layers):
            for i in range(layers):
                layer = f"{side}.block.{i}.layer."
                attentions = ("SelfAttention", "EncDecAttention")[:1 if side == "encoder" else 2]
                for at, name in enumerate(attentions):
                    weights.attention(f"{layer}{at}.{name}.", "qkvo", NARROW, n_heads * key_width, bias=False, out_bias=False)
                    for part in "qk":  # the scores are not scaled
                        scaled = tensor_files.bf16_values(weights[f"{layer}{at}.{name}.{part}.weight"].array) / key_width ** 0.25
                        weights.store(f"{layer}{at}.{name}.{part}.weight", scaled)
                    weights.norm(f"{layer}{at}.layer_norm", NARROW, bias=False)
                if i == 0:
                    weights.table(layer + "0.SelfAttention.relative_attention_bias.weight", buckets, n_heads, deviation=1.5)
                for name in ("wi_0", "wi_1") if gated else ("wi",):
                    weights.linear(f"{layer}{len(attentions)}.DenseReluDense.{name}", NARROW_INNER, NARROW, bias=False)
                weights.linear(f"{layer}{len(attentions)}.DenseReluDense.wo", NARROW, NARROW_INNER, bias=False)
                weights.norm(f"{layer}{len(attentions)}.layer_norm", NARROW, bias=False)
            if layers:
                weights.norm(side + ".final_layer_norm", NARROW, bias=False)
        if gated:
            weights.linear("lm_head", VOCABULARY, NARROW, bias=False, gain=2)
        config = configuration(
            architecture, "t5", vocab_size=VOCABULARY, d_model=NARROW, d_kv=key_width, d_ff=NARROW_INNER, num_layers=n_layers[0],
            num_decoder_layers=n_layers[1] or n_layers[0], num_heads=n_heads, relative_attention_num_buckets=buckets,
            relative_attention_max_distance=12, dropout_rate=0.0, classifier_dropout=0.0, layer_norm_epsilon=1e-6, initializer_factor=1.0,
            feed_forward_proj=projection, dense_act_fn="gelu_new" if gated else projection, is_gated_act=gated, is_encoder_decoder=True,
            use_cache=True, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0, tie_word_embeddings=not gated)
        inputs = texts(weights.numbers, 0)
        return config, weights, with_decoder(inputs, weights.numbers, 0) if n_layers[1] else inputs
    return of


def transformer_prenorm(seed):
    weights = Weights(seed)
    weights.table("embedding.weight", VOCABULARY, NARROW, deviation=1 / NARROW ** 0.5)
    for side, attentions in (("encoder", ("self_attn",)), ("decoder", ("self_attn", "multihead_attn"))):
        for i in range(2):
            layer = f"transformer.{side}.layers.{i}."
            for name in attentions:
                weights.table(f"{layer}{name}.in_proj_weight", 3 * NARROW, NARROW, deviation=1.6 / NARROW ** 0.5)
                weights.table(f"{layer}{name}.in_proj_bias", 3 * NARROW, deviation=0.4)
                weights.linear(f"{layer}{name}.out_proj", NARROW, NARROW)
            weights.linear(layer + "linear1", NARROW_INNER, NARROW)
            weights.linear(layer + "linear2", NARROW, NARROW_INNER)
            for at in range(len(attentions) + 1):
                weights.norm(f"{layer}norm{at + 1}", NARROW)
        weights.norm(f"transformer.{side}.norm", NARROW)
    config = {
        "model_type": "torch_nn_transformer", "architectures": ["nn.Transformer"], "vocab_size": VOCABULARY, "d_model": NARROW, "encoder_layers": 2,
        "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": NARROW_INNER, "decoder_ffn_dim": NARROW_INNER,
        "activation_function": "gelu", "normalize_before": True, "layer_norm_eps": 1e-5, "final_layer_norm": True, "scale_embedding": True,
        "position_embedding_type": "sinusoidal_interleaved", "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        "pad_token_id": 0, "decoder_start_token_id": 1, "torch_dtype": "bfloat16"}
    return config, weights, with_decoder(texts(weights.numbers, 0), weights.numbers, 1)


CASES = {
    "bert_mlm": bert_mlm,
    "bert_cls": bert_head("BertForSequenceClassification", "classifier", 3, pooled=True),
    "bert_tokens": bert_head("BertForTokenClassification", "classifier", 3),
    "bert_qa": bert_head("BertForQuestionAnswering", "qa_outputs", 2),
    "bert_relative_key": bert_relative("relative_key", "gelu_new", WIDTH, INNER, 2),
    "bert_relative_key_query": bert_relative("relative_key_query", "relu", NARROW, NARROW_INNER, 2),
    "bert_alibi": bert_alibi,
    "roberta": roberta,
    "roberta_cls": roberta_cls,
    "distilbert": distilbert("DistilBertForSequenceClassification", "gelu", NARROW, NARROW_INNER, 2, distilbert_classifier, 3),
    "distilbert_mlm": distilbert("DistilBertForMaskedLM", "relu", NARROW, NARROW_INNER, 1, distilbert_words),
    "nomic_bert": nomic_bert,
    "transformer_prenorm": transformer_prenorm,
    "m2m100": bart_like("m2m_100", "M2M100ForConditionalGeneration", "relu", (2, 2), (2, 2), (NARROW_INNER, 28), stored=False),
    "mbart": bart_like("mbart", "MBartForConditionalGeneration", "gelu", (2, 2), (2, 2), (NARROW_INNER, 12), stored=True),
    "t5_gated": t5("T5ForConditionalGeneration", "gated-gelu", 3, 8, (2, 3)),
    "t5_encoder": t5("T5EncoderModel", "relu", 3, 8, (2, 0)),
    "deit": vit("DeiTForImageClassification", "deit", 12, 4, WIDTH, INNER, 3, 2, tokens=("cls_token", "distillation_token")),
    "vit_pooled": vit("ViTModel", "vit", 24, 8, NARROW, NARROW_INNER, 2, 2, pooled=True),
    "vit_no_qkv_bias": vit("ViTForImageClassification", "vit", 12, 4, WIDTH, INNER, 2, 1, qkv_bias=False),
    "clip": clip(2, (NARROW, WIDTH), (NARROW_INNER, INNER), 2),
    "clip_eos": clip(70, (WIDTH, NARROW), (INNER, NARROW_INNER), 1),
}
# What a class of transformers returns beside what the functions of encoder_models.py give.
LEFT_OUT = {"ViTForImageClassification": ("last_hidden_state",), "DeiTForImageClassification": ("last_hidden_state",)}


def inputs_of(tensors):
    return {name: torch.tensor(array.astype(np.float64 if dtype == "F32" else np.int64)) for name, (dtype, array) in tensors.items()}


def outputs_of(config, weights, inputs):
    with torch.no_grad():
        outputs = encoder_models.MODELS[config["model_type"]](config, dict(weights), inputs)
    return {name: values for name, values in outputs.items() if values is not None and name not in LEFT_OUT.get(config["architectures"][0], ())}


def real_rows(name, values, inputs):
    """Without the rows of padded tokens."""
    of_text = "attention_mask" in inputs and values.shape[:2] == inputs["attention_mask"].shape and values.dim() == 3
    return values[inputs["attention_mask"] == 1] if of_text else values


def check_known(folder):
    """The models give what transformers and PyTorch gave elsewhere."""
    for name in CHECKED:
        def read(part, case=name):
            return tensor_files.read_safetensors(os.path.join(folder, case, part + ".safetensors"))
        with open(os.path.join(folder, name, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        weights, inputs, expected = values_of(read("model")), inputs_of(read("inputs")), read("expected")
        outputs = encoder_models.MODELS[config["model_type"]](config, dict(weights), inputs)
        if "gen_tokens" in expected:
            steps = expected["gen_tokens"].array.shape[1]
            with torch.no_grad():
                tokens, outputs["gen_logits"] = encoder_models.generate(config, dict(weights), inputs, steps)
            assert (tokens.numpy() == expected["gen_tokens"].array).all(), f"{name}: other tokens"
        for output, values in outputs.items():
            known = torch.tensor(expected[output].array.astype(np.float64))
            worst = (real_rows(output, values.detach(), inputs) - real_rows(output, known, inputs)).abs().max().item()
            print(f"{name}: {output} differs by {worst:.1e}")
            assert worst < TOLERANCE, f"{name}: {output} differs by {worst}"


def least_effect(name, config, weights, inputs, outputs):
    """The smallest change of the outputs when one tensor is left out: a norm's scale 1, anything else 0."""
    smallest = (float("inf"), "")
    for left_out, values in weights.items():
        unused = config.get("position_embedding_type", "absolute") != "absolute" and left_out.endswith("position_embeddings.weight")
        if unused or left_out.endswith(WITHOUT_EFFECT):
            continue
        is_scale = values.dim() == 1 and left_out.endswith(".weight")
        changed = outputs_of(config, weights | {left_out: torch.ones_like(values) if is_scale else torch.zeros_like(values)}, inputs)
        effect = max((real_rows(key, changed[key], inputs) - real_rows(key, values, inputs)).abs().max().item() for key, values in outputs.items())
        smallest = min(smallest, (effect, left_out))
    assert smallest[0] > LEAST_EFFECT, f"{name}: {smallest[1]} changes the outputs by {smallest[0]} only"
    return smallest


def generated(config, weights, inputs):
    """Greedy tokens where each is the best by far and there are several of them, the padding among none; else nothing."""
    with torch.no_grad():
        tokens, logits = encoder_models.generate(config, weights, inputs, GENERATED)
    best = logits.topk(2).values
    gap = ((best[..., 0] - best[..., 1]).min() / (logits.max() - logits.min())).item()
    fits = gap >= LEAST_GAP and len(tokens.unique()) >= LEAST_DISTINCT and not (tokens == config["pad_token_id"]).any()
    return (tokens, gap) if fits else None


def make_case(name, number):
    """Tensors of a case by name and its configuration, from the first seed whose tokens are certain."""
    for seed in range(10_000 * number, 10_000 * (number + 1)):
        config, stored, inputs = CASES[name](seed)
        weights, given, tokens = values_of(stored), inputs_of(inputs), None
        if "decoder_input_ids" in inputs:
            tokens = generated(config, dict(weights), given)
            if tokens is None:
                continue
        outputs = outputs_of(config, weights, given)
        effect, least = least_effect(name, config, weights, given, outputs)
        packed = {f"{name}/weights/{key}": tensor for key, tensor in stored.items()} | {f"{name}/inputs/{key}": tensor for key, tensor in inputs.items()}
        packed |= {f"{name}/expected/{key}": Tensor("F32", values.numpy()) for key, values in outputs.items()}
        if tokens is not None:
            packed[f"{name}/expected/gen_tokens"] = Tensor("I32", tokens[0].numpy())
        spread = ", ".join(f"{key} {tuple(values.shape)} +-{real_rows(key, values, given).std():.2f}" for key, values in outputs.items())
        certain = f"; {len(tokens[0].unique())} tokens, gap {tokens[1]:.3f}" if tokens else ""
        print(f"{name} (seed {seed}): {spread}{certain}; without {least} {effect:.2f} off")
        return packed, config
    raise ValueError(f"{name}: no seed gives certain tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data")
    parser.add_argument("out")
    options = parser.parse_args()
    torch.set_num_threads(1)  # the models are too small to share
    if options.data:
        check_known(options.data)
    tensors, texts_of_cases = {}, {}
    for number, name in enumerate(CASES):
        packed, config = make_case(name, number + 1)
        tensors |= packed
        texts_of_cases[name] = json.dumps(config, separators=(",", ":"))
    tensor_files.write_safetensors(options.out, tensors, texts_of_cases)
    n_bytes = os.path.getsize(options.out)
    print(f"{len(CASES)} cases, {len(tensors)} tensors, {n_bytes} bytes")
    assert n_bytes <= MAX_FILE_BYTES, f"more than {MAX_FILE_BYTES} bytes"


if __name__ == "__main__":
    main()
