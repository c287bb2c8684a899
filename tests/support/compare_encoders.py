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


def is_white_space(character):
    return character in "\t\n\v\f\r\x85" or unicodedata.category(character) in ("Zs", "Zl", "Zp")


def is_ideograph(code):
    return any(first <= code <= last for first, last in ((0x4e00, 0x9fff), (0x3400, 0x4dbf), (0x20000, 0x2a6df), (0x2a700, 0x2b73f), (0x2b740, 0x2b81f), (0x2b920, 0x2ceaf), (0xf900, 0xfaff), (0x2f800, 0x2fa1f)))


def word_pieces(text, vocabulary, lower, strip):
    """WordPiece of folders, as Hugging Face's tokenizers define it."""
    text = "".join(c for c in text if c in "\t\n\r" or (c not in "\0\ufffd" and unicodedata.category(c) not in ("Cc", "Cf", "Co")))
    text = "".join(" " if is_white_space(c) else f" {c} " if is_ideograph(ord(c)) else c for c in text)
    if strip:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
    if lower:
        text = "".join(c.lower() for c in text)
    is_mark = lambda c: unicodedata.category(c)[0] == "P" or (ord(c) < 128 and c.isprintable() and not c.isalnum() and c != " ")
    ids = []
    for word in "".join(f" {c} " if is_mark(c) else c for c in text).split(" "):
        found, begin = [], 0
        while word and len(word) <= 100 and begin < len(word):
            mark = "##" if begin else ""
            end = next((end for end in range(len(word), begin, -1) if mark + word[begin:end] in vocabulary), None)
            if end is None:
                break
            found.append(vocabulary[mark + word[begin:end]])
            begin = end
        if word:
            ids += found if begin == len(word) else [vocabulary["[UNK]"]]
    return ids


