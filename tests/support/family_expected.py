"""Records what the published llama.cpp makes of the tiny random files of all families (tests/support/family_gguf.h).

usage: family_expected.py WRITER ORACLE LIBRARIES OUT.safetensors
  WRITER     the program rondo_family_files
  ORACLE     a program that runs LIBRARIES: ORACLE LIBRARIES logits MODEL IDS OUT.f32 writes (tokens, vocabulary) logits of all
             positions, computed on the CPU with an f32 KV cache; needs LD_LIBRARY_PATH=LIBRARIES, which this script sets
  LIBRARIES  the folder with libllama and its like, as npm's package node-llama-cpp has it

GPT-J and OPT, which llama.cpp does not have, are computed by PyTorch in float64 (Debian's python3-torch; torch_reference.py).

For each NAME.SEED of two seeds: NAME.SEED.ids (40), NAME.SEED.rows, NAME.SEED.logits (rows, 307), and NAME.SEED.greedy, tokens
that follow, each the best by at least 0.5 % of the logits' range: those before one that is not, 4 to 8.
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import numpy as np

import torch_reference

SEEDS = (1, 2)
ROWS = [0, 9, 17, 25, 32, 39]
N_TOKENS, LEAST_GREEDY, MOST_GREEDY, MARGIN = 40, 4, 8, 0.005


def logits_of(oracle, libraries, model, ids, scratch):
    command = [oracle, libraries, "logits", model, ",".join(map(str, ids)), scratch]
    subprocess.run(command, check=True, env=dict(os.environ, LD_LIBRARY_PATH=libraries), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return np.fromfile(scratch, dtype=np.float32).reshape(len(ids), -1)


def greedy_tokens(logits_after, span):
    tokens = []
    while len(tokens) < MOST_GREEDY:
        last = logits_after(tokens)
        best = np.sort(last)[-2:]
        if best[1] - best[0] < MARGIN * span:
            break
        tokens.append(int(last.argmax()))
    return tokens


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": {"float32": "F32", "int32": "I32"}[str(array.dtype)], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in tensors.values()))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    writer, oracle, libraries, out = sys.argv[1:]
    tensors = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            names = subprocess.run([writer, folder, str(seed)], check=True, capture_output=True, text=True).stdout.split()
            for name in names:
                model, scratch, greedy, salt = f"{folder}/{name}.gguf", f"{folder}/logits", [], 0
                while len(greedy) < LEAST_GREEDY:
                    salt += 1
                    numbers = random.Random(f"{name} {salt}")
                    ids = [numbers.randrange(3, 307) for _ in range(N_TOKENS)]
                    of = torch_reference.REFERENCES.get(name.split(".")[0], lambda model, ids: logits_of(oracle, libraries, model, ids, scratch))
                    logits = of(model, ids)
                    greedy = greedy_tokens(lambda more: of(model, ids + more)[-1], logits.max() - logits.min())
                tensors[f"{name}.ids"] = np.array(ids, dtype=np.int32)
                tensors[f"{name}.rows"] = np.array(ROWS, dtype=np.int32)
                tensors[f"{name}.logits"] = logits[ROWS]
                tensors[f"{name}.greedy"] = np.array(greedy, dtype=np.int32)
                print(name, len(greedy))
    write_safetensors(out, tensors)


if __name__ == "__main__":
    main()
