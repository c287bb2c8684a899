"""WordPiece as BERT has it: lower case, accents off, punctuation apart; and how a vocabulary is found."""
import collections
import heapq
import unicodedata

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)


def words(text):
    """Lower-case words and single signs of punctuation."""
    found, word = [], ""
    for letter in unicodedata.normalize("NFD", text.lower()):
        if unicodedata.category(letter) == "Mn":
            continue
        if letter.isspace() or not letter.isalnum():
            if word:
                found.append(word)
            word = ""
            if not letter.isspace():
                found.append(letter)
        else:
            word += letter
    return found + [word] if word else found


def train(lines, size):
    """The most frequent pairs are joined until there are `size` pieces (Sennrich et al. 2016)."""
    counts = collections.Counter(word for line in lines for word in words(line))
    spelled = {word: [word[0]] + ["##" + letter for letter in word[1:]] for word in counts}
    pieces = SPECIAL + sorted({piece for parts in spelled.values() for piece in parts})
    pairs, where, changed, queue = collections.Counter(), collections.defaultdict(set), set(), []

    def note(word, sign):
        parts = spelled[word]
        for pair in zip(parts, parts[1:]):
            pairs[pair] += sign * counts[word]
            changed.add(pair)
            (where[pair].add if sign > 0 else where[pair].discard)(word)

    for word in spelled:
        note(word, 1)
    while len(pieces) < size:
        for pair in changed:
            heapq.heappush(queue, (-pairs[pair], pair))
        changed.clear()
        while pairs[queue[0][1]] != -queue[0][0]:  # was counted again since
            heapq.heappop(queue)
        best = heapq.heappop(queue)[1]
        joined = best[0] + best[1][2:]
        pieces.append(joined)
        for word in list(where[best]):
            note(word, -1)
            parts, at = spelled[word], 0
            while at + 1 < len(parts):
                if (parts[at], parts[at + 1]) == best:
                    parts[at : at + 2] = [joined]
                at += 1
            note(word, 1)
    return list(dict.fromkeys(pieces))


class WordPieces:
    def __init__(self, pieces):
        self.pieces, self.ids = pieces, {piece: i for i, piece in enumerate(pieces)}

    def of_word(self, word):
        """The longest piece first, again and again; [UNK] where that ends before the word does."""
        found, begin = [], 0
        while begin < len(word):
            end = len(word)
            while end > begin and ("##" if begin else "") + word[begin:end] not in self.ids:
                end -= 1
            if end == begin:
                return [UNK]
            found.append(self.ids[("##" if begin else "") + word[begin:end]])
            begin = end
        return found

    def encode(self, text):
        """Without [CLS] and [SEP]."""
        return [piece for word in words(text) for piece in self.of_word(word)]
