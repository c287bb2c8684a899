#!/usr/bin/python3
"""Compares `rondo eval --graph` with the oracle, on the device with and without fusion and on the CPU.

usage: compare_graphs.py RONDO FOLDER [FOLDER ...]
       compare_graphs.py --random SEED N [--f16] RONDO

FOLDER holds cases as random_graphs.py writes them (a folder each with graph.json and inputs.safetensors), or is one.
Every output has to be there in its shape, NaN and infinities where the oracle has them, integers exactly, and finite
values within oracle.Bounds: a normalised mean squared error of 1e-10 and 1e-5 of the largest magnitude. The bounds are
wider only for what depends on computed values that are rounded: into an f16 or q8_0 cache (oracle.ROUNDED_CACHE_BOUNDS)
or a result in f16 (oracle.ROUNDED_RESULT_BOUNDS). Inputs of these types are exact for both sides. A q8_0 cache may come back as blocks (U8) or as values.

Prints one line for each failing case, with what differs in which run and a command that repeats the first such run,
and a count; exit status 1 if a case failed or there is none. With --random the cases are made up and kept if they fail,
with --f16 those have activations in f16; exit status 77 if the device has no 16-bit storage.
The environment (VK_DRIVER_FILES, RONDO_DEVICE) chooses the device.
"""
import argparse
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import Optional

import numpy as np

import oracle
import random_graphs
import tensor_files
from tensor_files import Tensor

RUNS = {"device": [], "no fusion": ["--no-fusion"], "reference": ["--reference"]}
TIMEOUT_S = 600


def find_cases(folders: list[str]) -> list[str]:
    """The folders that hold a graph.json: those given, and those in them."""
    paths = [path for folder in folders for pattern in ("graph.json", "*/graph.json")
             for path in sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))]
    return [os.path.dirname(path) for path in paths]


def command_of(rondo: str, case: str, outputs: str, flags: list[str]) -> list[str]:
    return [rondo, "eval", "--graph", os.path.join(case, "graph.json"), "--inputs",
            os.path.join(case, "inputs.safetensors"), "--outputs", outputs, *flags]


def run_failure(command: list[str]) -> Optional[str]:
    """Runs a command; why it failed, if it did."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not done after {TIMEOUT_S} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or ["nothing on stderr"]
    messages = [line for line in lines if line.startswith("rondo: error:")] or lines
    return f"exit status {done.returncode}: {messages[-1]}"


def values_of(tensor: Tensor, graph_type: Optional[str], width: int) -> np.ndarray:
    """What a file holds as numbers; graph_type is the type of the graph's input of this name, if there is one."""
    if tensor.dtype == "U8" and graph_type == "q8_0":
        return tensor_files.decode_rows("q8_0", tensor.array, width)
    if tensor.dtype == "BF16":
        return tensor_files.bf16_values(tensor.array)
    return tensor.array


def output_failure(description: dict, expected: oracle.Graph, outputs_path: str) -> Optional[str]:
    """The first output that is not the oracle's, and how."""
    try:
        outputs = tensor_files.read_safetensors(outputs_path)
    except (KeyError, OSError, ValueError) as error:
        return f"outputs are not to be read: {error}"
    bounds = oracle.bounds_by_name(description, expected.halves)
    for name in description["outputs"]:
        if name not in outputs:
            return f"{name} is missing"
        want = expected.value(name)
        if (outputs[name].dtype == "F16") != expected.is_half(name):
            return f"{name}: dtype {outputs[name].dtype}"
        have = values_of(outputs[name], expected.input_type(name), want.shape[-1] if want.ndim else 1)
        reason = oracle.difference(want, have, bounds.get(name, oracle.Bounds()))
        if reason is not None:
            return f"{name}: {reason}"
    return None


def compare_case(rondo: str, case: str) -> Optional[str]:
    """Runs a case in each way and compares; a line about what is wrong, if something is."""
    with open(os.path.join(case, "graph.json"), encoding="utf-8") as file:
        description = json.load(file)
    try:
        expected = oracle.evaluate(description,
                                   tensor_files.read_safetensors(os.path.join(case, "inputs.safetensors")))
    except (KeyError, OSError, TypeError, ValueError) as error:
        return f"{case}: the oracle refuses it: {error}"
    reasons, repeat = {}, ""
    with tempfile.TemporaryDirectory() as folder:
        for run, flags in RUNS.items():
            outputs = os.path.join(folder, run.replace(" ", "-") + ".safetensors")
            reason = run_failure(command_of(rondo, case, outputs, flags))
            if reason is None:
                reason = output_failure(description, expected, outputs)
            if reason is not None:
                reasons[run] = reason
                repeat = repeat or shlex.join(command_of(rondo, case, "out.safetensors", flags))
    if not reasons:
        return None
    if len(reasons) == len(RUNS) and len(set(reasons.values())) == 1:
        return f"{case}: every run: {next(iter(reasons.values()))} | {repeat}"
    return f"{case}: {'; '.join(f'{run}: {reason}' for run, reason in reasons.items())} | {repeat}"


def main() -> int:
    parser = argparse.ArgumentParser(description="compares rondo eval --graph with the oracle")
    parser.add_argument("--random", nargs=2, type=int, metavar=("SEED", "N"), help="N cases that are made up")
    parser.add_argument("--f16", action="store_true", help="random cases with activations in f16")
    parser.add_argument("rondo")
    parser.add_argument("folders", nargs="*", metavar="folder")
    arguments = parser.parse_args()
    made = tempfile.mkdtemp(prefix="rondo-graphs-") if arguments.random else None
    if made is not None:
        random_graphs.write_cases(*arguments.random, made, arguments.f16)
    cases = find_cases(arguments.folders + ([made] if made else []))
    n_failed = 0
    for case in cases:
        failure = compare_case(arguments.rondo, case)
        if failure is not None and arguments.f16 and "storageBuffer16BitAccess" in failure:
            print(failure)
            return 77
        if failure is not None:
            n_failed += 1
            print(failure, flush=True)
        elif made is not None:
            shutil.rmtree(case)
    if made is not None and n_failed == 0:
        shutil.rmtree(made)
    print(f"{len(cases) - n_failed} of {len(cases)} cases passed")
    return 0 if cases and n_failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
