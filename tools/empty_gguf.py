"""Writes a Llama of 1B or 8B parameters whose weights are zeros, which take no room on a disk that knows holes: for what looks at
a model's shapes and types only, such as `rondo graph --predict`.

usage: empty_gguf.py 1b|8b f16|q8_0|q4_0|q4_k_m OUT.gguf
  1b   16 layers, width 2048, 32 heads, 8 KV heads of 64, feed-forward 8192, vocabulary 128,256, output tied (Llama 3.2 1B)
  8b   32 layers, width 4096, 32 heads, 8 KV heads of 128, feed-forward 14336, vocabulary 128,256 (Llama 3.1 8B)
q4_k_m has q6_K where llama.cpp's mixture has it: the output, and half of the values' and downward projections.
"""

import struct
import sys

from random_gguf import FLOAT, STRING, U32, key, llama_vocabulary, text

SIZES = {"1b": (16, 2048, 64, 8192, True), "8b": (32, 4096, 128, 14336, False)}
HEADS, KV_HEADS, VOCABULARY = 32, 8, 128256
BLOCKS = {"f32": (0, 1, 4), "f16": (1, 1, 2), "q4_0": (2, 32, 18), "q8_0": (8, 32, 34), "q4_k": (12, 256, 144), "q6_k": (14, 256, 210)}  # GGUF's number, elements, bytes


def shapes_of(layers, width, head, ffn, tied):
    yield "token_embd.weight", (VOCABULARY, width)
    yield "output_norm.weight", (width,)
    if not tied:
        yield "output.weight", (VOCABULARY, width)
    for i in range(layers):
        for name, shape in {"attn_norm": (width,), "ffn_norm": (width,), "attn_q": (HEADS * head, width), "attn_k": (KV_HEADS * head, width), "attn_v": (KV_HEADS * head, width),
                            "attn_output": (width, HEADS * head), "ffn_gate": (ffn, width), "ffn_up": (ffn, width), "ffn_down": (width, ffn)}.items():
            yield f"blk.{i}.{name}.weight", shape


def type_of(name, shape, mixture, layers, tied):
    if len(shape) == 1:
        return "f32"
    if mixture != "q4_k_m":
        return mixture
    if name == "output.weight" or (tied and name == "token_embd.weight"):
        return "q6_k"
    layer = int(name.split(".")[1]) if name.startswith("blk.") else 0
    more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return "q6_k" if more and ("attn_v" in name or "ffn_down" in name) else "q4_k"


def keys_of(layers, width, head, ffn):
    counts = {"block_count": layers, "embedding_length": width, "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "feed_forward_length": ffn, "context_length": 131072,
              "rope.dimension_count": head}
    found = [key("general.architecture", STRING, "llama")] + [key(f"llama.{field}", U32, value) for field, value in counts.items()]
    found += [key("llama.attention.layer_norm_rms_epsilon", FLOAT, 1e-5), key("llama.rope.freq_base", FLOAT, 500000.0)]
    return found + llama_vocabulary(VOCABULARY)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in SIZES or sys.argv[2] not in ("f16", "q8_0", "q4_0", "q4_k_m"):
        sys.exit(__doc__)
    size, mixture, path = sys.argv[1:]
    layers, width, head, ffn, tied = SIZES[size]
    keys, infos, at = keys_of(layers, width, head, ffn), [], 0
    for name, shape in shapes_of(layers, width, head, ffn, tied):
        number, elements, block_bytes = BLOCKS[type_of(name, shape, mixture, layers, tied)]
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        infos.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape[::-1], number, at))
        at += -(-count // elements * block_bytes // 32) * 32
    header = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys) + b"".join(infos)
    header += bytes(-len(header) % 32)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate(len(header) + at)


if __name__ == "__main__":
    main()
