"""Compares how texts become tokens here and in the published llama.cpp, for every pre-tokenizer; records pieces for the tests.

usage: compare_tokenizers.py RONDO ORACLE LIBRARIES compare VOCABULARY.gguf... [--seed N] [--texts N]
       compare_tokenizers.py RONDO ORACLE LIBRARIES record OUT.json
  RONDO       the command
  ORACLE      a program that runs LIBRARIES: ORACLE LIBRARIES tokenize MODEL special <TEXT prints ids, no BOS, with control
              tokens parsed; needs LD_LIBRARY_PATH=LIBRARIES, which this script sets
  LIBRARIES   the folder with libllama and its like, as npm's package node-llama-cpp has it
  VOCABULARY  files with byte-level BPE and a control token, as llama.cpp's ggml-vocab-gpt-2.gguf

compare: for each name a copy of each vocabulary that names it, and made-up texts (5,000) tokenized by both; exit status 1 if
any differ. record: the bytes of each piece of some texts by the oracle (tests/data/pre_tokenizers.json, read by
pre_tokenizer_test.cpp). The texts of a run are joined by a control token, at which any tokenizer starts anew.
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

SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, CONTROL = 8, 9, 3
PRE, TOKENS, TYPES = "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
END = "<end>"

LETTERS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "éèüößçñåøæœłžÄÖÜÉÑÇŁŽſ\u212a\u212b", "αβγδωΩΣΠάέ", "абвгдежзЖЩЭЮЯ", "ǅǈǋ",
           "ʰʱˠªº", "漢字中文我们龥龦㐀一豈𠀀", "ひらがなのは", "カタカナー･ｱ", "한국어가각힣ㄱㅎ", "ไทยภาษากเ", "العربيةمحمد", "עבריתשלום",
           "हिन्दीकख", "বাংলা", "தமிழ்", "𐐀𐐨𝐀", "ႠᎠᏸᲐ", "ㄅㄆ", "ꩠꧠᄀຮກកម"]
NUMBERS = ["0123456789", "Ⅷ½²³①", "٠١٢٣", "०१२३", "１２３４", "๑๒"]
BLANKS = " \t\n\r\v\f\u0085\u00a0\u1680\u2003\u2009\u2028\u2029\u202f\u205f\u3000"
MARKS = "\u0300\u0301\u0308\u064b\u064e\u05b0\u093e\u094d\u0e31\u0e34\u20dd\ufe0f\u0327\U000e0100"
STOPS = "!\"#%&'()*,-./:;?@[\\]_{}¡§«·»¿–—‘’“”…、。「」，！？।۔،・〿︰﹏"
SYMBOLS = "$+<=>^`|~¢£©®°±¬×÷←→∑√∞≠™€😀👍🇫🇷♥☃"
OTHERS = "\x01\x1c\x1f\x7f\x80\x9f\u200b\u200c\u200d\ufeff\u2060\ue000\U000f0000\uffff\u0378\u00ad\ufa6e\U000e0001"
PHRASES = ["'s", "'S", "'t", "'T", "'re", "'Re", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'d", "'D", "'ſ", "don't", "I'M", "'", "\r\n", "\n\n", " \n", "\n ", "  ", "   ", "    ",
           "//", "!\n/", ";\n", "?\r\n\r\n", "<sentinel:12>", "<sentinel:>", "IMGIMGABCZ", "IMGIMGABCDEZ", "1234567", "1,000,000", "3.14", "0x1F", "_1234", "1234_", "a1234b",
           "HelloWorld", "camelCase", "XMLHttp", "👨‍👩‍👧", "e\u0301", "http://x.y/z?q=1", "def f(x):\n    return x\n", " " * 9, " " * 70]


def made_up_text(numbers):
    """A few parts of all kinds, long enough for expressions to meet each other's ends."""
    def some(characters, most):
        return "".join(numbers.choice(characters) for _ in range(numbers.randint(1, most)))

    def part():
        kind = numbers.random()
        if kind < 0.3:
            return some(numbers.choice(LETTERS), 5)
        if kind < 0.4:
            return some(numbers.choice(NUMBERS[:1] * 4 + NUMBERS), 8)
        if kind < 0.5:
            return numbers.choice(BLANKS) * numbers.choice([1, 1, 1, 2, 3, 5])
        if kind < 0.6:
            return " " * numbers.choice([1, 1, 1, 2, 3, 4, 7])
        for limit, characters in ((0.67, STOPS), (0.72, SYMBOLS), (0.78, MARKS), (0.81, OTHERS)):
            if kind < limit:
                return some(characters, 2)
        return numbers.choice(PHRASES)
    return "".join(part() for _ in range(numbers.choice([1, 2, 3, 4, 5, 6, 8, 12, 20])))


