"""Encoders and encoder-decoders in PyTorch and float64, from their papers and what transformers' published code computes.

Each function of MODELS takes config.json as a dictionary, the tensors of model.safetensors in float64 and the inputs by name,
and gives the outputs by the names that transformers gives them. Padding is on the right; padded positions mean nothing.
"""
import math

import torch
from torch.nn import functional

import torch_reference

ACTIVATIONS = {
    "gelu": functional.gelu, "gelu_new": lambda x: functional.gelu(x, approximate="tanh"), "relu": functional.relu,
    "silu": functional.silu, "swish": functional.silu, "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


class Model(torch_reference.Network):
    """A configuration and its tensors; what all models here are made of."""

    def __init__(self, config, weights, epsilon):
        self.keys, self.weights, self.epsilon = config, weights, epsilon

    def rms_norm(self, x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.epsilon) * self.weights[name + ".weight"]

    def attend(self, x, memory, names, n_heads, mask, bias=None, scale=None, turn=lambda heads: heads):
        """Attention of x (B, T, n) to memory (B, S, n), whose linears `names` lists: query, key, value, output. Hidden keys
        have -inf in `mask`; bias(queries, keys) adds to the scaled scores; `turn` gives queries and keys their positions."""
        q, k, v = (self.linear(of, name).unflatten(-1, (n_heads, -1)).transpose(1, 2)
                   for of, name in ((x, names[0]), (memory, names[1]), (memory, names[2])))
        q, k = turn(q), turn(k)
        scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale) + mask
        if bias is not None:
            scores = scores + bias(q, k)
        return self.linear((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), names[3])


def padding_mask(attention_mask):
    return torch.zeros(attention_mask.shape, dtype=torch.float64).masked_fill(attention_mask == 0, float("-inf"))[:, None, None]


def causal_mask(n_tokens):
    return torch.full((n_tokens, n_tokens), float("-inf"), dtype=torch.float64).triu(1)


def counted_positions(ids, padding):
    """RoBERTa's and fairseq's: tokens are counted from padding + 1; padding stands at `padding`."""
    real = (ids != padding).long()
    return real.cumsum(1) * real + padding


def distances(n_queries, n_keys):
    """Key's position minus query's."""
    return torch.arange(n_keys)[None, :] - torch.arange(n_queries)[:, None]