def byte_letters():
    letters = {byte: chr(byte) for byte in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    for byte in range(256):
        letters.setdefault(byte, chr(256 + sum(1 for other in range(byte) if other not in range(33, 127) and other not in range(161, 173) and other not in range(174, 256))))
    return letters


def merged(symbols, ranks):
    while len(symbols) > 1:
        best = min(range(len(symbols) - 1), key=lambda i: (ranks.get((symbols[i], symbols[i + 1]), 1 << 30), i))
        if (symbols[best], symbols[best + 1]) not in ranks:
            break
        symbols[best:best + 2] = [symbols[best] + symbols[best + 1]]
    return symbols


def clip_words(text):
    """What is matched of 's, 't, 're, 've, 'm, 'll, 'd, letters, one number, others but white space."""
    kind = lambda c: " " if is_white_space(c) else unicodedata.category(c)[0] if unicodedata.category(c)[0] in "LN" else "?"
    place = 0
    while place < len(text):
        end = next((place + len(short) for short in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(short, place)), None)
        what = kind(text[place])
        if end is None:
            end = place + 1
            while what in "L?" and end < len(text) and kind(text[end]) == what:
                end += 1
        if what != " ":
            yield text[place:end]
        place = end


def clip_pieces(text, vocabulary, ranks, letters):
    ids = []
    for word in clip_words("".join(c.lower() for c in unicodedata.normalize("NFC", text))):
        symbols = [letters[byte] for byte in word.encode()]
        symbols[-1] += "</w>"
        ids += [vocabulary[symbol] for symbol in merged(symbols, ranks)]
    return ids


def made_up_merges(texts, letters, end, n, numbers):
    """Pairs that occur, so that merges build upon each other."""
    words = [[letters[byte] for byte in word.encode()] for text in texts for word in re.findall(r"\S+", text.lower())]
    for word in words:
        word[-1] += end
    merges = []
    while len(merges) < n:
        word = numbers.choice(words)
        if len(word) < 2:
            continue
        i = numbers.randrange(len(word) - 1)
        pair = (word[i], word[i + 1])
        if pair in merges:
            continue
        merges.append(pair)
        for other in words:
            merged_once = 0
            while merged_once < len(other) - 1:
                if (other[merged_once], other[merged_once + 1]) == pair:
                    other[merged_once:merged_once + 2] = ["".join(pair)]
                merged_once += 1
    return merges


def compare_definitions(comparison):
    numbers = random.Random(7)
    letters = byte_letters()
    sample = [text for text in comparison.texts[:200]] + [PROSE]
    # WordPiece: letters, and parts of words.
    simple = lambda text: "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for text in sample + [simple(text) for text in sample]:
        for word in re.findall(r"\w+|[^\w\s]", text):
            size = numbers.randint(1, 4)
            tokens += [word[:size], "##" + word[size:] if word[size:] else word, "##" + word[-1]]
    tokens = list(dict.fromkeys(token for token in tokens if token.strip() == token and token and not re.search(r"\s", token)))
    vocabulary = {token: i for i, token in enumerate(tokens)}
    for number, (lower, strip) in enumerate(((True, None), (False, None), (True, False), (False, True))):
        folder = Folder(f"{comparison.folder}/bert{number}", len(tokens))
        folder.write("vocab.txt", "\n".join(tokens) + "\n")
        folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": lower, "strip_accents": strip}))
        expected = [word_pieces(text, vocabulary, lower, lower if strip is None else strip) for text in comparison.texts]
        comparison.judge(f"WordPiece of a folder, lower case {lower}, accents {strip}", expected, comparison.together(folder.path, comparison.texts, "[SEP]", 3))
        comparison.judge("  with what is put around", [[2] + ids + [3] for ids in expected[:20]], comparison.ours(folder.path, comparison.texts[:20]), comparison.texts[:20])
    # CLIP.
    merges = made_up_merges(sample, letters, "</w>", 600, numbers)
    tokens = [*letters.values(), *(letter + "</w>" for letter in letters.values())]
    tokens = list(dict.fromkeys(tokens + ["".join(pair) for pair in merges])) + ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    folder = Folder(f"{comparison.folder}/clip", len(tokens))
    folder.write("vocab.json", json.dumps(vocabulary))
    folder.write("merges.txt", "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges) + "\n")
    folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "CLIPTokenizer"}))
    ranks = {pair: i for i, pair in reversed(list(enumerate(merges)))}
    expected = [clip_pieces(text, vocabulary, ranks, letters) for text in comparison.texts]
    end = vocabulary["<|endoftext|>"]
    comparison.judge("CLIP", expected, comparison.together(folder.path, comparison.texts, "<|endoftext|>", end))
    comparison.judge("  with what is put around", [[end - 1] + ids + [end] for ids in expected[:20]], comparison.ours(folder.path, comparison.texts[:20]), comparison.texts[:20])
    # RoBERTa, whose merges are GPT-2's, beside the same folder as GPT-2's, without what is put around.
    merges = made_up_merges(sample, letters, "", 600, numbers)
    tokens = list(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *letters.values(), *("".join(pair) for pair in merges), "<mask>"]))
    vocabulary = {token: i for i, token in enumerate(tokens)}
    folder = Folder(f"{comparison.folder}/roberta", len(tokens))
    folder.write("vocab.json", json.dumps(vocabulary))
    folder.write("merges.txt", "#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges) + "\n")
    folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "GPT2Tokenizer"}))
    some = comparison.texts[:100]
    expected = comparison.ours(folder.path, some)
    folder.write("tokenizer_config.json", json.dumps({"tokenizer_class": "RobertaTokenizer"}))
    comparison.judge("RoBERTa beside GPT-2", [[0] + ids + [2] for ids in expected], comparison.ours(folder.path, some), some)


