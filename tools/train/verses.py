"""The verses of two Bibles in the public domain, beside each other: the World English Bible and the Reina-Valera of 1909.

Needs Debian's sword-text-web, sword-text-sparv and libsword-utils.
"""
import collections
import html
import re
import subprocess

ENGLISH, SPANISH = "engWEB2015eb", "spaRV1909eb"
HELD_OUT_EVERY = 40  # chapters
OLD_TESTAMENT = 39  # books, the first ones
LONGEST = 800  # letters; what is longer is more than a verse

BOOKS = """Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth|I Samuel|II Samuel|I Kings|II Kings|I Chronicles|
II Chronicles|Ezra Nehemiah Esther Job Psalms Proverbs Ecclesiastes|Song of Solomon|Isaiah Jeremiah Lamentations Ezekiel Daniel
Hosea Joel Amos Obadiah Jonah Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi Matthew Mark Luke John Acts Romans|
I Corinthians|II Corinthians|Galatians Ephesians Philippians Colossians|I Thessalonians|II Thessalonians|I Timothy|II Timothy|
Titus Philemon Hebrews James|I Peter|II Peter|I John|II John|III John|Jude|Revelation of John"""

Verse = collections.namedtuple("Verse", "book chapter verse english spanish")  # book from 0


def book_names():
    names = []
    for part in BOOKS.replace("\n", " ").split("|"):
        part = part.strip()
        spaced = re.match(r"(I+ |Song|Revelation)", part)
        names += [part] if spaced else part.split()
    return names


def plain(markup):
    """Text of a verse without notes, titles and tags."""
    text = re.sub(r"<(note|title)\b[^>]*/>", "", markup)
    text = re.sub(r"<(note|title)\b.*?</\1>", "\0", text, flags=re.S)
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    text = re.sub(r"(\w)\0+(\w)", r"\1 \2", text)
    text = re.sub(r"[\s¶]+", " ", text.replace("\0", "")).strip()
    return re.sub(r" ([.,;:?!])", r"\1", text)


def without_capitals(text, known):
    """Chapters begin with a word or two in capitals; here they begin as other sentences do. `known`: words in small letters."""
    words = text.split(" ")
    for place, word in enumerate(words[:3]):
        if len(re.sub(r"\W", "", word)) > 1 and word == word.upper():
            small = word.lower()
            name = re.sub(r"\W", "", small) not in known
            words[place] = re.sub(r"\w", lambda first: first[0].upper(), small, count=1) if place == 0 or name else small
    return " ".join(words)


def read_module(name):
    """{(book, chapter, verse): text}"""
    printed = subprocess.run(["mod2imp", name], capture_output=True, check=True).stdout.decode("utf-8", "replace")
    books = {book: number for number, book in enumerate(book_names())}
    verses = {}
    for entry in printed.split("$$$")[1:]:
        heading, _, markup = entry.partition("\n")
        found = re.fullmatch(r"(.+) (\d+):(\d+)", heading.strip())
        if not found or found[1] not in books or found[3] == "0":
            continue
        text = plain(markup)
        if 0 < len(text) <= LONGEST:
            verses[books[found[1]], int(found[2]), int(found[3])] = text
    known = {word for text in verses.values() for word in re.findall(r"\w+", text) if word.islower()}
    return {place: without_capitals(text, known) for place, text in verses.items()}


def read_verses():
    """Verses that both have, in order, as (training, held out): every fortieth chapter is held out."""
    english, spanish = read_module(ENGLISH), read_module(SPANISH)
    training, held_out = [], []
    chapters = {}
    for place in sorted(english.keys() & spanish.keys()):
        verse = Verse(*place, english[place], spanish[place])
        number = chapters.setdefault(place[:2], len(chapters))
        (held_out if number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1 else training).append(verse)
    if len(training) < 25000:
        raise SystemExit(f"verses: error: only {len(training)} verses of {ENGLISH} and {SPANISH} were found")
    return training, held_out
