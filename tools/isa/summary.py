#!/usr/bin/python3
"""One line for each chip of tools/check_compilers.sh, and what exceeds the budget with the line that allows it.

usage: summary.py [--as-budget] BUDGET FOLDER CHIP...

FOLDER holds CHIP.json (of `rondo isa --budget BUDGET --json`) and CHIP.err. Exit status 1 if a kernel failed or exceeds.
--as-budget prints a budget of what was measured instead, to compare with the one that is there, for a new version of Mesa say.
"""
import json
import os
import sys


def number(value):
    return "-" if value is None else f"{value:.4g}"


# What has lines of its own in the budget; of those that fit a kernel the longest counts, as for the command.
KERNELS = sorted(("linear subgroup f16 kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear subgroup q8_0 kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear subgroup q4_0 kTokens=1 kInputVec4=2 kNorm=0 kSplit=1",
           "linear subgroup q4_K kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear subgroup q6_K kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear subgroup kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear subgroup kTokens=1 kInputVec4=2", "linear subgroup kInputVec4=2",
           "linear subgroup", *(f"{op} tiled {type}kTileRows={rows} kInputVec4=2" for op in ("linear", "linear_glu") for type in ("f16 ", "q8_0 ", "q4_K ", "") for rows in (8, 4)), "linear tiled", "linear_glu subgroup kTokens=1 kInputVec4=2 kNorm=0", "linear_glu subgroup kTokens=1 kInputVec4=2", "linear_glu subgroup kInputVec4=2", "linear_glu subgroup", "linear_glu tiled",
           *(f"linear dot {type} kTokens=1 kNorm=0 kRounds=0" for type in ("q8_0", "q4_0", "q4_K", "q6_K")), "linear dot kTokens=1 kNorm=0", "linear dot kTokens=1", "linear dot",
           *(f"linear subgroup {type} kInputVec4=2 kTokens=1 kNorm=2" for type in ("f16", "q8_0", "q4_0", "q4_K")), *(f"linear dot {type} kTokens=1 kNorm=2" for type in ("q8_0", "q4_0", "q4_K")),
           "linear halves kTokens=1 kInputVec4=2 kNorm=0 kSplit=1", "linear halves kInputVec4=2 kTokens=1 kNorm=2", "linear halves kInputVec4=2", "linear halves", "linear_glu halves kTokens=1 kInputVec4=2", "linear_glu halves", "expert_linear halves", "expert_linear_glu halves",
           "linear subgroup kInputVec4=2 kRotation=5", "linear dot kRotation=5",
           *(f"{op} dot_tiled {type}kTileRows={rows}" for op in ("linear", "linear_glu") for type in ("q8_0 ", "q4_0 ", "q4_K ", "") for rows in (8, 4)), "linear dot_tiled", "linear_glu dot_tiled",
           "linear_glu dot q8_0 kTokens=1 kNorm=0 kRounds=0", "linear_glu dot q4_0 kTokens=1 kNorm=0 kRounds=0", "linear_glu dot kTokens=1", "linear_glu dot", "expert_linear dot", "expert_linear_glu dot",
           *(f"{op} matrix {type}kRowMatrices={rows} kOutputMatrices={outputs}{width}" for op in ("linear", "linear_glu") for type in ("f16 ", "q8_0 ", "q4_K ", "") for rows, outputs in ((4, 4), (2, 4), (2, 2), (1, 2))
             for width in ("", " kWidth=256")), "linear matrix", "linear_glu matrix", "f16 linear matrix", "f16 linear_glu matrix",
           "expert_linear subgroup kInputVec4=2", "expert_linear subgroup", "expert_linear_glu subgroup",
           *(f"{op} {kernel}" for op in ("expert_linear", "expert_linear_glu") for kernel in ("tiled", "dot_tiled", "half_tiled", "matrix kRowMatrices=4", "matrix kRowMatrices=2 kOutputMatrices=4", "matrix")),
           *(f"{op} half_tiled{rest}" for op in ("linear", "linear_glu") for rest in ("", " f16 kTileRows=4")), "f16 linear half_tiled", "f16 linear_glu half_tiled",
           *(f"matmul {kernel} kALies=0 kBLies={lies} {size}" for lies in (0, 2) for kernel, size in (("tiled", "kTileRows=8"), ("tiled", "kTileRows=4"), ("matrix", "kWidth=256"))), "matmul matrix kRowMatrices=2 kOutputMatrices=2 kWidth=128", "matmul matrix kRowMatrices=2 kOutputMatrices=4 kWidth=128",
           "matmul matrix kALies=0 kBLies=2 kOutputMatrices=4 kWidth=256", "matmul matrix kALies=1 kBLies=1 kWidth=256", "matmul tiled kTileRows=8", "matmul half_tiled kTileRows=4", "matmul half_tiled", "f16 matmul half_tiled", "sample", "f16 sample", "patch_embed matrix", "matmul tiled", "f16 matmul tiled", "matmul matrix", "f16 matmul matrix",
           "attention half_subgroup kFeatures=0 kKeyWidth=128", "attention half_subgroup kFeatures=0", "attention half_subgroup", "attention subgroup kCacheType=1 kFeatures=0 kKeyWidth=128", "attention subgroup kCacheType=1 kFeatures=0 kKeyWidth=64", "attention subgroup kFeatures=0", "attention subgroup",
           *(f"attention matrix kCacheType={cache} kFeatures=0 kKeyWidth={width}" for cache in (0, 1, 2) for width in (64, 128)), "attention matrix kCacheType=1 kFeatures=0 kKeyWidth=128 kColumnMatrices=2", "attention matrix kFeatures=0", "attention matrix", "f16 attention matrix",
           "attention registers kCacheType=1 kFeatures=0 kKeyWidth=128", "attention registers kFeatures=0", "attention registers",
           "attention split kCacheType=1 kFeatures=0", "attention split", "attention tiled kFeatures=32769", "attention tiled kTile=8 kCacheType=1 kFeatures=0",
           "attention tiled", "f16 linear subgroup", "f16 linear tiled", "f16 linear_glu", "f16 expert_linear", "f16 attention", "f16"), key=lambda kernel: -len(kernel.replace(" ", "")))