def gguf_of(path, model, more):
    """SentencePiece's `model` as a GGUF file of kind "t5"."""
    raw, place, pieces, charsmap = open(model, "rb").read(), 0, [], b""

    def varint(data, at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 128:
                return value, at

    def fields(data):
        at = 0
        while at < len(data):
            key, at = varint(data, at)
            if key & 7 == 0:
                value, at = varint(data, at)
            else:
                size, at = varint(data, at) if key & 7 == 2 else (4, at)
                value, at = data[at:at + size], at + size
            yield key >> 3, value

    for number, value in fields(raw):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1].decode(), struct.unpack("<f", piece.get(2, bytes(4)))[0], piece.get(3, 1)))
        if number == 3:
            charsmap = dict(fields(value)).get(2, b"")
    strings = b"".join(tokenizers.packed(text) for text, _, _ in pieces)
    n = len(pieces)
    array = lambda kind, payload, size=n: struct.pack("<IQ", kind, size) + payload
    keys = [("general.architecture", 8, tokenizers.packed("t5")), ("tokenizer.ggml.model", 8, tokenizers.packed("t5")), ("tokenizer.ggml.pre", 8, tokenizers.packed("default")), (tokenizers.TOKENS, 9, array(8, strings)),
            ("tokenizer.ggml.scores", 9, array(6, struct.pack(f"<{n}f", *(score for _, score, _ in pieces)))), (tokenizers.TYPES, 9, array(5, struct.pack(f"<{n}i", *(kind for _, _, kind in pieces)))),
            ("tokenizer.ggml.unknown_token_id", 4, struct.pack("<I", 0)), ("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)), *((name, 7, bytes([value])) for name, value in more)]
    if charsmap:
        keys.append(("tokenizer.ggml.precompiled_charsmap", 9, array(0, charsmap, len(charsmap))))
    tokenizers.write_gguf(path, {name: tokenizers.entry(name, kind, payload) for name, kind, payload in keys})


def compare_llama(comparison, oracle, libraries, bert):
    arguments = argparse.Namespace(RONDO=comparison.rondo, ORACLE=oracle, LIBRARIES=libraries)
    both = tokenizers.Both(arguments, comparison.folder)
    keys = tokenizers.Metadata(bert).entries
    model = f"{comparison.folder}/bert.gguf"
    characters = [f"a{chr(code)}b" for code in range(1, 0x20000) if unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs") and not 0x3500 < code < 0x9f00 and not 0xac80 < code < 0xd780]
    for more in ({}, {"lowercase": 0}, {"strip_accents": 0}, {"lowercase": 0, "strip_accents": 1}):
        own = {f"tokenizer.ggml.normalizer.{name}": value for name, value in more.items()}
        tokenizers.write_gguf(model, dict(keys, **{name: tokenizers.entry(name, 7, bytes([value])) for name, value in own.items()}))
        separator = tokenizers.Metadata(model).lists[tokenizers.TOKENS].index(b"[SEP]")
        for texts in (comparison.texts, characters):
            joined = "[SEP]".join(texts)
            comparison.judge(f"WordPiece of GGUF {more or ''}", tokenizers.cut(both.oracle_ids(model, joined), separator), tokenizers.cut(both.our_ids(model, joined), separator), texts)
    if sentencepiece is None:
        return
    # The fourth has user-defined pieces: there llama.cpp exempts what begins like one, "t" for "the", from the map.
    for number, trained in ((0, "sp0"), (1, "sp1"), (2, "sp2")):
        for prefix, collapses in ((0, 0), (1, 1), (1, 0), (0, 1)):
            gguf_of(model, f"{comparison.folder}/{trained}.model", [("tokenizer.ggml.add_space_prefix", prefix), ("tokenizer.ggml.remove_extra_whitespaces", collapses)])
            mark = tokenizers.Metadata(model).lists[tokenizers.TOKENS].index(MARK.encode())
            joined = MARK.join(comparison.texts)
            comparison.judge(f"unigram {number} of GGUF, {prefix} {collapses}", tokenizers.cut(both.oracle_ids(model, joined), mark), tokenizers.cut(both.our_ids(model, joined), mark))


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("RONDO")
    parser.add_argument("--oracle", nargs=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=5000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(arguments, folder)
        compare_definitions(comparison)
        compare_sentencepiece(comparison)
        if arguments.oracle:
            compare_llama(comparison, *arguments.oracle)
        else:
            print("llama.cpp: skipped, no --oracle")
        print(f"{comparison.n_compared} texts compared, {comparison.n_different} differ")
        return comparison.n_different > 0


if __name__ == "__main__":
    sys.exit(main())
