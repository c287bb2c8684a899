"""Compares how texts become tokens here and elsewhere, for the tokenizers of encoders and encoder-decoders.

usage: compare_encoders.py RONDO [--oracle ORACLE LIBRARIES BERT.gguf] [--seed N] [--texts N]
  RONDO      the command
  ORACLE     as compare_tokenizers.py has it; BERT.gguf: llama.cpp's ggml-vocab-bert-bge.gguf, or another with WordPiece

WordPiece and SentencePiece's models as GGUF "t5" beside llama.cpp (with --oracle); folders with SentencePiece's files, which are trained
here, beside Python's sentencepiece (Debian: python3-sentencepiece; run with /usr/bin/python3); WordPiece of folders, byte-level BPE from
vocab.json and merges.txt, and CLIP's BPE beside the definitions below. What is not there is skipped and said. Exit status 1 if any text
differs. Made-up texts (5,000 of each comparison) are joined by a control token, at which any tokenizer starts anew.
"""

import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_tokenizers as tokenizers

try:
    import sentencepiece
except ImportError:
    sentencepiece = None

QWEN2 = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/qwen2")
MARK = "<|cut|>"
SPACE = "\u2581"
PROSE = """In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness was upon the face of the
deep. Le renard brun saute par-dessus le chien paresseux, déjà vu à l'été. Über die Brücke gehen fünf Mädchen. Съешь ещё этих мягких французских
булок. 吾輩は猫である。名前はまだ無い。 我们都是中国人。 한국어 문장입니다. مرحبا بالعالم. 1234 5678 3.14 hello world, how are you? It's fine! naïve café résumé ａｂｃ １２３ ﬁne"""