class Metadata:
    """The keys of a GGUF file without tensors, each as its bytes in the file."""

    def __init__(self, path):
        self.data, self.place, self.entries, self.lists = open(path, "rb").read(), 8, {}, {}
        n_tensors, n_keys = self.take("Q"), self.take("Q")
        if n_tensors:
            sys.exit(f"{path}: expected a file of a vocabulary alone")
        for _ in range(n_keys):
            begin = self.place
            name = self.string().decode()
            value = self.value(self.take("I"))
            if name in (TOKENS, TYPES):
                self.lists[name] = value
            self.entries[name] = self.data[begin:self.place]

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.place)[0]
        self.place += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.take("Q")
        self.place += size
        return self.data[self.place - size:self.place]

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, n = self.take("I"), self.take("Q")
            if element == STRING:
                return [self.string() for _ in range(n)]
            if element == 5:
                return [self.take("i") for _ in range(n)]
            self.place += SCALARS[element] * n
            return None
        self.place += SCALARS[kind]
        return None

    def control_token(self):
        return next(token.decode() for token, kind in zip(self.lists[TOKENS], self.lists[TYPES]) if kind == CONTROL)

    def write(self, path, pre):
        write_gguf(path, dict(self.entries, **{PRE: entry(PRE, STRING, packed(pre))}))


def packed(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(name, kind, payload):
    return packed(name) + struct.pack("<I", kind) + payload


def write_gguf(path, entries):
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries.values()))


class Both:
    def __init__(self, arguments, folder):
        self.rondo, self.oracle, self.libraries, self.folder = arguments.RONDO, arguments.ORACLE, arguments.LIBRARIES, folder

    def oracle_ids(self, model, text):
        done = subprocess.run([self.oracle, self.libraries, "tokenize", model, "special"], input=text.encode(), capture_output=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=self.libraries))
        if done.returncode:
            sys.exit(f"{model}: the oracle's exit status is {done.returncode}: {done.stderr.decode()[-300:]}")
        return [int(number) for number in done.stdout.split(b",") if number.strip()]

    def our_ids(self, model, text):
        path = f"{self.folder}/text"
        with open(path, "wb") as file:
            file.write(text.encode())
        done = subprocess.run([self.rondo, "tokenize", "-m", model, "-f", path, "--no-bos", "--parse-special", "--json"], capture_output=True)
        if done.returncode:
            sys.exit(f"{model}: {done.stderr.decode()}")
        return json.loads(done.stdout)["tokens"]

    def names(self):
        """The pre-tokenizers that the command knows, which it lists where it refuses one."""
        path = f"{self.folder}/names.gguf"
        write_gguf(path, made_up_vocabulary(["ab"], "no such name"))
        done = subprocess.run([self.rondo, "tokenize", "-m", path, "-p", "a"], capture_output=True, text=True)
        return re.search(r"expected one of (.*)", done.stderr).group(1).split(", ")


def cut(ids, end):
    """The ids between those of the control token `end`."""
    parts = [[]]
    for number in ids:
        if number == end:
            parts.append([])
        else:
            parts[-1].append(number)
    return parts


def letter(byte):
    """GPT-2's letter for a byte."""
    visible = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    return chr(byte) if byte in visible else chr(0x100 + [b for b in range(256) if b not in visible].index(byte))


