"""Grows a random graph file, evaluating it on the way."""
from typing import Optional, Sequence

import numpy as np

import oracle
import tensor_files
from random_weights import random_weight
from tensor_files import Tensor

MAX_ELEMENTS = 200_000
MAX_MAGNITUDE = 1e3
SIZES = [1, 2, 3, 5, 7, 8, 16, 31, 37, 41, 64, 89, 113]


class Unfit(Exception):
    """The graph so far is no test: too large, or too sensitive."""


class GraphBuilder:
    """A growing graph, its inputs, and its values as the oracle computes them."""

    def __init__(self, rng: np.random.Generator, halves: bool) -> None:
        self.rng = rng
        self.halves = halves  # most new inputs and results are f16
        self.description: dict = {"inputs": {}, "nodes": [], "outputs": []}
        self.tensors: dict[str, Tensor] = {}
        self.graph = oracle.Graph()
        self.results: list[str] = []  # float results of nodes, oldest first
        self.read: set[str] = set()
        self.exact: set[str] = set()  # inputs that operators read without rounding them: caches, what is selected from
        self.n_elements = 0

    # Chance

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, choices: Sequence):
        return choices[int(self.rng.integers(len(choices)))]

    def maybe(self, attributes: dict, probability: float, name: str, choices: Sequence) -> None:
        """Sets an attribute with some probability; its default holds otherwise."""
        if self.chance(probability):
            attributes[name] = self.pick(choices)

    def shape(self, n_dims: int, last: Optional[int] = None, limit: int = 12_000) -> list[int]:
        """Random sizes whose product stays below limit."""
        shape = [self.pick(SIZES) for _ in range(n_dims)]
        if last is not None:
            shape[-1] = last
        while np.prod(shape) > limit:
            largest = int(np.argmax(shape[:-1] if last is not None else shape))
            if shape[largest] == 1:
                raise Unfit("no such shape")
            shape[largest] = max(1, shape[largest] // 3)
        return shape

    # Inputs

    def add_input(self, prefix: str, type_name: str, shape: Sequence[int], tensor: Tensor) -> str:
        name = f"{prefix}{len(self.tensors)}"
        shape = [int(size) for size in shape]
        self.count(int(np.prod(shape)))
        self.description["inputs"][name] = {"type": type_name, "shape": shape}
        self.tensors[name] = tensor
        self.graph.add_input(name, type_name, shape, tensor)
        return name

    def floats(self, values: np.ndarray, prefix: str = "x") -> str:
        if self.halves and self.chance(0.8):
            return self.add_input(prefix, "f16", values.shape, Tensor("F16", values.astype(np.float16)))
        return self.f32(values, prefix)

    def f32(self, values: np.ndarray, prefix: str = "x") -> str:
        """An input of f32 in any graph."""
        return self.add_input(prefix, "f32", values.shape, Tensor("F32", values.astype(np.float32)))

    def exact_floats(self, values: np.ndarray, prefix: str = "x") -> str:
        name = self.f32(values, prefix)
        self.exact.add(name)
        return name

    def normal(self, shape: Sequence[int], prefix: str = "x") -> str:
        return self.floats(self.rng.standard_normal(shape), prefix)

    def integers(self, values: np.ndarray) -> str:
        type_name = self.pick(["i32", "i32", "i32", "i64"])
        return self.add_input("i", type_name, values.shape,
                              Tensor(type_name.upper(), values.astype(tensor_files.DTYPES[type_name.upper()])))

    def weight(self, type_name: str, rows: int, width: int) -> str:
        return self.add_input("w", type_name, [rows, width], random_weight(self.rng, type_name, rows, width))

    # Values

    def value(self, name: str) -> np.ndarray:
        return self.graph.values[name]

    def activation(self, n_dims: Sequence[int] = (1, 2, 3, 4), last: Optional[Sequence[int]] = None,
                   multiple: int = 1) -> str:
        """A result that fits, the newest ones first, or a new input: of so many dimensions, with a last one among
        `last` or a multiple of `multiple`."""
        def fits(shape: tuple) -> bool:
            return len(shape) in n_dims and (last is None or shape[-1] in last) and shape[-1] % multiple == 0

        fitting = [name for name in self.results if fits(self.value(name).shape)]
        if fitting and self.chance(0.8):
            return fitting[-1] if self.chance(0.7) else self.pick(fitting)
        width = self.pick(last) if last is not None else None
        if multiple > 1 and width is None:
            width = multiple * self.pick([1, 2, 3])
        return self.normal(self.shape(self.pick(n_dims), width))

    def like(self, shape: Sequence[int]) -> str:
        """A result of exactly this shape, or a new input."""
        same = [name for name in self.results if self.value(name).shape == tuple(shape)]
        return self.pick(same) if same and self.chance(0.5) else self.normal(shape)

    def node(self, op: str, inputs: dict[str, str], attributes: Optional[dict] = None, n_outputs: int = 1) -> list[str]:
        """Adds a node and computes it. Raises Unfit where a value grows too large."""
        first = sum(len(node["outputs"]) for node in self.description["nodes"])
        node = {"op": op, "inputs": inputs, "attributes": attributes or {},
                "outputs": [f"v{first + i}" for i in range(n_outputs)]}
        self.description["nodes"].append(node)
        self.read |= set(inputs.values())
        with np.errstate(all="ignore"):
            self.graph.run(node)
        for name in node["outputs"]:
            value = self.value(name)
            self.count(value.size)
            if value.dtype.kind == "f":
                if not np.isfinite(value).all() or np.abs(value).max(initial=0) > MAX_MAGNITUDE:
                    raise Unfit(f"{op} gives values beyond {MAX_MAGNITUDE}")
                self.results.append(name)
        return node["outputs"]

    def count(self, n_elements: int) -> None:
        self.n_elements += n_elements
        if self.n_elements > MAX_ELEMENTS:
            raise Unfit(f"more than {MAX_ELEMENTS} elements")

    def finish(self) -> None:
        """Lists the outputs: what nothing reads, some of the rest, and caches that were written."""
        for node in self.description["nodes"]:
            for name in node["outputs"]:
                if name not in self.read or self.chance(0.2):
                    self.description["outputs"].append(name)
            cache = node["inputs"].get("cache")
            if cache is not None and cache not in self.description["outputs"]:
                self.description["outputs"].append(cache)
