#!/usr/bin/python3
"""Puts two reports of the kit (tools/gpu_kit.sh) beside each other.

usage: compare_reports.py A.json B.json

Prints Markdown: tokens a second of the models and microseconds of the kernels that both have, B / A, and what only one has.
Exit status 1, with one line, where a file is no report or one of another version.
"""
import json
import statistics
import sys

FORMAT = 1


class Refused(Exception):
    pass


def read(path):
    try:
        with open(path) as file:
            report = json.load(file)
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from None
    if not isinstance(report, dict) or "format" not in report:
        raise Refused(f"{path}: this is no report of the kit; it has no 'format'")
    if report["format"] != FORMAT:
        raise Refused(f"{path}: a report of version {report['format']}, but this program reads version {FORMAT}; use the one that came with it")
    for field, kind in (("device", dict), ("parts", dict), ("check", dict), ("failures", list), ("commit", str)):
        if not isinstance(report.get(field), kind):
            raise Refused(f"{path}: '{field}' is missing or no {kind.__name__}")
    return report


def models(report):
    """(model, test) -> tokens a second, of Rondo's benchmarks and the peer's."""
    found = {}
    for name, part in report["parts"].items():
        if isinstance(part, dict) and name.startswith(("model-", "file-")):
            for row in part.get("results", []):
                found[name, row["test"]] = row["tps_mean"]
        elif isinstance(part, list) and name.startswith("peer-"):
            for row in part:
                test = f"pp{row['n_prompt']}" if row["n_prompt"] else f"tg{row['n_gen']}"
                found[f"llama.cpp, {name[5:]}", test] = row["avg_ts"]
    return found


def kernels(report):
    """(kernel, type, shape) -> microseconds."""
    rows = report["parts"].get("kernels", {}).get("kernels", [])
    return {(f"{r['op']}/{r['kernel']}", r["type"], r["shape"]): r["us"] for r in rows}


def table(title, heads, a, b, form, faster):
    both = [key for key in a if key in b]
    if not both:
        return
    print(f"\n## {title}\n\n| {' | '.join(heads)} | A | B | B / A |\n|{'---|' * len(heads)}---:|---:|---:|")
    for key in both:
        print(f"| {' | '.join(key)} | {form.format(a[key])} | {form.format(b[key])} | {b[key] / a[key]:.2f} |")
    ratios = [b[key] / a[key] for key in both if a[key] > 0 and b[key] > 0]
    print(f"\nGeometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.3f} ({faster} is faster)")
    for name, mine, other in (("A", a, b), ("B", b, a)):
        only = [" ".join(filter(None, key)) for key in mine if key not in other]
        if only:
            print(f"\nOnly in {name}: {', '.join(only[:20])}{' and more' if len(only) > 20 else ''}")


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    try:
        reports = [read(path) for path in sys.argv[1:]]
        columns = [(models(r), kernels(r)) for r in reports]
    except Refused as error:
        print(f"compare_reports: error: {error}", file=sys.stderr)
        sys.exit(1)
    except (KeyError, TypeError, AttributeError) as error:
        print(f"compare_reports: error: a part of {' or '.join(sys.argv[1:])} is not what its name says: {error!r}", file=sys.stderr)
        sys.exit(1)
    print("| | device | driver | commit | kernels right, wrong |\n|---|---|---|---|---|")
    for name, report in zip("AB", reports):
        device, check = report["device"], report["check"]
        print(f"| {name} | {device.get('name', '')} | {device.get('driver', '')} | {report['commit']} | {check.get('passed')}, {check.get('failed')} |")
    table("Models, tokens/s", ["model", "test"], columns[0][0], columns[1][0], "{:.1f}", "more")
    table("Kernels, us", ["kernel", "type", "shape"], columns[0][1], columns[1][1], "{:.2f}", "less")
    for name, report in zip("AB", reports):
        for failure in report["failures"]:
            print(f"\n{name} could not: {failure}")


main()
