"""What attention weighs in models whose weights and outputs tests have, in float64.

usage: attention_references.py --data FOLDER OUT.safetensors
  FOLDER  cases of transformers with the input of each layer (bert, vit, gpt2, llama, mistral_sw, gemma2, bloom): the scores are computed in NumPy
          from those, so that a layer's weights depend on nothing that is under test

Writes CASE/TEXT/LAYER (heads, tokens, tokens) for one text or image of each of them, and for all texts and images of the cases of
../data/encoders.safetensors that PACKED lists, whose towers and encoders the code of encoder_models.py runs in PyTorch.
"""
import argparse
import json
import os
import struct

import numpy as np
import torch

import encoder_models
import tensor_files
from tensor_files import Tensor

TEXT = 1  # of FOLDER's cases
PACKED = {"bert_relative_key": 2, "bert_relative_key_query": 2, "nomic_bert": None, "m2m100": 2, "t5_gated": 2, "clip": 4}  # layers that encode
TOLERANCE = 1e-12


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def layer_norm(x, weights, name, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon) * weights[name + ".weight"] + weights[name + ".bias"]


def rms_norm(x, weights, name, epsilon, offset=0):
    return x / np.sqrt((x ** 2).mean(-1, keepdims=True) + epsilon) * (weights[name + ".weight"] + offset)


def linear(x, weights, name):
    return x @ weights[name + ".weight"].T + weights.get(name + ".bias", 0)


def heads(x, n):
    """(T, n D) as (n, T, D)."""
    return x.reshape(len(x), n, -1).transpose(1, 0, 2)


def weigh(query, key, bias=0, width=None, cap=None):
    """Heads of queries beside those of keys, of which there may be fewer."""
    key = np.repeat(key, len(query) // len(key), axis=0)
    scores = query @ key.transpose(0, 2, 1) / (width or query.shape[-1]) ** 0.5
    return softmax((cap * np.tanh(scores / cap) if cap else scores) + bias)


def positions(n):
    """Key's position minus query's."""
    return np.arange(n)[None, :] - np.arange(n)[:, None]


def causal(n, window=None):
    hidden = (positions(n) > 0) | (positions(n) <= -(window or n))
    return np.where(hidden, -np.inf, 0)


def bert(config, weights, x, layer):
    """Devlin et al. 2018."""
    name, n = f"encoder.layer.{layer}.attention.self.", config["num_attention_heads"]
    return weigh(heads(linear(x, weights, name + "query"), n), heads(linear(x, weights, name + "key"), n))


def vit(config, weights, x, layer):
    """Dosovitskiy et al. 2021."""
    name, n = f"vit.encoder.layer.{layer}.", config["num_attention_heads"]
    x = layer_norm(x, weights, name + "layernorm_before", config["layer_norm_eps"])
    return weigh(heads(linear(x, weights, name + "attention.attention.query"), n), heads(linear(x, weights, name + "attention.attention.key"), n))


def gpt2(config, weights, x, layer):
    """Radford et al. 2019; the weights lie (in, out)."""
    name, n = f"transformer.h.{layer}.", config["n_head"]
    x = layer_norm(x, weights, name + "ln_1", config["layer_norm_epsilon"])
    query, key, _ = np.split(x @ weights[name + "attn.c_attn.weight"] + weights[name + "attn.c_attn.bias"], 3, axis=-1)
    return weigh(heads(query, n), heads(key, n), causal(len(x)))


def llama(config, weights, x, layer):
    """Touvron et al. 2023, with the window of Jiang et al. 2023 (Mistral) where there is one; or Riviere et al. 2024 (Gemma 2): every other
    layer has it."""
    name, gemma = f"model.layers.{layer}.", config["model_type"] == "gemma2"
    x = rms_norm(x, weights, name + "input_layernorm", config["rms_norm_eps"], 1 if gemma else 0)
    half = config["head_dim"] // 2
    angles = np.arange(len(x))[:, None] * config["rope_theta"] ** -(np.arange(half) / half)

    def turned(part):
        a, b = part[..., :half], part[..., half:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], axis=-1)

    query, key = heads(linear(x, weights, name + "self_attn.q_proj"), config["num_attention_heads"]), heads(linear(x, weights, name + "self_attn.k_proj"), config["num_key_value_heads"])
    window = None if gemma and layer % 2 == 1 else config.get("sliding_window")
    return weigh(turned(query), turned(key), causal(len(x), window), config.get("query_pre_attn_scalar"), config.get("attn_logit_softcapping"))