def alibi_slopes(n_heads):
    """Press et al. 2022, with their rule for counts of heads that are no power of two."""
    power = 2 ** int(math.log2(n_heads))
    slopes = [2.0 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes if power == n_heads else slopes + alibi_slopes(2 * power)[0::2][:n_heads - power]


def bert_bias(model, layer):
    """What position_embedding_type adds to the scores of a layer: nothing, Shaw et al. 2018 by keys, Huang et al. 2020 by keys
    and queries, both with one table for all heads and the distance query - key, or symmetric ALiBi."""
    kind = model.keys.get("position_embedding_type", "absolute")

    def alibi(q, k):
        slopes = torch.tensor(alibi_slopes(q.shape[1]), dtype=torch.float64)
        return -slopes[:, None, None] * distances(q.shape[2], k.shape[2]).abs()

    def relative(q, k):
        table = model.weights[layer + "attention.self.distance_embedding.weight"]
        rows = table[model.keys["max_position_embeddings"] - 1 - distances(q.shape[2], k.shape[2])]
        scores = torch.einsum("bhqd,qkd->bhqk", q, rows)
        if kind == "relative_key_query":
            scores = scores + torch.einsum("bhkd,qkd->bhqk", k, rows)
        return scores / q.shape[-1] ** 0.5

    return {"absolute": None, "alibi": alibi}.get(kind, relative)


def bert_hidden(model, inputs, prefix):
    """BERT (Devlin et al. 2018), RoBERTa (Liu et al. 2019) with counted positions, Jina's BERT (Günther et al. 2023) with ALiBi
    and GEGLU: norms after attention and network."""
    config, ids = model.keys, inputs["input_ids"]
    act, names = ACTIVATIONS[config["hidden_act"]], ("self.query", "self.key", "self.value", "output.dense")
    types = inputs.get("token_type_ids", torch.zeros_like(ids))
    x = model.weights[prefix + "embeddings.word_embeddings.weight"][ids] + model.weights[prefix + "embeddings.token_type_embeddings.weight"][types]
    if config.get("position_embedding_type", "absolute") == "absolute":
        counted = config["model_type"] == "roberta"
        positions = counted_positions(ids, config["pad_token_id"]) if counted else torch.arange(ids.shape[1])
        x = x + model.weights[prefix + "embeddings.position_embeddings.weight"][positions]
    x, mask = model.norm(x, prefix + "embeddings.LayerNorm"), padding_mask(inputs["attention_mask"])
    for i in range(config["num_hidden_layers"]):
        layer = f"{prefix}encoder.layer.{i}."
        attended = model.attend(x, x, [layer + "attention." + name for name in names], config["num_attention_heads"], mask, bert_bias(model, layer))
        x = model.norm(x + attended, layer + "attention.output.LayerNorm")
        if config.get("feed_forward_type") == "geglu":
            gate, up = model.linear(x, layer + "mlp.gated_layers").chunk(2, dim=-1)
            x = model.norm(model.linear(functional.gelu(gate) * up, layer + "mlp.wo") + x, layer + "mlp.layernorm")
        else:
            inner = act(model.linear(x, layer + "intermediate.dense"))
            x = model.norm(model.linear(inner, layer + "output.dense") + x, layer + "output.LayerNorm")
    return x


def bert(config, weights, inputs):
    model, architecture = Model(config, weights, config["layer_norm_eps"]), config["architectures"][0]
    bare = architecture.endswith("BertModel")
    prefix = "" if bare else config["model_type"] + "."
    x = bert_hidden(model, inputs, prefix)
    pooled = torch.tanh(model.linear(x[:, 0], prefix + "pooler.dense")) if prefix + "pooler.dense.weight" in weights else None
    if bare:
        return {"last_hidden_state": x, "pooler_output": pooled}
    if architecture == "BertForMaskedLM":
        x = ACTIVATIONS[config["hidden_act"]](model.linear(x, "cls.predictions.transform.dense"))
        x = model.norm(x, "cls.predictions.transform.LayerNorm")
        return {"logits": x @ weights[prefix + "embeddings.word_embeddings.weight"].T + weights["cls.predictions.bias"]}
    if architecture == "RobertaForMaskedLM":
        x = model.norm(functional.gelu(model.linear(x, "lm_head.dense")), "lm_head.layer_norm")
        return {"logits": x @ weights[prefix + "embeddings.word_embeddings.weight"].T + weights["lm_head.bias"]}
    if architecture == "RobertaForSequenceClassification":
        return {"logits": model.linear(torch.tanh(model.linear(x[:, 0], "classifier.dense")), "classifier.out_proj")}
    if architecture == "BertForQuestionAnswering":
        return {"logits": model.linear(x, "qa_outputs")}
    return {"logits": model.linear(x if architecture == "BertForTokenClassification" else pooled, "classifier")}


def distilbert(config, weights, inputs):
    """DistilBERT (Sanh et al. 2019): BERT's layers without token types and pooler."""
    model, ids = Model(config, weights, 1e-12), inputs["input_ids"]
    act, prefix, names = ACTIVATIONS[config["activation"]], "distilbert.", ("q_lin", "k_lin", "v_lin", "out_lin")
    embedding = weights[prefix + "embeddings.word_embeddings.weight"]
    x = embedding[ids] + weights[prefix + "embeddings.position_embeddings.weight"][:ids.shape[1]]
    x, mask = model.norm(x, prefix + "embeddings.LayerNorm"), padding_mask(inputs["attention_mask"])
    for i in range(config["n_layers"]):
        layer = f"{prefix}transformer.layer.{i}."
        x = model.norm(model.attend(x, x, [layer + "attention." + name for name in names], config["n_heads"], mask) + x, layer + "sa_layer_norm")
        x = model.norm(model.linear(act(model.linear(x, layer + "ffn.lin1")), layer + "ffn.lin2") + x, layer + "output_layer_norm")
    if config["architectures"] == ["DistilBertForMaskedLM"]:
        x = model.norm(act(model.linear(x, "vocab_transform")), "vocab_layer_norm")
        return {"logits": x @ embedding.T + weights["vocab_projector.bias"]}
    return {"logits": model.linear(functional.relu(model.linear(x[:, 0], "pre_classifier")), "classifier")}


def nomic_bert(config, weights, inputs):
    """Nomic's BERT (Nussbaum et al. 2024): RoPE of a head's halves, SwiGLU whose gate is fc12, norms after attention and network."""
    model, ids = Model(config, weights, config["layer_norm_epsilon"]), inputs["input_ids"]
    n_heads, width = config["n_head"], config["n_embd"]
    rotated = int(width // n_heads * config["rotary_emb_fraction"])
    frequencies = config["rotary_emb_base"] ** (-torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
    angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * frequencies

    def turn(heads):
        first, second = heads[..., :rotated].chunk(2, dim=-1)
        return torch.cat((first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin(), heads[..., rotated:]), dim=-1)

    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][inputs["token_type_ids"]]
    x, mask = model.norm(x, "emb_ln"), padding_mask(inputs["attention_mask"])
    for i in range(config["n_layer"]):
        layer = f"encoder.layers.{i}."
        for part, rows in zip("qkv", weights[layer + "attn.Wqkv.weight"].chunk(3)):
            model.weights[f"{layer}attn.{part}.weight"] = rows
        attended = model.attend(x, x, [layer + "attn." + name for name in ("q", "k", "v", "out_proj")], n_heads, mask, turn=turn)
        x = model.norm(attended + x, layer + "norm1")
        inner = model.linear(x, layer + "mlp.fc11") * functional.silu(model.linear(x, layer + "mlp.fc12"))
        x = model.norm(model.linear(inner, layer + "mlp.fc2") + x, layer + "norm2")
    return {"last_hidden_state": x}


def vit(config, weights, inputs):
    """ViT (Dosovitskiy et al. 2020), and DeiT (Touvron et al. 2020), which has a second token: norms before attention and network."""
    model, prefix = Model(config, weights, config["layer_norm_eps"]), "" if config["architectures"] == ["ViTModel"] else config["model_type"] + "."
    act, names = ACTIVATIONS[config["hidden_act"]], ("attention.query", "attention.key", "attention.value", "output.dense")
    patches = prefix + "embeddings.patch_embeddings.projection"
    x = functional.conv2d(inputs["pixel_values"], weights[patches + ".weight"], weights[patches + ".bias"], stride=config["patch_size"])
    x = x.flatten(2).transpose(1, 2)
    tokens = [weights[prefix + "embeddings." + name] for name in ("cls_token", "distillation_token") if prefix + "embeddings." + name in weights]
    x = torch.cat([token.expand(len(x), -1, -1) for token in tokens] + [x], dim=1) + weights[prefix + "embeddings.position_embeddings"]
    for i in range(config["num_hidden_layers"]):
        layer = f"{prefix}encoder.layer.{i}."
        h = model.norm(x, layer + "layernorm_before")
        x = x + model.attend(h, h, [layer + "attention." + name for name in names], config["num_attention_heads"], torch.zeros(1))
        inner = act(model.linear(model.norm(x, layer + "layernorm_after"), layer + "intermediate.dense"))
        x = x + model.linear(inner, layer + "output.dense")
    x = model.norm(x, prefix + "layernorm")
    if "pooler.dense.weight" in weights:
        return {"last_hidden_state": x, "pooler_output": torch.tanh(model.linear(x[:, 0], "pooler.dense"))}
    return {"last_hidden_state": x, "logits": model.linear(x[:, 0], "classifier")}


def clip_tower(config, weights, prefix, x, mask):
    model, act = Model(config, weights, config["layer_norm_eps"]), ACTIVATIONS[config["hidden_act"]]
    for i in range(config["num_hidden_layers"]):
        layer = f"{prefix}encoder.layers.{i}."
        h = model.norm(x, layer + "layer_norm1")
        x = x + model.attend(h, h, [f"{layer}self_attn.{name}_proj" for name in ("q", "k", "v", "out")], config["num_attention_heads"], mask)
        x = x + model.linear(act(model.linear(model.norm(x, layer + "layer_norm2"), layer + "mlp.fc1")), layer + "mlp.fc2")
    return x


def clip(config, weights, inputs):
    """CLIP (Radford et al. 2021): a text's vector stands at its end, the highest id where eos_token_id is 2, as it was in old files."""
    text, vision, ids = config["text_config"], config["vision_config"], inputs["input_ids"]
    x = weights["text_model.embeddings.token_embedding.weight"][ids] + weights["text_model.embeddings.position_embedding.weight"][:ids.shape[1]]
    x = clip_tower(text, weights, "text_model.", x, padding_mask(inputs["attention_mask"]) + causal_mask(ids.shape[1]))
    x = Model(text, weights, text["layer_norm_eps"]).norm(x, "text_model.final_layer_norm")
    ends = (ids if text["eos_token_id"] == 2 else (ids == text["eos_token_id"]).int()).argmax(-1)
    texts = functional.normalize(x[torch.arange(len(ids)), ends] @ weights["text_projection.weight"].T, dim=-1)

    model = Model(vision, weights, vision["layer_norm_eps"])
    y = functional.conv2d(inputs["pixel_values"], weights["vision_model.embeddings.patch_embedding.weight"], stride=vision["patch_size"])
    y = y.flatten(2).transpose(1, 2)
    y = torch.cat([weights["vision_model.embeddings.class_embedding"].expand(len(y), 1, -1), y], dim=1)
    y = model.norm(y + weights["vision_model.embeddings.position_embedding.weight"], "vision_model.pre_layrnorm")
    y = model.norm(clip_tower(vision, weights, "vision_model.", y, torch.zeros(1))[:, 0], "vision_model.post_layernorm")
    images = functional.normalize(y @ weights["visual_projection.weight"].T, dim=-1)
    return {"text_embeds": texts, "image_embeds": images, "logits_per_image": images @ texts.T * weights["logit_scale"].exp()}


class Bart(Model):
    """BART (Lewis et al. 2019) and Marian with norms after each part, mBART (Liu et al. 2020) and M2M100 (Fan et al. 2020) with
    norms before each and after the last."""

    def __init__(self, config, weights):
        super().__init__(config, weights, 1e-5)
        self.norms_first = config["model_type"] in ("mbart", "m2m_100")
        self.act, self.embedding = ACTIVATIONS[config["activation_function"]], weights["model.shared.weight"]

    def positions(self, ids, prefix):
        table = self.weights.get(prefix + "embed_positions.weight")
        if self.keys["model_type"] == "m2m_100":
            numbers, half = counted_positions(ids, self.keys["pad_token_id"]), self.keys["d_model"] // 2
            frequencies = torch.exp(-math.log(10000) / (half - 1) * torch.arange(half, dtype=torch.float64))
            angles = numbers[..., None] * frequencies
            return torch.cat((angles.sin(), angles.cos()), dim=-1) * (ids != self.keys["pad_token_id"])[..., None]
        return table[:ids.shape[1]] if self.keys["model_type"] == "marian" else table[2:2 + ids.shape[1]]

    def part(self, x, name, of):
        """x + of(x) with a norm before or after."""
        return x + of(self.norm(x, name)) if self.norms_first else self.norm(x + of(x), name)

    def stack(self, side, ids, mask, memory=None, memory_mask=None):
        prefix, n_heads = f"model.{side}.", self.keys[side + "_attention_heads"]
        x = self.embedding[ids] * (self.keys["d_model"] ** 0.5 if self.keys["scale_embedding"] else 1) + self.positions(ids, prefix)
        if prefix + "layernorm_embedding.weight" in self.weights:
            x = self.norm(x, prefix + "layernorm_embedding")
        for i in range(self.keys[side + "_layers"]):
            layer = f"{prefix}layers.{i}."
            own, cross = ([f"{layer}{which}.{name}_proj" for name in ("q", "k", "v", "out")] for which in ("self_attn", "encoder_attn"))
            x = self.part(x, layer + "self_attn_layer_norm", lambda h, names=own: self.attend(h, h, names, n_heads, mask))
            if memory is not None:
                x = self.part(x, layer + "encoder_attn_layer_norm", lambda h, names=cross: self.attend(h, memory, names, n_heads, memory_mask))
            x = self.part(x, layer + "final_layer_norm", lambda h, name=layer: self.linear(self.act(self.linear(h, name + "fc1")), name + "fc2"))
        return self.norm(x, prefix + "layer_norm") if self.norms_first else x

    def encode(self, ids, attention_mask):
        return self.stack("encoder", ids, padding_mask(attention_mask))

    def decode(self, ids, memory, attention_mask):
        x = self.stack("decoder", ids, causal_mask(ids.shape[1]), memory, padding_mask(attention_mask))
        return x @ self.embedding.T + self.weights.get("final_logits_bias", 0)


class T5(Model):
    """T5 (Raffel et al. 2019) and its version 1.1 (Shazeer 2020): relative buckets of the first layer for all, unscaled scores."""

    def __init__(self, config, weights):
        super().__init__(config, weights, config["layer_norm_epsilon"])

    def bias(self, prefix, both_ways):
        n_all, reach = self.keys["relative_attention_num_buckets"], self.keys["relative_attention_max_distance"]
        table = self.weights[prefix + "block.0.layer.0.SelfAttention.relative_attention_bias.weight"]

        def of(q, k):
            steps = distances(q.shape[2], k.shape[2])
            n = n_all // 2 if both_ways else n_all
            buckets = (steps > 0) * n if both_ways else 0
            steps = steps.abs() if both_ways else (-steps).clamp(min=0)
            exact = n // 2
            # In float32, where transformers rounds too.
            far = exact + (torch.log(steps.clamp(min=1).float() / exact) / math.log(reach / exact) * (n - exact)).long()
            return table[buckets + torch.where(steps < exact, steps, far.clamp(max=n - 1))].permute(2, 0, 1)

        return of

    def network(self, x, name):
        gated = self.keys["feed_forward_proj"].startswith("gated-")
        act = ACTIVATIONS["gelu_new" if self.keys["feed_forward_proj"] == "gated-gelu" else self.keys["feed_forward_proj"].removeprefix("gated-")]
        inner = act(self.linear(x, name + "wi_0")) * self.linear(x, name + "wi_1") if gated else act(self.linear(x, name + "wi"))
        return self.linear(inner, name + "wo")

    def stack(self, side, ids, mask, memory=None, memory_mask=None):
        n_layers = self.keys["num_layers"] if side == "encoder" else self.keys["num_decoder_layers"]
        x, bias, n_heads = self.weights["shared.weight"][ids], self.bias(side + ".", side == "encoder"), self.keys["num_heads"]
        for i in range(n_layers):
            part, at = f"{side}.block.{i}.layer.", 0
            h = self.rms_norm(x, f"{part}0.layer_norm")
            x = x + self.attend(h, h, [f"{part}0.SelfAttention.{name}" for name in "qkvo"], n_heads, mask, bias, scale=1)
            if memory is not None:
                at, h = 1, self.rms_norm(x, f"{part}1.layer_norm")
                x = x + self.attend(h, memory, [f"{part}1.EncDecAttention.{name}" for name in "qkvo"], n_heads, memory_mask, scale=1)
            x = x + self.network(self.rms_norm(x, f"{part}{at + 1}.layer_norm"), f"{part}{at + 1}.DenseReluDense.")
        return self.rms_norm(x, side + ".final_layer_norm")

    def encode(self, ids, attention_mask):
        return self.stack("encoder", ids, padding_mask(attention_mask))

    def decode(self, ids, memory, attention_mask):
        x = self.stack("decoder", ids, causal_mask(ids.shape[1]), memory, padding_mask(attention_mask))
        if self.keys["tie_word_embeddings"]:
            return x * self.keys["d_model"] ** -0.5 @ self.weights["shared.weight"].T
        return self.linear(x, "lm_head")


class TorchTransformer:
    """nn.Transformer itself between one embedding, scaled and with sinusoids, and the same as head."""

    def __init__(self, config, weights):
        self.width, self.embedding = config["d_model"], weights["embedding.weight"]
        self.network = torch.nn.Transformer(
            self.width, config["encoder_attention_heads"], config["encoder_layers"], config["decoder_layers"], config["encoder_ffn_dim"],
            dropout=0.0, activation=config["activation_function"], layer_norm_eps=config["layer_norm_eps"], batch_first=True,
            norm_first=config["normalize_before"], dtype=torch.float64)
        self.network.load_state_dict({name.removeprefix("transformer."): values for name, values in weights.items() if name != "embedding.weight"})
        self.network.train()  # without dropout the same as eval(), but never the fused path, which leaves padded positions out

    def embed(self, ids):
        angles = torch.arange(ids.shape[1], dtype=torch.float64)[:, None] * 10000 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        return self.embedding[ids] * self.width ** 0.5 + torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)

    def encode(self, ids, attention_mask):
        return self.network.encoder(self.embed(ids), src_key_padding_mask=attention_mask == 0)

    def decode(self, ids, memory, attention_mask):
        x = self.network.decoder(self.embed(ids), memory, tgt_mask=causal_mask(ids.shape[1]), memory_key_padding_mask=attention_mask == 0)
        return x @ self.embedding.T


def encoder_decoder(kind):
    def of(config, weights, inputs):
        model, mask = kind(config, weights), inputs["attention_mask"]
        memory = model.encode(inputs["input_ids"], mask)
        return {"encoder_last_hidden_state": memory, "logits": model.decode(inputs["decoder_input_ids"], memory, mask)}
    return of


def t5(config, weights, inputs):
    if config["architectures"] == ["T5EncoderModel"]:
        return {"last_hidden_state": T5(config, weights).encode(inputs["input_ids"], inputs["attention_mask"])}
    return encoder_decoder(T5)(config, weights, inputs)


ENCODER_DECODERS = {"bart": Bart, "marian": Bart, "mbart": Bart, "m2m_100": Bart, "t5": T5, "torch_nn_transformer": TorchTransformer}
MODELS = {name: encoder_decoder(kind) for name, kind in ENCODER_DECODERS.items()} | {
    "bert": bert, "roberta": bert, "distilbert": distilbert, "nomic_bert": nomic_bert, "vit": vit, "deit": vit, "clip": clip, "t5": t5}


def generate(config, weights, inputs, n_steps):
    """Greedy tokens (B, n_steps) from decoder_start_token_id, no end token, and the logits they were taken from."""
    model, mask = ENCODER_DECODERS[config["model_type"]](config, weights), inputs["attention_mask"]
    memory = model.encode(inputs["input_ids"], mask)
    ids, taken = torch.full((len(mask), 1), config["decoder_start_token_id"]), []
    for _ in range(n_steps):
        taken.append(model.decode(ids, memory, mask)[:, -1])
        ids = torch.cat((ids, taken[-1].argmax(-1, keepdim=True)), dim=1)
    return ids[:, 1:], torch.stack(taken, dim=1)