class Folder:
    """A folder of a small network with `n` tokens, and files of a tokenizer."""

    def __init__(self, path, n):
        self.path = path
        os.makedirs(path)
        with open(f"{QWEN2}/config.json") as file:
            config = json.load(file)
        config["vocab_size"] = n
        config.pop("eos_token_id", None)
        self.write("config.json", json.dumps(config))
        with open(f"{QWEN2}/model.safetensors", "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header, data = json.loads(file.read(size)), file.read()
        header.pop("__metadata__", None)
        parts, place = [], 0
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            raw = data[begin:end]
            if "embed_tokens" in name or "lm_head" in name:
                raw = bytes(len(raw) // entry["shape"][0] * n)
                entry["shape"][0] = n
            entry["data_offsets"] = [place, place + len(raw)]
            place += len(raw)
            parts.append(raw)
        text = json.dumps(header).encode()
        with open(f"{path}/model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))

    def write(self, name, data):
        with open(f"{self.path}/{name}", "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())


class Comparison:
    def __init__(self, arguments, folder):
        self.rondo, self.folder, self.n_compared, self.n_different = arguments.RONDO, folder, 0, 0
        numbers = random.Random(arguments.seed)
        self.texts = [tokenizers.made_up_text(numbers) for _ in range(arguments.texts)]
        words = re.findall(r"\S+", PROSE)
        for i in range(0, len(self.texts), 3):  # a third has words that models know
            self.texts[i] += numbers.choice(tokenizers.BLANKS) + " ".join(numbers.choice(words) for _ in range(numbers.randint(1, 8))) + " " * numbers.randint(0, 2)
        self.texts = [text.replace("\0", "") for text in self.texts]

    def ours(self, model, texts, *flags):
        """A run for each text, with what is put around it."""
        ids = []
        path = f"{self.folder}/text"
        for text in texts:
            with open(path, "wb") as file:
                file.write(text.encode())
            done = subprocess.run([self.rondo, "tokenize", "-m", model, "-f", path, *flags], capture_output=True)
            if done.returncode:
                sys.exit(f"{model}: {done.stderr.decode()}")
            ids.append([int(number) for number in done.stdout.split(b",") if number.strip()])
        return ids

    def together(self, model, texts, mark, mark_id):
        """All texts in one run, cut at a control token."""
        path = f"{self.folder}/text"
        with open(path, "wb") as file:
            file.write(mark.join(texts).encode())
        done = subprocess.run([self.rondo, "tokenize", "-m", model, "-f", path, "--no-bos", "--parse-special", "--json"], capture_output=True)
        if done.returncode:
            sys.exit(f"{model}: {done.stderr.decode()}")
        return tokenizers.cut(json.loads(done.stdout)["tokens"], mark_id)

    def judge(self, name, theirs, ours, texts=None):
        texts = self.texts if texts is None else texts
        different = [i for i in range(len(texts)) if theirs[i:i + 1] != ours[i:i + 1]]
        self.n_compared += len(texts)
        self.n_different += len(different)
        print(f"{name}: {len(texts)} texts of {sum(map(len, theirs))} tokens, {len(different)} differ", flush=True)
        for i in sorted(different, key=lambda i: len(texts[i]))[:3]:
            print(f"  {texts[i]!a}: {theirs[i:i + 1]}, here {ours[i:i + 1]}")


def compare_sentencepiece(comparison):
    if sentencepiece is None:
        return print("SentencePiece: skipped, Python has no sentencepiece")
    corpus = f"{comparison.folder}/corpus.txt"
    with open(corpus, "w") as file:
        file.write("\n".join([PROSE] * 3 + [" ".join(random.Random(i).sample(PROSE.split(), 20)) for i in range(300)]))
    cases = [("unigram", False, "nmt_nfkc", {}), ("unigram", True, "nmt_nfkc_cf", {}), ("unigram", False, "identity", {"remove_extra_whitespaces": False}),
             ("unigram", False, "nmt_nfkc", {"add_dummy_prefix": False, "user_defined_symbols": "<sep>,the"}), ("bpe", False, "nmt_nfkc", {}), ("bpe", True, "identity", {"remove_extra_whitespaces": False}),
             ("bpe", False, "nfkc_cf", {"user_defined_symbols": "<sep>,ear"})]
    for number, (kind, bytes_too, rule, more) in enumerate(cases):
        prefix = f"{comparison.folder}/sp{number}"
        sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, vocab_size=600 if bytes_too else 400, model_type=kind, byte_fallback=bytes_too, normalization_rule_name=rule,
                                                 character_coverage=0.99, hard_vocab_limit=False, minloglevel=3, control_symbols=MARK, **more)
        theirs = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
        n = theirs.get_piece_size()
        folder = Folder(f"{comparison.folder}/folder{number}", n + 200)
        with open(prefix + ".model", "rb") as file:
            folder.write("spiece.model", file.read())
        folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "T5Tokenizer"}))
        ours = comparison.together(folder.path, comparison.texts, MARK, theirs.piece_to_id(MARK))
        expected = [theirs.encode(text) for text in comparison.texts]
        comparison.judge(f"{kind} {rule}{' bytes' if bytes_too else ''} {more or ''}", expected, ours)
        whole = comparison.ours(folder.path, comparison.texts[:20])
        comparison.judge("  with what is put around", [ids + [theirs.eos_id()] for ids in expected[:20]], whole, comparison.texts[:20])
        if number not in (0, 4):
            continue
        # Marian and M2M-100: other ids, some pieces without one. XLM-RoBERTa: one further.
        pieces = [theirs.id_to_piece(i) for i in range(n)]
        known = [piece for i, piece in enumerate(pieces) if i % 7 or piece.startswith("<")]
        random.Random(number).shuffle(known)
        ids = {piece: i for i, piece in enumerate(["only_here", ">>fr<<"] + known)}
        folder = Folder(f"{comparison.folder}/marian{number}", len(ids) + 3)
        with open(prefix + ".model", "rb") as file:
            model = file.read()
        folder.write("source.spm", model)
        folder.write("sentencepiece.bpe.model", model)
        folder.write("vocab.json", json.dumps(ids))
        folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "MarianTokenizer"}))
        some = comparison.texts[:300]
        marian = [[ids.get(piece, ids["<unk>"]) for piece in theirs.encode(text, out_type=str)] for text in some]
        comparison.judge("  Marian", [each + [ids["</s>"]] for each in marian], comparison.ours(folder.path, some), some)
        comparison.judge("  Marian, a language", [[ids[">>fr<<"]] + each + [ids["</s>"]] for each in marian[:50]], comparison.ours(folder.path, [">>fr<<" + text for text in some[:50]]), some[:50])
        folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "M2M100Tokenizer", "additional_special_tokens": ["__en__", "__fr__"], "src_lang": "fr"}))
        comparison.judge("  M2M-100", [[len(ids) + 1] + each + [ids["</s>"]] for each in marian[:50]], comparison.ours(folder.path, some[:50]), some[:50])
        folder = Folder(f"{comparison.folder}/xlm{number}", n + 2)
        folder.write("sentencepiece.bpe.model", model)
        folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "XLMRobertaTokenizer"}))
        expected = [[0] + [3 if i == 0 else i + 1 for i in ids_of] + [2] for ids_of in expected[:100]]
        comparison.judge("  XLM-RoBERTa", expected, comparison.ours(folder.path, comparison.texts[:100]), comparison.texts[:100])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("RONDO")
    parser.add_argument("--oracle", nargs=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, folder)
        compare_sentencepiece(comparison)
        print(f"{comparison.n_compared} texts compared, {comparison.n_different} differ")
        return comparison.n_different > 0


if __name__ == "__main__":
    sys.exit(main())