def made_up_vocabulary(texts, pre):
    """A vocabulary in which any piece of the texts is one token: all their substrings, merged from any two halves."""
    alphabet = [letter(byte) for byte in range(256)]
    tokens, merges = dict.fromkeys(alphabet), {}
    for character in sorted(set("".join(texts))):
        raw = [alphabet[byte] for byte in character.encode()]
        for n in range(2, len(raw) + 1):
            merges[("".join(raw[:n - 1]), raw[n - 1])] = None
            tokens["".join(raw[:n])] = None
    for text in texts:
        spelled = ["".join(alphabet[byte] for byte in character.encode()) for character in text]
        for size in range(2, len(text) + 1):
            for begin in range(len(text) - size + 1):
                tokens["".join(spelled[begin:begin + size])] = None
                for middle in range(begin + 1, begin + size):
                    merges[("".join(spelled[begin:middle]), "".join(spelled[middle:begin + size]))] = None
    spellings = [*tokens, END]
    types = [1] * len(tokens) + [CONTROL]
    lines = [f"{left} {right}" for left, right in merges]
    strings = lambda values: struct.pack("<IQ", STRING, len(values)) + b"".join(map(packed, values))
    entries = [("general.architecture", STRING, packed("llama")), ("tokenizer.ggml.model", STRING, packed("gpt2")), (PRE, STRING, packed(pre)),
               (TOKENS, ARRAY, strings(spellings)), (TYPES, ARRAY, struct.pack(f"<IQ{len(types)}i", 5, len(types), *types)),
               ("tokenizer.ggml.merges", ARRAY, strings(lines)), ("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", len(tokens))),
               ("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", len(tokens)))]
    return {name: entry(name, kind, payload) for name, kind, payload in entries}


def compare(both, arguments):
    numbers = random.Random(arguments.seed)
    texts = [made_up_text(numbers) for _ in range(arguments.texts)]
    n_different = n_compared = 0
    for vocabulary in arguments.files:
        metadata = Metadata(vocabulary)
        separator = metadata.control_token()
        end = metadata.lists[TOKENS].index(separator.encode())
        for name in both.names():
            model = f"{both.folder}/model.gguf"
            metadata.write(model, name)
            joined = separator.join(texts)
            theirs, ours = cut(both.oracle_ids(model, joined), end), cut(both.our_ids(model, joined), end)
            different = [i for i, text in enumerate(texts) if theirs[i:i + 1] != ours[i:i + 1]]
            n_compared, n_different = n_compared + len(texts), n_different + len(different)
            for i in sorted(different, key=lambda i: len(texts[i]))[:3]:
                print(f"{vocabulary} {name} {texts[i]!a}: {theirs[i:i + 1]}, here {ours[i:i + 1]}")
    print(f"{n_compared} texts compared, {n_different} differ")
    return n_different > 0


def record(both, arguments):
    numbers = random.Random(arguments.seed)
    texts = ["Hello world, it's 12345 o'clock!", "I'LL WE'VE don'T 'REx", "x = foo(bar[1]) // no\n\n  y\r\n", "  \t a\u3000\u3000b \u2003", "HELLOWorld McDonald ÉTÉété", "1234567 ١٢٣٤٥٦٧x 1,234,567.89",
             "e\u0301tude naïve क्षि ไทย", "我们123テスト 한국어です。", "a.b,c!d?e…f。g،h", "!\n/\n//x ;\r\n\r\n"]
    while len(texts) < 150:
        text = made_up_text(numbers)
        if 4 <= len(text) <= 22 and not set(text) & set(OTHERS[11:]) and text not in texts:
            texts.append(text)
    model, names, pieces = f"{both.folder}/model.gguf", {}, {}
    entries = made_up_vocabulary(texts, "gpt-2")
    write_gguf(model, entries)
    sizes = [len(token.decode()) for token in Metadata(model).lists[TOKENS]]
    for name in both.names():
        write_gguf(model, dict(entries, **{PRE: entry(PRE, STRING, packed(name))}))
        parts = cut(both.oracle_ids(model, END.join(texts)), len(sizes) - 1)
        lines = [" ".join(str(sizes[number]) for number in part) for part in parts]
        same = next((kind for kind, recorded in pieces.items() if recorded == lines), name)
        names[name] = same
        pieces[same] = lines
        print(name, same)
    with open(arguments.files[0], "w") as file:
        json.dump({"texts": texts, "names": names, "pieces": pieces}, file, indent=0, separators=(",", ":"))
        file.write("\n")
    return False


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("RONDO", "ORACLE", "LIBRARIES"):
        parser.add_argument(name)
    parser.add_argument("what", choices=("compare", "record"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return (compare if arguments.what == "compare" else record)(Both(arguments, folder), arguments)


if __name__ == "__main__":
    sys.exit(main())