def bloom(config, weights, x, layer):
    """Le Scao et al. 2022: ALiBi; query, key and value of each head side by side. 8 heads."""
    name, n = f"transformer.h.{layer}.", config["n_head"]
    x = layer_norm(x, weights, name + "input_layernorm", config["layer_norm_epsilon"])
    parts = linear(x, weights, name + "self_attention.query_key_value").reshape(len(x), n, 3, -1)
    slopes = 2.0 ** (-8 * np.arange(1, n + 1) / n)
    return weigh(parts[:, :, 0].transpose(1, 0, 2), parts[:, :, 1].transpose(1, 0, 2), slopes[:, None, None] * positions(len(x)) + causal(len(x)))


KNOWN = {"bert": bert, "vit": vit, "gpt2": gpt2, "llama": llama, "mistral_sw": llama, "gemma2": llama, "bloom": bloom}


def of_known(folder):
    tensors = {}
    for name, layer_of in KNOWN.items():
        def read(part, case=name):
            return {key: array.astype(np.float64) for key, (_, array) in tensor_files.read_safetensors(os.path.join(folder, case, part + ".safetensors")).items()}
        with open(os.path.join(folder, name, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        weights, inputs, states = read("model"), read("inputs"), read("expected")["hidden_states"]
        n = int(inputs["attention_mask"][TEXT].sum()) if "attention_mask" in inputs else states.shape[2]
        for layer in range(len(states) - 1):
            tensors[f"{name}/{TEXT}/{layer}"] = layer_of(config, weights, states[layer, TEXT, :n], layer)
    return tensors


def recorded(run):
    """The results of all calls of Tensor.softmax of four dimensions."""
    kept, plain = [], torch.Tensor.softmax

    def softmax_of(tensor, *arguments):
        result = plain(tensor, *arguments)
        if result.dim() == 4:
            kept.append(result.numpy())
        return result
    torch.Tensor.softmax = softmax_of
    try:
        with torch.no_grad():
            run()
    finally:
        torch.Tensor.softmax = plain
    return kept


def of_packed(path):
    with open(path, "rb") as file:
        (n_bytes,) = struct.unpack("<Q", file.read(8))
        configs = json.loads(file.read(n_bytes))["__metadata__"]
    packed, tensors = tensor_files.read_safetensors(path), {}
    for name, n_layers in PACKED.items():
        def part(kind, case=name):
            return {key[len(f"{case}/{kind}/"):]: tensor for key, tensor in packed.items() if key.startswith(f"{case}/{kind}/")}
        weights = {key: torch.tensor(tensor_files.bf16_values(array) if dtype == "BF16" else array.astype(np.float64)) for key, (dtype, array) in part("weights").items()}
        inputs = {key: torch.tensor(array.astype(np.float64 if dtype == "F32" else np.int64)) for key, (dtype, array) in part("inputs").items()}
        config = json.loads(configs[name])
        found = recorded(lambda: encoder_models.MODELS[config["model_type"]](config, weights, inputs))[:n_layers]
        lengths = inputs["attention_mask"].sum(1).tolist()
        towers = {}
        for weighed in found:
            image = weighed.shape[2] != inputs["input_ids"].shape[1]
            tower = name + "_image" if image else name
            layer = towers[tower] = towers.get(tower, -1) + 1
            for i, of_text in enumerate(weighed):
                n = weighed.shape[2] if image else lengths[i]
                tensors[f"{tower}/{i}/{layer}"] = of_text[:, :n, :n]
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tensors = of_known(options.data) | of_packed(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/encoders.safetensors"))
    for name, weights in tensors.items():
        assert abs(weights.sum(-1) - 1).max() < TOLERANCE, name
    tensor_files.write_safetensors(options.out, {name: Tensor("F32", weights) for name, weights in tensors.items()})
    print(f"{len(tensors)} tensors, {os.path.getsize(options.out)} bytes: " + ", ".join(f"{name} {tensors[name].shape}" for name in tensors))


if __name__ == "__main__":
    main()
