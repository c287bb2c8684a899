#!/usr/bin/python3
"""Scores of the bundled models on held-out data, through the rondo command and through PyTorch, side by side.

usage: score.py translator|bert|digits FOLDER [--rondo build/bin/rondo] [--beams N] [--most N]
Exit status 1 where both scores differ in a digit that is printed. Needs what the makers of the models need.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import bleu
import verses


def run(rondo, arguments):
    return subprocess.run([rondo, *map(str, arguments)], check=True, capture_output=True, text=True).stdout.splitlines()


def lines_file(folder, lines):
    path = pathlib.Path(folder) / "lines.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def score_translator(rondo, folder, arguments, scratch):
    import translator
    model, pieces = translator.read_folder(folder)
    held_out = verses.read_verses()[1][: arguments.most]
    lines = [verse.english for verse in held_out]
    printed = run(rondo, ["translate", "-m", folder, "-f", lines_file(scratch, lines), "--beams", arguments.beams, "--json", "--kv-type", "f32"])
    ours = [json.loads(line)["text"] for line in printed]
    if arguments.beams == 1:
        theirs = translator.translate_all(model, pieces, lines)
    else:
        theirs = [pieces.decode(model.search(pieces.encode(line), pieces.eos, arguments.beams)[0]) for line in lines]
    references = [verse.spanish for verse in held_out]
    print(f"{sum(a != b for a, b in zip(ours, theirs))} of {len(lines)} translations differ")
    return {"BLEU": (f"{bleu.bleu(ours, references):.2f}", f"{bleu.bleu(theirs, references):.2f}")}


def score_bert(rondo, folder, arguments, scratch):
    import verses_bert
    pieces, model = verses_bert.read_folder(folder)
    training, held_out = verses.read_verses()
    held_out = held_out[: arguments.most]
    theirs = verses_bert.scores(model, pieces, training, held_out)
    asked = verses_bert.questions(pieces, held_out)
    guessed = [json.loads(line)["masks"][0][0]["piece"] for line in run(rondo, ["fill", "-m", folder, "-n", 1, "--json", "-f", lines_file(scratch, [text for text, _ in asked])])]
    labels = [json.loads(line)["labels"][0]["id"] for line in run(rondo, ["classify", "-m", folder, "-n", 1, "--json", "-f", lines_file(scratch, [verse.english for verse in held_out])])]
    usual = [name for name in theirs if name.startswith("always")][0]
    ours = {
        "masked words": sum(guess == answer for guess, (_, answer) in zip(guessed, asked)) / len(asked),
        usual: theirs[usual],
        "testament": sum(label == (verse.book >= verses.OLD_TESTAMENT) for label, verse in zip(labels, held_out)) / len(held_out),
        "larger testament": theirs["larger testament"],
    }
    return {name: (f"{ours[name]:.4f}", f"{theirs[name]:.4f}") for name in ours}


def score_digits(rondo, folder, arguments, scratch):
    import digits_vit
    theirs = digits_vit.accuracy_of_folder(folder)
    digits_vit.write_images(pathlib.Path(scratch))
    pictures = sorted(pathlib.Path(scratch).glob("*.png"))
    flags = [flag for picture in pictures for flag in ("--image", picture)]
    printed = [json.loads(line) for line in run(rondo, ["classify", "-m", folder, "-n", 1, "--json", *flags])]
    right = sum(result["labels"][0]["label"] == picture.stem.split("-")[1] for result, picture in zip(printed, pictures, strict=True))
    return {"held-out digits": (f"{right / len(pictures):.4f}", f"{theirs:.4f}")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["translator", "bert", "digits"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rondo", default="build/bin/rondo")
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--most", type=int, default=None, help="verses")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = globals()[f"score_{arguments.kind}"](arguments.rondo, arguments.folder, arguments, scratch)
    for name, (ours, theirs) in found.items():
        print(f"{name}: rondo {ours}, PyTorch {theirs}")
    sys.exit(any(ours != theirs for ours, theirs in found.values()))


if __name__ == "__main__":
    main()
