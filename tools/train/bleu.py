"""BLEU of a corpus (Papineni et al. 2002): n-grams up to 4, brevity penalty, one reference, punctuation apart from words."""
import collections
import math
import re


def words(line):
    return re.findall(r"\w+|[^\w\s]", line)


def n_grams(tokens, n):
    return collections.Counter(tuple(tokens[at : at + n]) for at in range(len(tokens) - n + 1))


def bleu(translations, references):
    """From 0 to 100."""
    matched, total = [0] * 4, [0] * 4
    length = reference_length = 0
    for translation, reference in zip(translations, references, strict=True):
        ours, theirs = words(translation), words(reference)
        length += len(ours)
        reference_length += len(theirs)
        for n in range(1, 5):
            found = n_grams(ours, n)
            matched[n - 1] += sum((found & n_grams(theirs, n)).values())
            total[n - 1] += sum(found.values())
    if min(matched) == 0:
        return 0.0
    precision = sum(math.log(hit / all_) for hit, all_ in zip(matched, total)) / 4
    return 100 * math.exp(precision + min(0.0, 1 - reference_length / length))
