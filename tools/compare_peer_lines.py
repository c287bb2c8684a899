#!/usr/bin/python3
"""Puts the cache lines that our mat-vec asks for beside those of llama.cpp's, counted by the simulator.

usage: compare_peer_lines.py SIMULATE FOLDER [CHIP...]

SIMULATE is the command rondo-simulate, FOLDER what fetch_peer_kernels.py left. For each chip, whose device profile has its name, and
each type of weights: one row of 2048 columns times 8192 x 2048 weights, by the kernels that both choose. Lines of 64 bytes are those that
lanes which load together touch, of weights, scales and activations, for 1024 weights; a load of `halves` is one of four side by side,
which compilers make one. Exit status 1 where ours are more.
"""
import json
import subprocess
import sys

COLUMNS, OUTPUTS, WORKGROUPS = 2048, 8192, 32
MOST = 1.01  # of theirs: ours read the step's state, too
BLOCKS = {"f16": (1, 2), "q8_0": (32, 34), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "iq4_nl": (32, 18), "mxfp4": (32, 17),
          "q2_K": (256, 84), "q3_K": (256, 110), "q4_K": (256, 144), "q5_K": (256, 176), "q6_K": (256, 210)}  # weights, bytes


def dispatches_of(simulate, *arguments):
    done = subprocess.run([simulate, *arguments, "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare_peer_lines: error: {' '.join(arguments)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def lines_of(dispatch, n_weights):
    """For 1024 weights."""
    return 1024 * sum(access["lines64"] for access in dispatch["accesses"] if access["kind"] == "load") / n_weights


def theirs(simulate, folder, module, type_name):
    rows = WORKGROUPS * module["constants"][1]
    weights, size = BLOCKS[type_name]
    push = [COLUMNS, COLUMNS, COLUMNS, OUTPUTS, COLUMNS * OUTPUTS, COLUMNS, OUTPUTS, 0, 0, 1, 1, 1, 1]
    buffers = [f"0=random:{rows * COLUMNS // weights * size}", f"1=random:{4 * COLUMNS}", *(f"{binding}=zeros:{4 * OUTPUTS}" for binding in (2, 3, 4))]
    dispatch, = dispatches_of(simulate, f"{folder}/{module['file']}", "--subgroup", str(module["subgroup_size"]), "--constants", ",".join(map(str, module["constants"])),
                              "--push", ",".join(map(str, push)), "--grid", f"{WORKGROUPS},1,1", "--buffer", *buffers)
    return lines_of(dispatch, rows * COLUMNS)


def ours(simulate, chip, kernel, type_name):
    dispatches = dispatches_of(simulate, f"linear/{kernel}", "--shape", f"1 row, {COLUMNS} to {OUTPUTS}", "--type", type_name, "--as", chip)
    dispatch, = (one for one in dispatches if one["kernel"].startswith("linear"))
    return lines_of(dispatch, COLUMNS * OUTPUTS) / (4 if kernel == "halves" else 1)


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith("-"):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        sys.exit(2)
    simulate, folder = sys.argv[1:3]
    with open(f"{folder}/modules.json") as file:
        modules = [module for module in json.load(file)["modules"] if module["name"].startswith("mul_mat_vec_")]
    chips = sys.argv[3:] or sorted({chip for module in modules for chip in module["chips"]})
    print("| chip | type | kernel | ours | theirs |\n|---|---|---|---|---|")
    worse = 0
    for chip in chips:
        for module in (module for module in modules if chip in module["chips"]):
            _, kernel, type_name = module["beside"].split()[:3]
            own, other = ours(simulate, chip, kernel, type_name), theirs(simulate, folder, module, type_name)
            worse += own > MOST * other
            print(f"| {chip} | {type_name} | {kernel} | {own:.1f} | {other:.1f} |", flush=True)
    print(f"\nmore than theirs: {worse}")
    sys.exit(1 if worse else 0)


main()
