#!/usr/bin/python3
"""Trains the bundled BERT (Devlin et al. 2019) on the verses of the World English Bible: masked words, and from which of both
testaments a verse is, with one encoder under both heads.

usage: verses_bert.py OUT_DIR [--minutes M]     trains for M minutes more from the checkpoint in the user's cache, writes the folder
       verses_bert.py OUT_DIR --score           accuracy of both heads on the held-out chapters with the folder
Needs Debian's python3-torch, libopenblas0 and what verses.py needs.
"""
import argparse
import collections
import json
import math
import pathlib
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

import folders
import verses
import word_pieces
from word_pieces import CLS, MASK, PAD, SEP

WIDTH, HEADS, FFN_WIDTH, LAYERS = 128, 4, 512, 4
PIECES = 4000
POSITIONS = 128
EPSILON = 1e-12
DROPOUT = 0.1
MASKED = 0.15
BATCH_TOKENS = 4096
RATE, WARM_UP = 2e-3, 1000
REPORT_MINUTES = 10
LABELS = ["Old Testament", "New Testament"]


# The network, its parameters named as transformers names them

class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x, mask):
        def heads(y):
            return y.view(y.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)
        scores = heads(self.query(x)) @ heads(self.key(x)).transpose(2, 3) / math.sqrt(WIDTH // HEADS) + mask
        mixed = F.dropout(scores.softmax(-1), DROPOUT, self.training) @ heads(self.value(x))
        return mixed.transpose(1, 2).reshape(x.shape)


class Output(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(width, WIDTH), nn.LayerNorm(WIDTH, EPSILON)

    def forward(self, y, x):
        return self.LayerNorm(F.dropout(self.dense(y), DROPOUT, self.training) + x)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = folders.block(self=SelfAttention(), output=Output(WIDTH))
        self.intermediate = folders.block(dense=nn.Linear(WIDTH, FFN_WIDTH))
        self.output = Output(FFN_WIDTH)

    def forward(self, x, mask):
        x = self.attention.output(getattr(self.attention, "self")(x, mask), x)
        return self.output(F.gelu(self.intermediate.dense(x)), x)


class Bert(nn.Module):
    def __init__(self, n_tokens):
        super().__init__()
        self.bert = folders.block(
            embeddings=folders.block(word_embeddings=nn.Embedding(n_tokens, WIDTH), position_embeddings=nn.Embedding(POSITIONS, WIDTH),
                             token_type_embeddings=nn.Embedding(2, WIDTH), LayerNorm=nn.LayerNorm(WIDTH, EPSILON)),
            encoder=folders.block(layer=nn.ModuleList(Layer() for _ in range(LAYERS))),
            pooler=folders.block(dense=nn.Linear(WIDTH, WIDTH)))
        self.cls = folders.block(predictions=folders.block(transform=folders.block(dense=nn.Linear(WIDTH, WIDTH), LayerNorm=nn.LayerNorm(WIDTH, EPSILON))))
        self.cls.predictions.bias = nn.Parameter(torch.zeros(n_tokens))
        self.classifier = nn.Linear(WIDTH, len(LABELS))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.04)
                if isinstance(module, nn.Linear):
                    nn.init.zeros_(module.bias)

    def forward(self, tokens):
        embeddings = self.bert.embeddings
        x = embeddings.word_embeddings(tokens) + embeddings.position_embeddings.weight[: tokens.shape[1]]
        x = F.dropout(embeddings.LayerNorm(x + embeddings.token_type_embeddings.weight[0]), DROPOUT, self.training)
        mask = torch.zeros(tokens.shape).masked_fill(tokens == PAD, -1e9)[:, None, None, :]
        for layer in self.bert.encoder.layer:
            x = layer(x, mask)
        return x

    def words(self, rows):
        """(N, width) -> (N, pieces)"""
        transform = self.cls.predictions.transform
        rows = transform.LayerNorm(F.gelu(transform.dense(rows)))
        return rows @ self.bert.embeddings.word_embeddings.weight.T + self.cls.predictions.bias

    def testament(self, x):
        """(B, T, width) -> (B, 2)"""
        return self.classifier(F.dropout(torch.tanh(self.bert.pooler.dense(x[:, 0])), DROPOUT, self.training))


# Text

def framed(rows):
    rows = [[CLS] + row[: POSITIONS - 2] + [SEP] for row in rows]
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def masked(tokens, n_tokens):
    """Of the pieces that are to be guessed, 8 of 10 are masked, 1 is another, 1 stays."""
    chosen = (torch.rand(tokens.shape) < MASKED) & (tokens > MASK)
    kind = torch.rand(tokens.shape)
    given = torch.where(chosen & (kind < 0.8), torch.full_like(tokens, MASK), tokens)
    given = torch.where(chosen & (kind >= 0.9), torch.randint(MASK + 1, n_tokens, tokens.shape), given)
    return given, chosen


def batches(rows, generator):
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i][0]), generator.random()))
    found, batch = [], []
    for i in order:
        if batch and (len(batch) + 1) * (len(rows[i][0]) + 2) > BATCH_TOKENS:
            found.append(batch)
            batch = []
        batch.append(rows[i])
    found.append(batch)
    generator.shuffle(found)
    return found


# Scores

def questions(pieces, held_out):
    """A verse with one word masked that is one piece, as text, and that piece: what `rondo fill` is asked."""
    generator = random.Random(7)
    found = []
    for verse in held_out:
        parts = verse.english.split(" ")
        whole = [i for i, part in enumerate(parts) if part.isalpha() and len(pieces.of_word(part.lower())) == 1]
        if whole and len(pieces.encode(verse.english)) <= POSITIONS - 2:
            place = generator.choice(whole)
            answer = parts[place].lower()
            found.append((" ".join(parts[:place] + ["[MASK]"] + parts[place + 1 :]), answer))
    return found