def fits(row, kernel):
    words = kernel.split()
    constants = [word.split("=") for word in words if "=" in word]
    label = " ".join(word for word in words if "=" not in word)
    return row["label"].startswith(label) and all(row["specialization"].get(name) == int(value) for name, value in constants)


def print_budget(folder, chips):
    print(f"# {'chip':<10} {'registers':>9} {'waves':>6} {'spills':>6} {'scratch':>7} {'per_multiply_add':>16}  kernel")
    for chip in chips:
        with open(os.path.join(folder, chip + ".json")) as file:
            rows = json.load(file)["kernels"]
        kernels = [next((k for k in KERNELS if fits(r, k)), "*") for r in rows]
        for kernel in [*KERNELS, "*"]:
            mine = [r for r, own in zip(rows, kernels) if own == kernel]
            if not mine:
                continue
            column = lambda name: [r[name] for r in mine if r.get(name) is not None]
            most = lambda name: f"{max(column(name)):g}" if column(name) else "-"
            waves = f"{min(column('occupancy')):g}" if column("occupancy") else "-"
            ratio = f"{max(column('per_multiply_add')):.{2 if any(word in kernel for word in ('matrix', 'tiled', 'registers')) else 1}f}" if kernel != "*" and column("per_multiply_add") else "-"
            print(f"{chip:<12} {most('registers'):>9} {waves:>6} {most('spills'):>6} {most('scratch_bytes'):>7} {ratio:>16}  {kernel}")


def main():
    arguments = sys.argv[1:]
    as_budget = arguments[0] == "--as-budget"
    budget, folder, *chips = arguments[as_budget:]
    if as_budget:
        return print_budget(folder, chips)
    bad = False
    print(f"| {'chip':<10} | kernels | failed | spill | scratch | {'linear subgroup q8_0':<20} | {'linear tiled q8_0':<18} | {'attention':<18} | driver |")
    print("|:---|---:|---:|---:|---:|:---|:---|:---|:---|")
    complaints = []
    for chip in chips:
        try:
            with open(os.path.join(folder, chip + ".json")) as file:
                found = json.load(file)
        except (OSError, ValueError):
            with open(os.path.join(folder, chip + ".err"), errors="replace") as file:
                lines = [line for line in file.read().splitlines() if line.startswith("rondo:")]
            complaints.append(f"{chip}: {lines[-1] if lines else 'rondo isa gave nothing'}")
            bad = True
            continue
        rows = found["kernels"]
        columns = []
        for label in ("linear subgroup q8_0", "linear tiled q8_0", "attention"):
            row = next((r for r in rows if r["label"].startswith(label) and r.get("per_multiply_add")), {})
            columns.append(f"{number(row.get('registers'))} reg, {number(row.get('per_multiply_add'))}/FMA")
        failed = [r for r in rows if "failure" in r]
        exceeding = [r for r in rows if "excess" in r]
        count = lambda name: sum(1 for r in rows if r.get(name))
        print(f"| {chip:<10} | {len(rows):>7} | {len(failed):>6} | {count('spills'):>5} | {count('scratch_bytes'):>7} | "
              + " | ".join(f"{c:<18}" for c in columns) + f" | {found['device']['driver']} |")
        for row in failed:
            complaints.append(f"{chip}: {row['label']}: {row['failure']}")
        for row in exceeding:
            constants = " ".join(f"{k}={v}" for k, v in row["specialization"].items())
            place = f"{budget}, line {row['budget_line']}" if "budget_line" in row else budget
            complaints.append(f"{chip}: {row['label']} ({constants}): {row['excess']}. To allow it, change {place}")
        if not found["device"]["judged"]:
            print(f"{chip}: not judged: {budget} is for another version of Mesa")
        bad = bad or failed or exceeding
    print()
    for complaint in complaints:
        print(complaint)
    if complaints:
        print(f"{len(complaints)} complaints. A number is raised only where a kernel does more for it, or is faster elsewhere and what it loses here is known;\n"
              "spills and scratch only with the reason in the line above.")
    sys.exit(1 if bad else 0)


main()
