"""Decoders in PyTorch and float64, from their papers and published code: what families are compared with that llama.cpp lacks."""

import struct

import numpy as np
import torch

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


def read_gguf(path):
    """Keys and tensors, which must be F32, of a GGUF file of version 3."""
    data, at = open(path, "rb").read(), 8

    def take(code):
        nonlocal at
        value = struct.unpack_from("<" + code, data, at)[0]
        at += struct.calcsize("<" + code)
        return value

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            element, n = take("I"), take("Q")
            return [value(element) for _ in range(n)]
        return take(SCALARS[kind])

    n_tensors, n_keys = take("Q"), take("Q")
    keys = {}
    for _ in range(n_keys):
        name = text()
        keys[name] = value(take("I"))
    places = []
    for _ in range(n_tensors):
        name = text()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        assert take("I") == 0, f"{name} is not F32"
        places.append((name, shape, take("Q")))
    alignment = keys.get("general.alignment", 32)
    start = (at + alignment - 1) // alignment * alignment
    tensors = {name: torch.tensor(np.frombuffer(data, "<f4", int(np.prod(shape)), start + offset).reshape(shape).astype(np.float64))
               for name, shape, offset in places}
    return keys, tensors


class Network:
    """The file's tensors by name, and what all decoders are made of."""

    def __init__(self, path, architecture):
        keys, self.weights = read_gguf(path)
        self.keys = {name.removeprefix(architecture + "."): value for name, value in keys.items()}
        self.n_heads, self.epsilon = self.keys["attention.head_count"], self.keys["attention.layer_norm_epsilon"]

    def linear(self, x, name):
        return torch.nn.functional.linear(x, self.weights[name + ".weight"], self.weights.get(name + ".bias"))

    def norm(self, x, name):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.weights[name + ".weight"], self.weights[name + ".bias"], self.epsilon)

    def attention(self, h, name, turn=lambda heads: heads):
        """Of all earlier positions; `turn` gives queries and keys their positions."""
        n_tokens, width = h.shape
        q, k, v = (self.linear(h, name + part).view(n_tokens, self.n_heads, -1) for part in ("attn_q", "attn_k", "attn_v"))
        hidden = torch.full((n_tokens, n_tokens), float("-inf"), dtype=torch.float64).triu(1)
        scores = torch.einsum("qhd,khd->hqk", turn(q), turn(k)) / (width // self.n_heads) ** 0.5 + hidden
        attended = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(n_tokens, width)
        return self.linear(attended, name + "attn_output")


def gptj_logits(path, ids):
    """GPT-J (Wang and Komatsuzaki 2021): one norm before attention and network side by side, RoPE of pairs side by side in the
    first rotary_dim elements of a head, GELU by tanh, a head with a bias."""
    net = Network(path, "gptj")
    rotated, theta = net.keys["rope.dimension_count"], net.keys.get("rope.freq_base", 10000.0)
    x = net.weights["token_embd.weight"][torch.tensor(ids)]
    angles = torch.arange(len(ids), dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]

    def rotate(heads):
        even, odd = heads[..., 0:rotated:2], heads[..., 1:rotated:2]
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)
        return torch.cat((turned, heads[..., rotated:]), dim=-1)

    for i in range(net.keys["block_count"]):
        name = f"blk.{i}."
        h = net.norm(x, name + "attn_norm")
        inner = net.linear(h, name + "ffn_up")
        inner = 0.5 * inner * (1 + torch.tanh((2 / np.pi) ** 0.5 * (inner + 0.044715 * inner ** 3)))
        x = x + net.attention(h, name, rotate) + net.linear(inner, name + "ffn_down")
    return net.linear(net.norm(x, "output_norm"), "output").numpy().astype(np.float32)


def opt_logits(path, ids):
    """OPT (Zhang et al. 2022): learned positions, norms before attention and network, ReLU, the embedding as head."""
    net = Network(path, "opt")
    embedding = net.weights["token_embd.weight"]
    x = embedding[torch.tensor(ids)] + net.weights["position_embd.weight"][:len(ids)]
    for i in range(net.keys["block_count"]):
        name = f"blk.{i}."
        x = x + net.attention(net.norm(x, name + "attn_norm"), name)
        inner = torch.relu(net.linear(net.norm(x, name + "ffn_norm"), name + "ffn_up"))
        x = x + net.linear(inner, name + "ffn_down")
    return (net.norm(x, "output_norm") @ embedding.T).numpy().astype(np.float32)


REFERENCES = {"gptj": gptj_logits, "opt": opt_logits}