@torch.no_grad()
def guess_words(model, pieces, asked):
    found = []
    for text, _ in asked:
        before, behind = text.split("[MASK]")
        row = pieces.encode(before) + [MASK] + pieces.encode(behind)
        tokens = framed([row])
        logits = model.words(model(tokens)[0, tokens[0] == MASK])[0]
        found.append(pieces.pieces[int(logits.argmax())])
    return found


@torch.no_grad()
def guess_testaments(model, pieces, lines):
    return [int(model.testament(model(framed([pieces.encode(line)])))[0].argmax()) for line in lines]


def scores(model, pieces, training, held_out):
    asked = questions(pieces, held_out)
    usual = collections.Counter(word for verse in training for word in word_pieces.words(verse.english) if word.isalpha()).most_common(1)[0][0]
    guessed = guess_words(model, pieces, asked)
    told = guess_testaments(model, pieces, [verse.english for verse in held_out])
    new = [verse.book >= verses.OLD_TESTAMENT for verse in held_out]
    return {
        "masked words": sum(guess == answer for guess, (_, answer) in zip(guessed, asked)) / len(asked),
        f"always '{usual}'": sum(usual == answer for _, answer in asked) / len(asked),
        "testament": sum(guess == truth for guess, truth in zip(told, new)) / len(new),
        "larger testament": max(sum(new), len(new) - sum(new)) / len(new),
    }


# Training and folders

def write_folder(out, state, pieces):
    out.mkdir(parents=True, exist_ok=True)
    folders.write_safetensors(out / "model.safetensors", state)
    folders.write_json(out / "config.json", {
        "architectures": ["BertForMaskedLM", "BertForSequenceClassification"], "model_type": "bert", "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": FFN_WIDTH, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "vocab_size": len(pieces.pieces), "layer_norm_eps": EPSILON,
        "position_embedding_type": "absolute", "pad_token_id": PAD, "tie_word_embeddings": True, "torch_dtype": "float16",
        "id2label": dict(enumerate(LABELS)), "label2id": {label: i for i, label in enumerate(LABELS)}})
    folders.write_json(out / "tokenizer_config.json", {
        "tokenizer_class": "BertTokenizer", "do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True,
        "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]",
        "model_max_length": POSITIONS})
    (out / "vocab.txt").write_text("\n".join(pieces.pieces) + "\n", encoding="utf-8")


def train(out, minutes):
    training, held_out = verses.read_verses()
    cache = folders.cache_folder("verses_bert")
    vocabulary = cache / "vocab.txt"
    if not vocabulary.exists():
        vocabulary.write_text("\n".join(word_pieces.train([verse.english for verse in training], PIECES)), encoding="utf-8")
    pieces = word_pieces.WordPieces(vocabulary.read_text(encoding="utf-8").split("\n"))
    rows = [(pieces.encode(verse.english), verse.book >= verses.OLD_TESTAMENT) for verse in training]
    torch.manual_seed(1)
    model = Bert(len(pieces.pieces))
    print(f"{sum(len(row) for row, _ in rows)} tokens, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    training_ = folders.Training(model, cache / "checkpoint.pt", rate=RATE, warm_up=WARM_UP, weight_decay=0.01)
    torch.manual_seed(training_.step)
    generator = random.Random(training_.step)
    probe = Bert(len(pieces.pieces)).eval()
    end = time.time() + 60 * minutes
    reported, losses, told, tokens = time.time(), [], [], 0
    model.train()
    while time.time() < end:
        for batch in batches(rows, generator):
            clean = framed([row for row, _ in batch])
            given, chosen = masked(clean, len(pieces.pieces))
            x = model(given)
            words = F.cross_entropy(model.words(x[chosen]), clean[chosen])
            testament = F.cross_entropy(model.testament(x), torch.tensor([int(new) for _, new in batch]))
            training_.take(words + 0.2 * testament)
            losses.append(words.item())
            told.append(testament.item())
            tokens += sum(len(row) for row, _ in batch)
            late = time.time() >= end
            if late or time.time() - reported > 60 * REPORT_MINUTES:
                probe.load_state_dict(folders.halves(training_.mean))
                epochs = (training_.log[-1]["epochs"] if training_.log else 0) + tokens / sum(len(row) for row, _ in rows)
                training_.log.append({"minutes": training_.seconds / 60, "steps": training_.step, "epochs": epochs, "loss of words": sum(losses) / len(losses),
                                      "loss of testaments": sum(told) / len(told), **scores(probe, pieces, training, held_out[::2])})
                print(json.dumps(training_.log[-1]), flush=True)
                training_.save()
                write_folder(out, training_.mean, pieces)
                reported, losses, told, tokens = time.time(), [], [], 0
                training_.last = time.time()
            if late:
                return


def read_folder(folder):
    pieces = word_pieces.WordPieces((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())
    model = Bert(len(pieces.pieces)).eval()
    model.load_state_dict(folders.read_safetensors(folder / "model.safetensors"))
    return pieces, model


def score(out):
    pieces, model = read_folder(out)
    for name, value in scores(model, pieces, *verses.read_verses()).items():
        print(f"{name}: {value:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--score", action="store_true")
    arguments = parser.parse_args()
    if arguments.score:
        score(arguments.out)
    else:
        train(arguments.out, arguments.minutes)


if __name__ == "__main__":
    main()
