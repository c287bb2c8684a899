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


def gptj_logits(path, ids):
    """GPT-J (Wang and Komatsuzaki 2021): one norm before attention and network side by side, RoPE of pairs side by side in the
    first rotary_dim elements of a head, GELU by tanh, a head with a bias."""
    keys, w = read_gguf(path)
    key = lambda name: keys["gptj." + name]
    n_heads, rotated, epsilon = key("attention.head_count"), key("rope.dimension_count"), key("attention.layer_norm_epsilon")
    theta = keys.get("gptj.rope.freq_base", 10000.0)
    linear = lambda x, name: torch.nn.functional.linear(x, w[name + ".weight"], w.get(name + ".bias"))
    norm = lambda x, name: torch.nn.functional.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], epsilon)
    x = w["token_embd.weight"][torch.tensor(ids)]
    n_tokens, width = x.shape
    angles = torch.arange(n_tokens, dtype=torch.float64)[:, None] * theta ** (-torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]

    def rotate(heads):
        even, odd = heads[..., 0:rotated:2], heads[..., 1:rotated:2]
        turned = torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)
        return torch.cat((turned, heads[..., rotated:]), dim=-1)

    hidden = torch.full((n_tokens, n_tokens), float("-inf"), dtype=torch.float64).triu(1)
    for i in range(key("block_count")):
        name = f"blk.{i}."
        h = norm(x, name + "attn_norm")
        q, k, v = (linear(h, name + part).view(n_tokens, n_heads, -1) for part in ("attn_q", "attn_k", "attn_v"))
        scores = torch.einsum("qhd,khd->hqk", rotate(q), rotate(k)) / (width // n_heads) ** 0.5 + hidden
        attended = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v).reshape(n_tokens, width)
        inner = linear(h, name + "ffn_up")
        inner = 0.5 * inner * (1 + torch.tanh((2 / np.pi) ** 0.5 * (inner + 0.044715 * inner ** 3)))
        x = x + linear(attended, name + "attn_output") + linear(inner, name + "ffn_down")
    return linear(norm(x, "output_norm"), "output").numpy().astype(np.float32)
