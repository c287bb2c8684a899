"""Writes a random model in Q8_0 at the size of SmolLM-135M, of one of several families: to compare speed with other programs.

usage: random_gguf.py llama|qwen2|qwen3|gemma3|mixtral|bert OUT.gguf
  llama    30 layers, width 576, 9 heads, 3 KV heads of 64, feed-forward 1536, vocabulary 49,152
  others   the same with what the family has: biases; norms of heads; norms behind, windows of 512; 8 experts of which each
           token has 2
  bert     6 layers, width 384, 12 heads, feed-forward 1536, vocabulary 30,522, as MiniLM has them
"""

import struct
import sys

import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD_DIM, FFN, VOCABULARY, EXPERTS, CHOSEN = 30, 576, 9, 3, 64, 1536, 49152, 8, 2
F32, Q8_0 = 0, 8
U32, FLOAT, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + (text(value) if kind == STRING else struct.pack("<I" if kind == U32 else "<f", value))


def keys_of_bert():
    counts = {"block_count": 6, "embedding_length": 384, "attention.head_count": 12, "feed_forward_length": 1536, "context_length": 512, "pooling_type": 1}
    found = [key("general.architecture", STRING, "bert")] + [key(f"bert.{field}", U32, value) for field, value in counts.items()]
    found += [key("tokenizer.ggml.token_type_count", U32, 2), key("bert.attention.layer_norm_epsilon", FLOAT, 1e-12)]
    found.append(text("bert.attention.causal") + struct.pack("<IB", BOOL, 0))
    tokens = ["[PAD]"] + [f"[unused{i}]" for i in range(99)] + ["[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"\u2581word{i}" for i in range(104, 30522)]
    found += [key("tokenizer.ggml.model", STRING, "bert"), text("tokenizer.ggml.tokens") + struct.pack("<IIQ", ARRAY, STRING, len(tokens)) + b"".join(map(text, tokens))]
    kinds = np.array([3] * 104 + [1] * (len(tokens) - 104), "<i4")
    found.append(text("tokenizer.ggml.token_type") + struct.pack("<IIQ", ARRAY, I32, len(tokens)) + kinds.tobytes())
    for field, value in {"bos": 101, "cls": 101, "eos": 102, "seperator": 102, "unknown": 100, "padding": 0, "mask": 103}.items():
        found.append(key(f"tokenizer.ggml.{field}_token_id", U32, value))
    return found


def shapes_of_bert():
    width, ffn = 384, 1536
    norm = lambda name: {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    linear = lambda name, rows, columns: {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}
    yield from {"token_embd.weight": (30522, width), "position_embd.weight": (512, width), "token_types.weight": (2, width), **norm("token_embd_norm")}.items()
    for i in range(6):
        layer = {**linear("attn_q", width, width), **linear("attn_k", width, width), **linear("attn_v", width, width), **linear("attn_output", width, width), **norm("attn_output_norm"),
                 **linear("ffn_up", ffn, width), **linear("ffn_down", width, ffn), **norm("layer_output_norm")}
        yield from ((f"blk.{i}.{name}", shape) for name, shape in layer.items())


def llama_vocabulary(n):
    """The tokenizer's keys: bytes, and words without meaning."""
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + [f"word{i}" for i in range(259, n)]
    kinds = np.array([2, 3, 3] + [6] * 256 + [1] * (n - 259), "<i4")
    return [key("tokenizer.ggml.model", STRING, "llama"), text("tokenizer.ggml.tokens") + struct.pack("<IIQ", ARRAY, STRING, n) + b"".join(map(text, tokens)),
            text("tokenizer.ggml.scores") + struct.pack("<IIQ", ARRAY, FLOAT, n) + np.full(n, -1, "<f4").tobytes(),
            text("tokenizer.ggml.token_type") + struct.pack("<IIQ", ARRAY, I32, n) + kinds.tobytes()]


def keys_of(family):
    if family == "bert":
        return keys_of_bert()
    name = {"mixtral": "llama"}.get(family, family)
    found = [key("general.architecture", STRING, name)]
    counts = {"block_count": LAYERS, "embedding_length": WIDTH, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "feed_forward_length": FFN, "context_length": 8192}
    if family in ("qwen3", "gemma3"):
        counts.update({"attention.key_length": HEAD_DIM, "attention.value_length": HEAD_DIM})
    if family == "gemma3":
        counts["attention.sliding_window"] = 512
    if family == "mixtral":
        counts.update({"expert_count": EXPERTS, "expert_used_count": CHOSEN})
    found += [key(f"{name}.{field}", U32, value) for field, value in counts.items()]
    found.append(key(f"{name}.attention.layer_norm_rms_epsilon", FLOAT, 1e-5))
    found += llama_vocabulary(VOCABULARY)
    return found


def shapes_of(family):
    """(name, shape) of all tensors; vectors are norms and biases."""
    if family == "bert":
        yield from shapes_of_bert()
        return
    yield "token_embd.weight", (VOCABULARY, WIDTH)
    yield "output_norm.weight", (WIDTH,)
    for i in range(LAYERS):
        layer = {"attn_norm.weight": (WIDTH,), "ffn_norm.weight": (WIDTH,), "attn_q.weight": (HEADS * HEAD_DIM, WIDTH), "attn_k.weight": (KV_HEADS * HEAD_DIM, WIDTH),
                 "attn_v.weight": (KV_HEADS * HEAD_DIM, WIDTH), "attn_output.weight": (WIDTH, HEADS * HEAD_DIM)}
        if family == "qwen2":
            layer.update({"attn_q.bias": (HEADS * HEAD_DIM,), "attn_k.bias": (KV_HEADS * HEAD_DIM,), "attn_v.bias": (KV_HEADS * HEAD_DIM,)})
        if family in ("qwen3", "gemma3"):
            layer.update({"attn_q_norm.weight": (HEAD_DIM,), "attn_k_norm.weight": (HEAD_DIM,)})
        if family == "gemma3":
            layer.update({"post_attention_norm.weight": (WIDTH,), "post_ffw_norm.weight": (WIDTH,)})
        if family == "mixtral":
            layer.update({"ffn_gate_inp.weight": (EXPERTS, WIDTH), "ffn_gate_exps.weight": (EXPERTS, FFN, WIDTH), "ffn_up_exps.weight": (EXPERTS, FFN, WIDTH), "ffn_down_exps.weight": (EXPERTS, WIDTH, FFN)})
        else:
            layer.update({"ffn_gate.weight": (FFN, WIDTH), "ffn_up.weight": (FFN, WIDTH), "ffn_down.weight": (WIDTH, FFN)})
        yield from ((f"blk.{i}.{name}", shape) for name, shape in layer.items())


def data_of(shape, name, rng):
    if len(shape) == 1 or "gate_inp" in name or "position" in name or "types" in name:
        return F32, rng.uniform(0.5, 1.5, shape).astype("<f4").tobytes()
    blocks = np.empty(int(np.prod(shape)) // 32, np.dtype([("scale", "<f2"), ("quants", "i1", 32)]))
    blocks["scale"] = 1.5 / 127 / np.sqrt(shape[-1])
    blocks["quants"] = rng.integers(-127, 128, (len(blocks), 32))
    return Q8_0, blocks.tobytes()


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("llama", "qwen2", "qwen3", "gemma3", "mixtral", "bert"):
        sys.exit(__doc__)
    family, path = sys.argv[1:]
    keys, tensors, rng, at = keys_of(family), list(shapes_of(family)), np.random.default_rng(1), 0
    infos, made = [], []
    for name, shape in tensors:
        kind, data = data_of(shape, name, rng)
        data += bytes(-len(data) % 32)
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, at))
        made.append(data)
        at += len(data)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + b"".join(infos)
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % 32))
        file.writelines(made)


if __name__ == "__main__":
    main()
