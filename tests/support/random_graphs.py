#!/usr/bin/python3
"""Random graph files over the whole operator table: what nobody thought of testing together.

usage: random_graphs.py SEED N FOLDER

Writes FOLDER/SEED-0000 and so on, each with graph.json and inputs.safetensors; a case depends on SEED and its number
only. A graph is made of one to eight moves (graph_moves.py), as long as it has fewer than eight nodes: an operator with
random attributes, or a pattern that a compiler would fuse, of up to eighteen nodes. A move reads the newest values
where their shapes allow it, through views or not, and new inputs otherwise. Every value that no node reads is an output, and some others.

Names: x0, x1, ... inputs that are activations; w... weights of any type; i... integers; c... keys, values and caches;
v... results of nodes. Activations are normal with deviation 1, denominators at least 0.5 from zero, float weights have
deviation 1 / sqrt(K), quantised ones any bits under sane scales. Rows beyond `lengths` may hold NaN or huge values.

A graph is evaluated while it grows, and given up (the next attempt of the same case begins) where a value passes 1e3,
where its tensors pass 200,000 elements in all, or where float32 would not do: every value is disturbed by a few
units in float32's last place (of results in f16, by half a unit of theirs), and the outputs must move by less than a third
of what the comparison tolerates. argmax
and top_k read inputs only, and what a kv_write rounds to q8_0 straight from an input has no halves.
"""
import json
import os
import sys

import numpy as np

import graph_moves
import oracle
import tensor_files
from graph_builder import GraphBuilder, Unfit

DISTURBANCE = 2.0 ** -22
DISTURBANCE_OF_HALVES = 2.0 ** -12
N_DISTURBANCES = 3  # each with other signs
# What these give are values that they got: nothing is rounded.
EXACT_OPERATORS = ("concat", "embedding", "max", "neg", "pad", "relu", "reshape", "slice", "top_k", "transpose")


class DisturbedGraph(oracle.Graph):
    """Evaluates with an error of about float32's last place in every value."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.rng = rng

    def disturb(self, name: str, amount: float = DISTURBANCE) -> None:
        value = self.values[name]
        if value.dtype.kind == "f":
            self.values[name] = value * (1 + amount * self.rng.choice([-1, 1], value.shape))

    def store(self, name: str, value: np.ndarray, op: str, halves: bool) -> None:
        super().store(name, value, op, halves)
        if op not in EXACT_OPERATORS:
            self.disturb(name, DISTURBANCE_OF_HALVES if halves else DISTURBANCE)


def check_conditioning(builder: GraphBuilder) -> None:
    """Raises Unfit where float32's rounding could carry an output a third of the way to its bounds.

    Which way a written cache rounds is a matter of the bounds, which are wide enough then.
    """
    description = builder.description
    disturbed = DisturbedGraph(builder.rng)
    for name, entry in description["inputs"].items():
        disturbed.add_input(name, entry["type"], entry["shape"], builder.tensors[name])
        if name not in builder.exact and entry["type"] != "f16":
            disturbed.disturb(name)
    with np.errstate(all="ignore"):
        for node in description["nodes"]:
            disturbed.run(node)
    bounds = oracle.bounds_by_name(description, builder.graph.halves)
    for name in description["outputs"]:
        nmse, relative = bounds.get(name, oracle.Bounds())
        part = 3 if name in builder.graph.halves else 9
        reason = oracle.difference(builder.value(name), disturbed.value(name), oracle.Bounds(nmse / part, relative / 3))
        if reason is not None:
            raise Unfit(f"{name} is sensitive: {reason}")


def build_case(seed: int, number: int, halves: bool) -> GraphBuilder:
    """The case's first attempt that is fit."""
    attempt = 0
    while True:
        builder = GraphBuilder(np.random.default_rng([seed, number, attempt]), halves)
        try:
            for _ in range(int(builder.rng.integers(1, 9))):
                if len(builder.description["nodes"]) < 8:
                    graph_moves.add_move(builder)
            builder.finish()
            for _ in range(N_DISTURBANCES):
                check_conditioning(builder)
            return builder
        except Unfit:
            attempt += 1


def write_cases(seed: int, n_cases: int, folder: str, halves: bool = False) -> None:
    """With `halves` most activations are f16."""
    for number in range(n_cases):
        builder = build_case(seed, number, halves)
        case = os.path.join(folder, f"{seed}-{number:04}")
        os.makedirs(case, exist_ok=True)
        with open(os.path.join(case, "graph.json"), "w", encoding="utf-8") as file:
            json.dump(builder.description, file, indent=1)
        tensor_files.write_safetensors(os.path.join(case, "inputs.safetensors"), builder.tensors)


def main() -> int:
    if len(sys.argv) != 4 or not (sys.argv[1].isdigit() and sys.argv[2].isdigit()):
        print("usage: random_graphs.py SEED N FOLDER", file=sys.stderr)
        return 2
    write_cases(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    return 0


if __name__ == "__main__":
    sys.exit(main())
