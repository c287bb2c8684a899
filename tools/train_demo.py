#!/usr/bin/python3
"""Trains the bundled demo model: a small Llama on the King James Bible (public domain), written as GGUF.

Writes kjv-f32.gguf, kjv-q8_0.gguf and log.txt. Needs Debian's python3-torch, libopenblas0 (with the reference BLAS it
is a hundred times slower), python3-sentencepiece, python3-numpy and bible-kjv.
"""
import argparse
import io
import math
import os
import struct
import subprocess
import time

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F

WIDTH = 192
N_LAYERS = 5
N_HEADS = 6
N_KV_HEADS = 2
HEAD_DIM = WIDTH // N_HEADS
FFN_WIDTH = 512
N_VOCAB = 1024
CONTEXT = 256
NORM_EPSILON = 1e-5
ROPE_THETA = 10000.0

UNK, BOS, EOS = 0, 1, 2

BATCH = 12
PEAK_RATE = 3e-3
WARM_UP_STEPS = 60
HELD_OUT_EVERY = 20  # chapters
REPORT_EVERY_MINUTES = 3


# Text and tokens

def read_chapters():
    """The Bible as a list of chapters, one verse a line, without references."""
    printed = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
    chapters, last_chapter = [], None
    for line in printed.splitlines():
        if " " not in line:
            continue
        reference, verse = line.split(" ", 1)
        chapter = reference.split(":")[0]
        if chapter != last_chapter:
            chapters.append([])
            last_chapter = chapter
        chapters[-1].append(verse.strip())
    return ["\n".join(verses) for verses in chapters]


def split_chapters(chapters):
    """Training and held-out chapters."""
    held_out = chapters[HELD_OUT_EVERY - 1::HELD_OUT_EVERY]
    train = [chapter for i, chapter in enumerate(chapters) if i % HELD_OUT_EVERY != HELD_OUT_EVERY - 1]
    return train, held_out


def train_tokenizer(chapters):
    """A BPE tokenizer with byte fallback; nothing is normalised, so that every text comes back as it was."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for chapter in chapters for line in chapter.split("\n")]),
        model_writer=model,
        vocab_size=N_VOCAB,
        model_type="bpe",
        byte_fallback=True,
        character_coverage=1.0,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["\n"],
        unk_id=UNK,
        bos_id=BOS,
        eos_id=EOS,
        pad_id=-1,
        num_threads=2,
        minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def encode_chapters(tokenizer, chapters):
    return np.concatenate([np.array([BOS] + tokenizer.encode(chapter) + [EOS], np.int64) for chapter in chapters])


# The model

def rope_tables():
    """cos and sin, (CONTEXT, HEAD_DIM / 2)."""
    angles = torch.arange(CONTEXT)[:, None] * ROPE_THETA ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    return angles.cos(), angles.sin()


ROPE_COS, ROPE_SIN = rope_tables()


def rope(x):
    """Rotates neighbouring pairs, as GGUF's `llama` has them; x is (batch, heads, tokens, head_dim)."""
    n_tokens = x.shape[2]
    cos, sin = ROPE_COS[:n_tokens], ROPE_SIN[:n_tokens]
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


def linear_weight(n_out, n_in, scale=1.0):
    return torch.nn.Parameter(torch.randn(n_out, n_in) * 0.6 * scale / math.sqrt(n_in))


class RmsNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + NORM_EPSILON) * self.weight


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm = RmsNorm()
        self.ffn_norm = RmsNorm()
        # What writes into the residual stream starts smaller.
        self.q = linear_weight(WIDTH, WIDTH)
        self.k = linear_weight(N_KV_HEADS * HEAD_DIM, WIDTH)
        self.v = linear_weight(N_KV_HEADS * HEAD_DIM, WIDTH)
        self.output = linear_weight(WIDTH, WIDTH, 0.3)
        self.gate = linear_weight(FFN_WIDTH, WIDTH)
        self.up = linear_weight(FFN_WIDTH, WIDTH)
        self.down = linear_weight(WIDTH, FFN_WIDTH, 0.3)

    def attention(self, x):
        batch, n_tokens, _ = x.shape

        def heads(weight, n_heads):
            return (x @ weight.T).view(batch, n_tokens, n_heads, HEAD_DIM).transpose(1, 2)

        q = rope(heads(self.q, N_HEADS))
        k = rope(heads(self.k, N_KV_HEADS)).repeat_interleave(N_HEADS // N_KV_HEADS, 1)
        v = heads(self.v, N_KV_HEADS).repeat_interleave(N_HEADS // N_KV_HEADS, 1)
        causal = torch.full((n_tokens, n_tokens), -1e9).triu(1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(HEAD_DIM) + causal
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, n_tokens, WIDTH) @ self.output.T

    def forward(self, x):
        x = x + self.attention(self.attn_norm(x))
        n = self.ffn_norm(x)
        return x + (F.silu(n @ self.gate.T) * (n @ self.up.T)) @ self.down.T


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Parameter(torch.randn(N_VOCAB, WIDTH) * 0.05)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(N_LAYERS))
        self.norm = RmsNorm()

    def forward(self, ids):
        """Logits (batch, tokens, N_VOCAB); the output matrix is the embedding."""
        x = self.embedding[ids]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.embedding.T


# Training

class Log:
    """Prints lines and keeps them in a file."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def say(self, line):
        print(line, flush=True)
        print(line, file=self.file, flush=True)


def next_token_loss(model, windows, reduction="mean"):
    """`windows` is (batch, CONTEXT + 1): inputs, and the same shifted by one as targets."""
    return F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten(), reduction=reduction)


def held_out_loss(model, ids):
    """Nats per token over consecutive windows of `ids`."""
    model.eval()
    total, n_targets = 0.0, 0
    last_start = len(ids) - CONTEXT - 1
    with torch.no_grad():
        for begin in range(0, last_start, CONTEXT * 16):
            starts = range(begin, min(begin + CONTEXT * 16, last_start), CONTEXT)
            windows = torch.from_numpy(np.stack([ids[i:i + CONTEXT + 1] for i in starts]))
            total += next_token_loss(model, windows, "sum").item()
            n_targets += windows[:, 1:].numel()
    model.train()
    return total / n_targets


def create_optimizer(model):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0}]
    return torch.optim.AdamW(groups, lr=1, betas=(0.9, 0.95))


def learning_rate(step, done):
    """Linear warm-up, then a cosine down to a twentieth; `done` is the part of the time that is over."""
    return PEAK_RATE * min(1, (step + 1) / WARM_UP_STEPS) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def train(model, train_ids, held_out_ids, tokens_per_byte, minutes, log):
    """Trains for `minutes` of wall-clock time and leaves the weights with the best held-out loss in `model`."""
    rng = np.random.default_rng(1)
    optimizer = create_optimizer(model)
    best_loss, best_weights = math.inf, None
    step, next_report = 0, REPORT_EVERY_MINUTES
    begin = time.time()
    while (done := (time.time() - begin) / (60 * minutes)) < 1:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, done)
        starts = rng.integers(0, len(train_ids) - CONTEXT - 1, BATCH)
        windows = torch.from_numpy(np.stack([train_ids[i:i + CONTEXT + 1] for i in starts]))
        loss = next_token_loss(model, windows)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1

        elapsed_minutes = (time.time() - begin) / 60
        if elapsed_minutes > next_report:
            next_report += REPORT_EVERY_MINUTES
            held_out = held_out_loss(model, held_out_ids)
            log.say(f"{elapsed_minutes:5.1f} min  step {step}  epochs {step * BATCH * CONTEXT / len(train_ids):.2f}  "
                    f"train {loss.item():.3f}  held out {held_out:.3f} nats/token = "
                    f"{held_out * tokens_per_byte:.3f} nats/byte")
            if held_out < best_loss:
                best_loss = held_out
                best_weights = {name: value.clone() for name, value in model.state_dict().items()}

    held_out = held_out_loss(model, held_out_ids)
    log.say(f"end: step {step}  held out {held_out:.3f} nats/token = {held_out * tokens_per_byte:.3f} nats/byte")
    if best_weights and held_out > best_loss:
        model.load_state_dict(best_weights)
        log.say(f"kept the best, {best_loss:.3f}")


# GGUF: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

GGUF_VERSION = 3
ALIGNMENT = 32
TYPE_U32, TYPE_I32, TYPE_F32, TYPE_BOOL, TYPE_STRING, TYPE_ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, TENSOR_Q8_0 = 0, 8
TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER_DEFINED, TOKEN_BYTE = 1, 2, 3, 4, 6


def gguf_string(text):
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def meta_u32(key, value):
    return gguf_string(key) + struct.pack("<II", TYPE_U32, value)


def meta_f32(key, value):
    return gguf_string(key) + struct.pack("<If", TYPE_F32, value)


def meta_bool(key, value):
    return gguf_string(key) + struct.pack("<I?", TYPE_BOOL, value)


def meta_string(key, value):
    return gguf_string(key) + struct.pack("<I", TYPE_STRING) + gguf_string(value)


def meta_array(key, element_type, n_elements, payload):
    return gguf_string(key) + struct.pack("<IIQ", TYPE_ARRAY, element_type, n_elements) + payload


def padding(size_bytes):
    return b"\0" * (-size_bytes % ALIGNMENT)


def quantize_q8_0(weight):
    """Blocks of 32 along a row: an f16 scale, then 32 signed bytes."""
    blocks = weight.reshape(-1, 32)
    scale = np.abs(blocks).max(1) / 127
    quants = np.rint(blocks / np.where(scale == 0, 1, scale)[:, None]).astype(np.int8)
    packed = np.empty((len(blocks), 34), np.uint8)
    packed[:, :2] = scale.astype(np.float16).view(np.uint8).reshape(-1, 2)
    packed[:, 2:] = quants.view(np.uint8)
    return packed.tobytes()


def token_type(tokenizer, token, piece):
    if tokenizer.is_unknown(token):
        return TOKEN_UNKNOWN
    if tokenizer.is_control(token):
        return TOKEN_CONTROL
    if tokenizer.is_byte(token):
        return TOKEN_BYTE
    return TOKEN_USER_DEFINED if piece == "\n" else TOKEN_NORMAL


def tokenizer_metadata(tokenizer):
    pieces = [tokenizer.id_to_piece(i) for i in range(N_VOCAB)]
    scores = np.array([tokenizer.get_score(i) for i in range(N_VOCAB)], np.float32)
    types = np.array([token_type(tokenizer, i, piece) for i, piece in enumerate(pieces)], np.int32)
    return [
        meta_string("tokenizer.ggml.model", "llama"),
        meta_array("tokenizer.ggml.tokens", TYPE_STRING, N_VOCAB, b"".join(gguf_string(piece) for piece in pieces)),
        meta_array("tokenizer.ggml.scores", TYPE_F32, N_VOCAB, scores.tobytes()),
        meta_array("tokenizer.ggml.token_type", TYPE_I32, N_VOCAB, types.tobytes()),
        meta_u32("tokenizer.ggml.bos_token_id", BOS),
        meta_u32("tokenizer.ggml.eos_token_id", EOS),
        meta_u32("tokenizer.ggml.unknown_token_id", UNK),
        meta_bool("tokenizer.ggml.add_bos_token", True),
        meta_bool("tokenizer.ggml.add_space_prefix", True),
    ]


def model_metadata():
    return [
        meta_string("general.architecture", "llama"),
        meta_string("general.name", "Rondo KJV demo"),
        meta_string("general.license", "CC0-1.0"),
        meta_u32("general.alignment", ALIGNMENT),
        meta_u32("llama.context_length", CONTEXT),
        meta_u32("llama.embedding_length", WIDTH),
        meta_u32("llama.block_count", N_LAYERS),
        meta_u32("llama.feed_forward_length", FFN_WIDTH),
        meta_u32("llama.attention.head_count", N_HEADS),
        meta_u32("llama.attention.head_count_kv", N_KV_HEADS),
        meta_u32("llama.rope.dimension_count", HEAD_DIM),
        meta_f32("llama.attention.layer_norm_rms_epsilon", NORM_EPSILON),
        meta_f32("llama.rope.freq_base", ROPE_THETA),
        meta_u32("llama.vocab_size", N_VOCAB),
    ]


def named_tensors(model):
    tensors = {"token_embd": model.embedding, "output_norm": model.norm.weight}
    for i, block in enumerate(model.blocks):
        tensors.update({
            f"blk.{i}.attn_norm": block.attn_norm.weight,
            f"blk.{i}.ffn_norm": block.ffn_norm.weight,
            f"blk.{i}.attn_q": block.q,
            f"blk.{i}.attn_k": block.k,
            f"blk.{i}.attn_v": block.v,
            f"blk.{i}.attn_output": block.output,
            f"blk.{i}.ffn_gate": block.gate,
            f"blk.{i}.ffn_up": block.up,
            f"blk.{i}.ffn_down": block.down,
        })
    return {f"{name}.weight": tensor.detach().numpy() for name, tensor in tensors.items()}


def write_gguf(path, model, tokenizer, quantize):
    """Writes F32, or with `quantize` Q8_0 for matrices and F32 for the norms."""
    metadata = model_metadata() + tokenizer_metadata(tokenizer)
    tensors = named_tensors(model)
    infos, payload = b"", b""
    for name, values in tensors.items():
        quantized = quantize and values.ndim == 2
        data = quantize_q8_0(values) if quantized else values.astype(np.float32).tobytes()
        infos += gguf_string(name) + struct.pack("<I", values.ndim)
        infos += b"".join(struct.pack("<Q", extent) for extent in reversed(values.shape))
        infos += struct.pack("<IQ", TENSOR_Q8_0 if quantized else TENSOR_F32, len(payload))
        payload += data + padding(len(data))
    head = b"GGUF" + struct.pack("<IQQ", GGUF_VERSION, len(tensors), len(metadata)) + b"".join(metadata) + infos
    with open(path, "wb") as file:
        file.write(head + padding(len(head)) + payload)


def greedy_text(model, tokenizer, prompt, n_tokens=80):
    model.eval()
    ids = [BOS] + tokenizer.encode(prompt)
    for _ in range(n_tokens):
        ids.append(int(model(torch.tensor([ids[-CONTEXT:]]))[0, -1].argmax()))
    return tokenizer.decode(ids)


def main():
    parser = argparse.ArgumentParser(description="Trains the demo model on the King James Bible.")
    parser.add_argument("out_dir")
    parser.add_argument("minutes", nargs="?", type=float, default=25, help="time to train (default: 25)")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(1)

    train_chapters, held_out_chapters = split_chapters(read_chapters())
    tokenizer = train_tokenizer(train_chapters)
    train_ids, held_out_ids = (encode_chapters(tokenizer, c) for c in (train_chapters, held_out_chapters))
    held_out_bytes = sum(len(chapter.encode()) for chapter in held_out_chapters)

    model = Model()
    os.makedirs(arguments.out_dir, exist_ok=True)
    log = Log(os.path.join(arguments.out_dir, "log.txt"))
    log.say(f"{sum(p.numel() for p in model.parameters())} parameters, {len(train_ids)} training tokens, "
            f"{len(held_out_ids)} held out ({held_out_bytes} bytes), vocabulary {N_VOCAB}")
    train(model, train_ids, held_out_ids, len(held_out_ids) / held_out_bytes, arguments.minutes, log)
    write_gguf(os.path.join(arguments.out_dir, "kjv-f32.gguf"), model, tokenizer, quantize=False)
    write_gguf(os.path.join(arguments.out_dir, "kjv-q8_0.gguf"), model, tokenizer, quantize=True)
    log.say(greedy_text(model, tokenizer, "In the beginning"))


if __name__ == "__main__":
    main()
