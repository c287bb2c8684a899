#!/usr/bin/python3
"""Trains the bundled translator, English to Spanish: the Transformer of Vaswani et al. (2017) on the verses of two Bibles.

usage: translator.py OUT_DIR [--minutes M]     trains for M minutes more from the checkpoint in the user's cache, writes the folder
       translator.py OUT_DIR --score           translates the held-out chapters with the folder; prints BLEU
The folder is of Marian's kind: norms behind residuals, ReLU, sinusoidal positions, one table of embeddings for everything.
Needs Debian's python3-torch, libopenblas0, python3-sentencepiece and what verses.py needs.
"""
import argparse
import io
import json
import math
import pathlib
import random
import time

import sentencepiece
import torch
import torch.nn.functional as F
from torch import nn

import bleu
import folders
import verses

WIDTH, HEADS, FFN_WIDTH, LAYERS = 128, 4, 512, 3
PIECES = 3500
POSITIONS = 256
DROPOUT = 0.1
SMOOTHING = 0.1
BATCH_TOKENS = 2200  # of the longer side, padding included
RATE, WARM_UP = 3e-3, 1000
REPORT_MINUTES = 15


# The network, its parameters named as transformers names them

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, source, mask):
        """`mask` is added to the scores, (B, 1, 1 or T, S)."""
        def heads(y):
            return y.view(y.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = heads(self.q_proj(x)), heads(self.k_proj(source)), heads(self.v_proj(source))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
        mixed = F.dropout(scores.softmax(-1), DROPOUT, self.training) @ v
        return self.out_proj(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    def __init__(self, of_decoder):
        super().__init__()
        self.self_attn, self.self_attn_layer_norm = Attention(), nn.LayerNorm(WIDTH)
        if of_decoder:
            self.encoder_attn, self.encoder_attn_layer_norm = Attention(), nn.LayerNorm(WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, FFN_WIDTH), nn.Linear(FFN_WIDTH, WIDTH)
        self.final_layer_norm = nn.LayerNorm(WIDTH)

    def forward(self, x, mask, source=None, source_mask=None):
        def dropped(y):
            return F.dropout(y, DROPOUT, self.training)
        x = self.self_attn_layer_norm(x + dropped(self.self_attn(x, x, mask)))
        if source is not None:
            x = self.encoder_attn_layer_norm(x + dropped(self.encoder_attn(x, source, source_mask)))
        return self.final_layer_norm(x + dropped(self.fc2(dropped(F.relu(self.fc1(x))))))


class Half(nn.Module):
    def __init__(self, of_decoder):
        super().__init__()
        self.layers = nn.ModuleList(Layer(of_decoder) for _ in range(LAYERS))


class Translator(nn.Module):
    def __init__(self, n_tokens, pad):
        super().__init__()
        self.pad = pad
        self.shared = nn.Embedding(n_tokens, WIDTH)
        nn.init.normal_(self.shared.weight, std=WIDTH**-0.5)
        self.encoder, self.decoder = Half(False), Half(True)
        angle = torch.arange(POSITIONS)[:, None] / 10000 ** (torch.arange(WIDTH // 2)[None, :] * 2 / WIDTH)
        self.register_buffer("positions", torch.cat([angle.sin(), angle.cos()], 1), persistent=False)

    def embed(self, tokens):
        x = self.shared(tokens) * math.sqrt(WIDTH) + self.positions[: tokens.shape[1]]
        return F.dropout(x, DROPOUT, self.training)

    def encode(self, source):
        mask = torch.zeros(source.shape).masked_fill(source == self.pad, -1e9)[:, None, None, :]
        x = self.embed(source)
        for layer in self.encoder.layers:
            x = layer(x, mask)
        return x, mask

    def decode(self, tokens, encoded, source_mask):
        n = tokens.shape[1]
        mask = torch.full((n, n), -1e9).triu(1)[None, None]
        x = self.embed(tokens)
        for layer in self.decoder.layers:
            x = layer(x, mask, encoded, source_mask)
        return x @ self.shared.weight.T

    @torch.no_grad()
    def translate(self, sources, eos, limit=POSITIONS - 1):
        """Greedy; the first token is padding, and padding is never chosen."""
        encoded, mask = self.encode(padded(sources, self.pad))
        tokens = torch.full((len(sources), 1), self.pad)
        ended = torch.zeros(len(sources), dtype=torch.bool)
        while tokens.shape[1] <= limit and not ended.all():
            logits = self.decode(tokens, encoded, mask)[:, -1]
            logits[:, self.pad] = -math.inf
            following = logits.argmax(1).masked_fill(ended, eos)
            ended |= following == eos
            tokens = torch.cat([tokens, following[:, None]], 1)
        return [row[: row.index(eos)] if eos in row else row for row in tokens[:, 1:].tolist()]


    @torch.no_grad()
    def search(self, source, eos, beams, length_penalty=1.0, limit=POSITIONS - 1):
        """Plain beam search of one source, everything computed anew at each step: the best result's tokens and its score."""
        encoded, mask = self.encode(torch.tensor([source]))
        running, results = [([], 0.0)], []
        for n in range(1, limit + 1):
            tokens = torch.tensor([[self.pad] + row for row, _ in running])
            logits = self.decode(tokens, encoded.expand(len(running), -1, -1), mask)[:, -1].double()
            sums = logits.log_softmax(-1) + torch.tensor([total for _, total in running], dtype=torch.float64)[:, None]
            order = sorted(((-value, at) for value, at in zip(*(t.tolist() for t in sums.flatten().topk(2 * beams)))))
            following = []
            for rank, (value, at) in enumerate(order):
                row, token = running[at // sums.shape[1]][0], at % sums.shape[1]
                if token == eos:
                    if rank < beams:
                        results.append((-value / n**length_penalty, row))
                elif len(following) < beams:
                    following.append((row + [token], -value))
            results = sorted(results, key=lambda result: -result[0])[:beams]
            running = following
            if len(results) == beams and running[0][1] / n**length_penalty <= results[-1][0]:
                break
        else:
            results = sorted(results + [(total / limit**length_penalty, row) for row, total in running], key=lambda result: -result[0])
        return results[0][1], results[0][0]


# Text

class Pieces:
    """Ids as a folder of Marian has them: the end of a text is 0, unknown pieces are 1, padding is last."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.model = sentencepiece.SentencePieceProcessor(model_file=str(path))
        names = [self.model.id_to_piece(i) for i in range(self.model.get_piece_size())]
        self.names = ["</s>", "<unk>"] + [name for name in names if name not in ("</s>", "<unk>")] + ["<pad>"]
        self.ids = {name: i for i, name in enumerate(self.names)}
        self.eos, self.pad = 0, len(self.names) - 1

    def encode(self, text):
        return [self.ids.get(piece, 1) for piece in self.model.encode(text, out_type=str)] + [self.eos]

    def decode(self, ids):
        return self.model.decode([self.names[i] for i in ids])


def train_pieces(training, path):
    lines = [line for verse in training for line in (verse.english, verse.spanish)]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=PIECES, model_type="unigram", character_coverage=1.0,
        normalization_rule_name="identity", bos_id=-1, eos_id=0, unk_id=1, pad_id=-1, num_threads=1, minloglevel=2)
    path.write_bytes(written.getvalue())


def padded(rows, pad):
    longest = max(map(len, rows))
    return torch.tensor([row + [pad] * (longest - len(row)) for row in rows])


def batches(pairs, generator):
    """Pairs of like lengths together, in a random order."""
    order = sorted(range(len(pairs)), key=lambda i: (max(map(len, pairs[i])), generator.random()))
    found, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * max(map(len, pairs[i])) > BATCH_TOKENS:
            found.append(batch)
            batch = []
        batch.append(pairs[i])
    found.append(batch)
    generator.shuffle(found)
    return found


# Training

def loss_of(model, batch, pieces):
    source = padded([pair[0] for pair in batch], pieces.pad)
    target = padded([pair[1] for pair in batch], pieces.pad)
    given = torch.cat([torch.full((len(batch), 1), pieces.pad), target[:, :-1]], 1)
    encoded, mask = model.encode(source)
    logits = model.decode(given, encoded, mask)
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=pieces.pad, label_smoothing=SMOOTHING if model.training else 0.0)


def translate_all(model, pieces, lines, size=64, briefly=False):
    """`briefly`: none is more than twice as long as its source, and 10 tokens more."""
    sources = [pieces.encode(line) for line in lines]
    order = sorted(range(len(lines)), key=lambda i: len(sources[i]))
    found = [""] * len(lines)
    for at in range(0, len(order), size):
        part = order[at : at + size]
        longest = max(len(sources[i]) for i in part)
        limit = min(POSITIONS - 1, 10 + 2 * longest) if briefly else POSITIONS - 1
        for i, ids in zip(part, model.translate([sources[i] for i in part], pieces.eos, limit)):
            found[i] = pieces.decode(ids)
    return found


def write_folder(out, model, state, pieces):
    out.mkdir(parents=True, exist_ok=True)
    named = {f"model.{name}": tensor for name, tensor in state.items()}
    named["final_logits_bias"] = torch.zeros(1, len(pieces.names))
    folders.write_safetensors(out / "model.safetensors", named)
    folders.write_json(out / "config.json", {
        "architectures": ["MarianMTModel"], "model_type": "marian", "activation_function": "relu", "d_model": WIDTH,
        "encoder_layers": LAYERS, "decoder_layers": LAYERS, "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
        "encoder_ffn_dim": FFN_WIDTH, "decoder_ffn_dim": FFN_WIDTH, "max_position_embeddings": POSITIONS, "vocab_size": len(pieces.names),
        "scale_embedding": True, "static_position_embeddings": True, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        "normalize_before": False, "normalize_embedding": False, "add_final_layer_norm": False, "is_encoder_decoder": True,
        "pad_token_id": pieces.pad, "eos_token_id": pieces.eos, "bos_token_id": pieces.eos, "decoder_start_token_id": pieces.pad,
        "forced_eos_token_id": pieces.eos, "bad_words_ids": [[pieces.pad]], "torch_dtype": "float16"})
    folders.write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "es", "separate_vocabs": False,
        "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "model_max_length": POSITIONS})
    for name in ("source.spm", "target.spm"):
        (out / name).write_bytes(pieces.path.read_bytes())
    (out / "vocab.json").write_text(json.dumps(pieces.ids, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def train(out, minutes):
    training, held_out = verses.read_verses()
    cache = folders.cache_folder("translator")
    path = cache / "pieces.model"
    if not path.exists():
        train_pieces(training, path)
    pieces = Pieces(path)
    pairs = [(pieces.encode(v.english), pieces.encode(v.spanish)) for v in training if 0.5 < len(v.english) / len(v.spanish) < 2]
    pairs = [pair for pair in pairs if max(map(len, pair)) < POSITIONS]
    print(f"{len(pairs)} verses, {sum(len(p[0]) for p in pairs)} and {sum(len(p[1]) for p in pairs)} tokens", flush=True)
    torch.manual_seed(1)
    model = Translator(len(pieces.names), pieces.pad)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    training_ = folders.Training(model, cache / "checkpoint.pt", rate=RATE, warm_up=WARM_UP)
    torch.manual_seed(training_.step)
    generator = random.Random(training_.step)
    sample = held_out[::4]
    probe = Translator(len(pieces.names), pieces.pad).eval()
    end = time.time() + 60 * minutes
    reported, losses, tokens = time.time(), [], 0
    model.train()
    while time.time() < end:
        for batch in batches(pairs, generator):
            loss = loss_of(model, batch, pieces)
            training_.take(loss)
            losses.append(loss.item())
            tokens += sum(len(pair[1]) for pair in batch)
            late = time.time() >= end
            if late or time.time() - reported > 60 * REPORT_MINUTES:
                probe.load_state_dict(folders.halves(training_.mean))
                score = bleu.bleu(translate_all(probe, pieces, [v.english for v in sample], briefly=True), [v.spanish for v in sample])
                epochs = (training_.log[-1]["epochs"] if training_.log else 0) + tokens / sum(len(p[1]) for p in pairs)
                training_.log.append({"minutes": training_.seconds / 60, "steps": training_.step, "epochs": epochs,
                                      "loss": sum(losses) / len(losses), "bleu": score})
                print(json.dumps(training_.log[-1]), flush=True)
                training_.save()
                write_folder(out, model, training_.mean, pieces)
                reported, losses, tokens = time.time(), [], 0
                training_.last = time.time()
            if late:
                return


def read_folder(folder):
    pieces = Pieces(folder / "source.spm")
    model = Translator(len(pieces.names), pieces.pad).eval()
    state = folders.read_safetensors(folder / "model.safetensors")
    model.load_state_dict({name[6:]: value for name, value in state.items() if name.startswith("model.")})
    return model, pieces


def score(out, beams):
    model, pieces = read_folder(out)
    held_out = verses.read_verses()[1]
    lines = [verse.english for verse in held_out]
    found = translate_all(model, pieces, lines) if beams == 1 else [pieces.decode(model.search(pieces.encode(line), pieces.eos, beams)[0]) for line in lines]
    print(f"BLEU {bleu.bleu(found, [v.spanish for v in held_out]):.2f} of {len(held_out)} verses")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--score", action="store_true")
    parser.add_argument("--beams", type=int, default=1, help="of --score")
    arguments = parser.parse_args()
    if arguments.score:
        score(arguments.out, arguments.beams)
    else:
        train(arguments.out, arguments.minutes)


if __name__ == "__main__":
    main()
