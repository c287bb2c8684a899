#!/usr/bin/python3
"""A second opinion on operator graphs: the operator table in float64 NumPy, sharing no code with the library.

usage: oracle.py GRAPH.json INPUTS.safetensors OUTPUTS.safetensors
       oracle.py --self-test FOLDER

The first form computes the outputs of a graph file: F64 for floats, I32 for integers, a cache in its own type. The
second compares with `expected.safetensors` in every folder of FOLDER that holds a `graph.json`: a line for each
failing case and a count; exit status 1 if there is one. Needs NumPy only.

Written from the table of operators and the papers named below, not from the library's sources. Each operator is a
function whose parameters are the table's inputs and attributes by name, with the table's defaults; NumPy broadcasting
is the table's. Nothing is rounded between nodes but activations in f16. Where the table leaves a choice, a comment starting "Choice:" says
which was made.
"""
import argparse
import glob
import json
import math
import os
import sys
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

import tensor_files
from tensor_files import BLOCK_FORMATS, Tensor

Array = np.ndarray


# Activations

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    """Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016: x times the normal distribution function."""
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    """The same paper's approximation by tanh."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def quick_gelu(x: Array) -> Array:
    """The same paper's approximation by a sigmoid, as CLIP uses it."""
    return x * sigmoid(1.702 * x)


UNARY: dict[str, Callable[[Array], Array]] = {
    "relu": lambda x: np.where(x < 0, 0.0, x), "gelu": gelu, "gelu_tanh": gelu_tanh, "quick_gelu": quick_gelu,
    "silu": lambda x: x * sigmoid(x), "tanh": np.tanh, "sigmoid": sigmoid, "exp": np.exp, "neg": np.negative,
}


def activate(name: str, x: Array) -> Array:
    """Choice: every unary operator's name is an activation, and "none"."""
    return x if name == "none" else UNARY[name](x)


# Products

def embedding(ids: Array, weight: Array, *, scale: float = 1) -> Array:
    valid = (ids >= 0) & (ids < len(weight))
    return scale * np.where(valid[..., None], weight[np.where(valid, ids, 0)], 0.0)


def linear(input: Array, weight: Array, bias: Optional[Array] = None, residual: Optional[Array] = None, *,
           activation: str = "none") -> Array:
    """Choice: the activation sees the bias and not the residual."""
    y = input @ weight.T
    if bias is not None:
        y = y + bias
    y = activate(activation, y)
    return y if residual is None else y + residual


def glu(gate: Array, up: Array, *, activation: str = "silu", limit: float = 0, up_bias: float = 0) -> Array:
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return activate(activation, gate) * (up + up_bias)


def route(logits: Array, *, k: int, normalize: bool = True) -> tuple[Array, Array]:
    experts = np.argsort(-logits, axis=-1, kind="stable")[..., :k]
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    chosen = np.take_along_axis(weights, experts, axis=-1)
    return experts, chosen / (chosen if normalize else weights).sum(axis=-1, keepdims=True)


def expert_linear(input: Array, weight: Array, experts: Array, bias: Optional[Array] = None, *, count: int) -> Array:
    """Choice: a number outside [0, count) means the nearest one."""
    chosen = np.clip(experts, 0, count - 1)
    rows = np.broadcast_to(input.reshape(*input.shape[:-1], -1, weight.shape[1]), (*experts.shape, weight.shape[1]))
    y = np.einsum("...nk,...k->...n", weight.reshape(count, -1, weight.shape[1])[chosen], rows)
    if bias is not None:
        y = y + bias.reshape(count, -1)[chosen]
    return y.reshape(*experts.shape[:-1], -1)


def weighted_sum(input: Array, weights: Array, residual: Optional[Array] = None) -> Array:
    y = (input.reshape(*weights.shape, -1) * weights[..., None]).sum(axis=-2)
    return y if residual is None else y + residual


def matmul(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False, scale: float = 1) -> Array:
    left = np.swapaxes(a, -1, -2) if transpose_a else a
    right = np.swapaxes(b, -1, -2) if transpose_b else b
    return scale * (left @ right)


def patch_embed(pixels: Array, weight: Array, bias: Optional[Array] = None, *, patch: int) -> Array:
    """Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020: a convolution whose stride is its size."""
    batch, channels, height, width = pixels.shape
    tiles = pixels.reshape(batch, channels, height // patch, patch, width // patch, patch)
    y = np.einsum("bcypxq,dcpq->byxd", tiles, weight).reshape(batch, -1, len(weight))
    return y if bias is None else y + bias


# Normalisation

def softmax(input: Array, mask: Optional[Array] = None, *, axis: int = -1, scale: float = 1) -> Array:
    x = input * scale if mask is None else input * scale + mask
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(input: Array, mask: Optional[Array] = None, *, axis: int = -1, scale: float = 1) -> Array:
    x = input * scale if mask is None else input * scale + mask
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def layer_norm(input: Array, weight: Optional[Array] = None, bias: Optional[Array] = None, *,
               epsilon: float = 1e-5) -> Array:
    """Ba, Kiros and Hinton, "Layer Normalization", 2016; the variance divides by D."""
    centred = input - input.mean(axis=-1, keepdims=True)
    y = centred / np.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + epsilon)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def rms_norm(input: Array, weight: Optional[Array] = None, *, epsilon: float = 1e-5,
             weight_offset: float = 0) -> Array:
    """Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.

    Choice: weight_offset is added to the weight, and does nothing without one.
    """
    y = input / np.sqrt((input ** 2).mean(axis=-1, keepdims=True) + epsilon)
    return y if weight is None else y * (weight + weight_offset)


# Positions

def rope(input: Array, positions: Array, frequency_factors: Optional[Array] = None, *, style: str = "half",
         dimensions: Optional[int] = None, theta: float = 10000, attention_factor: float = 1,
         max_position: int = 131072) -> Array:
    """Su et al., "RoFormer", 2021; pairs (i, i + n/2) as in GPT-NeoX, or (2i, 2i + 1) as in GPT-J.

    Choice: dimensions that are not rotated are not multiplied by attention_factor.
    """
    if positions.size and (positions.min() < 0 or positions.max() >= max_position):
        raise ValueError(f"rope: positions lie outside [0, {max_position})")
    n = input.shape[-1] if dimensions is None else dimensions
    half = n // 2
    frequencies = float(theta) ** (-2 * np.arange(half) / n)
    if frequency_factors is not None:
        frequencies = frequencies / frequency_factors
    by_batch = positions if positions.ndim == 2 else positions[None]
    angles = by_batch[:, None, :, None] * frequencies
    cos, sin = attention_factor * np.cos(angles), attention_factor * np.sin(angles)
    first, second = {"half": (slice(0, half), slice(half, n)),
                     "interleaved": (slice(0, n, 2), slice(1, n, 2))}[style]
    y = input.copy()
    y[..., first] = input[..., first] * cos - input[..., second] * sin
    y[..., second] = input[..., first] * sin + input[..., second] * cos
    return y


def sinusoidal_positions(positions: Array, *, width: int, theta: float = 10000, layout: str = "interleaved",
                         end_at_theta: bool = False) -> Array:
    """Vaswani et al., "Attention Is All You Need", 2017, section 3.5: frequencies theta^(-2i / width); or, as its authors'
    tensor2tensor and Whisper have it, evenly from 1 to 1 / theta in their logarithms."""
    n = width // 2
    exponents = np.arange(n) / max(n - 1, 1) if end_at_theta else 2 * np.arange(n) / width
    angles = positions[:, None] * float(theta) ** -exponents
    if layout == "split":
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    if layout != "interleaved":
        raise ValueError(f"sinusoidal_positions: layout {layout} is not interleaved or split")
    return np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(len(positions), width)


# Attention

def relative_bucket(distance: Array, n_buckets: int, bidirectional: bool, max_distance: int) -> Array:
    """Raffel et al., "Exploring the Limits of Transfer Learning" (T5), 2019: j - p_i to a row of the bias table.

    Choice: the logarithmic buckets' edges are those of real numbers, found in integers: a distance r >= e lies in
    bucket e + k for the largest k with (r / e)^n >= (max_distance / e)^k, n being the buckets from e on.
    """
    first = np.zeros_like(distance)
    if bidirectional:
        n_buckets //= 2
        first = np.where(distance > 0, n_buckets, 0)
        r = np.abs(distance)
    else:
        r = np.maximum(-distance, 0)
    exact = n_buckets // 2
    n = n_buckets - exact

    def bucket(r: int) -> int:
        if r < exact:
            return r
        k = 0
        while k < n - 1 and r ** n * exact ** (k + 1) >= max_distance ** (k + 1) * exact ** n:
            k += 1
        return exact + k

    table = np.array([bucket(i) for i in range(int(r.max(initial=0)) + 1)], np.int64)
    return first + table[r]


def allowed_keys(p: Array, j: Array, length: int, causal: bool, window_back: int, window_ahead: int, prefix: int,
                 chunk: int, chunks_back: int) -> Array:
    """What the attributes and one sequence's length allow, (Q, S); p and j are positions (Q, 1) and (1, S)."""
    allowed = np.ones(np.broadcast_shapes(p.shape, j.shape), bool)
    if causal:
        allowed &= j <= p
    if window_back >= 0:
        allowed &= j >= p - window_back
    if window_ahead >= 0:
        allowed &= j <= p + window_ahead
    if chunk > 0:
        # Choice: a query before position 0 lies in a chunk of negative number (the division rounds down).
        allowed &= (j // chunk <= p // chunk) & (j // chunk >= p // chunk - chunks_back)
    return (allowed | (j < prefix)) & (j < length)


def table_radius(relative_key: Optional[Array], relative_value: Optional[Array]) -> int:
    """R of tables with 2R + 1 rows, 0 without any."""
    lengths = {len(table) for table in (relative_key, relative_value) if table is not None}
    if len(lengths) > 1:
        raise ValueError(f"attention: relative_key and relative_value have {sorted(lengths)} rows, expected equal ones")
    return max(lengths, default=1) // 2


def attend(scores: Array, allowed: Array, values: Array, sink: Optional[float], relative_value: Optional[Array],
           table_rows: Array) -> Array:
    """One head: softmax of (Q, S) scores over the allowed keys, and the sum of what it weighs.

    Only allowed keys are touched. Choice: a key whose score is -inf by a float mask is not allowed, so that a row of
    them gives zeros; sinks do not make an empty row less so.
    """
    y = np.zeros((len(scores), values.shape[1]))
    for i, row in enumerate(scores):
        keys = np.flatnonzero(allowed[i] & (row != -np.inf))
        if not len(keys):
            continue
        top = row[keys].max() if sink is None else max(row[keys].max(), sink)
        e = np.exp(row[keys] - top)
        weights = e / (e.sum() + (0 if sink is None else math.exp(sink - top)))
        weighed = values[keys]
        if relative_value is not None:
            weighed = weighed + relative_value[table_rows[i, keys]]
        y[i] = weights @ weighed
    return y


def attention(query: Array, key: Array, value: Array, query_offset: Optional[Array] = None,
              lengths: Optional[Array] = None, mask: Optional[Array] = None, alibi_slopes: Optional[Array] = None,
              relative_bias: Optional[Array] = None, relative_key: Optional[Array] = None,
              relative_value: Optional[Array] = None, sinks: Optional[Array] = None, *, scale: Optional[float] = None,
              causal: bool = False, window_back: int = -1, window_ahead: int = -1, prefix: int = 0, chunk: int = 0,
              chunks_back: int = 0, softcap: float = 0, bidirectional_buckets: bool = True,
              max_distance: int = 128, ring: bool = False) -> Array:
    """Vaswani et al. 2017 with: grouped queries (Ainslie et al. 2023), relative keys and values (Shaw et al. 2018),
    bucketed biases (T5), ALiBi (Press et al. 2021), soft capping (Gemma 2), sinks (gpt-oss)."""
    batch, n_heads, n_queries, width = query.shape
    n_kv_heads, n_keys = key.shape[1:3]
    key, value = (np.broadcast_to(x, (batch, *x.shape[1:])) for x in (key, value))
    query_offset, lengths = (x if x is None else np.broadcast_to(x, (batch,)) for x in (query_offset, lengths))
    scale = 1 / math.sqrt(width) if scale is None else scale
    mask = None if mask is None else np.broadcast_to(mask, (batch, n_heads, n_queries, n_keys))
    y = np.zeros((batch, n_heads, n_queries, value.shape[3]))
    for b in range(batch):
        offset = n_keys - n_queries if query_offset is None else int(query_offset[b])
        p, j = offset + np.arange(n_queries)[:, None], np.arange(n_keys)[None]
        if ring:
            j = lengths[b] - 1 - (lengths[b] - 1 - j) % n_keys  # the position of what each row holds
        by_rule = (j >= 0) & allowed_keys(p, j, n_keys if lengths is None else int(lengths[b]), causal, window_back, window_ahead,
                               prefix, chunk, chunks_back)
        radius = table_radius(relative_key, relative_value)
        table_rows = np.clip(j - p, -radius, radius) + radius
        for h in range(n_heads):
            g = h // (n_heads // n_kv_heads)
            products = query[b, h] @ key[b, g].T
            if relative_key is not None:
                products = products + np.take_along_axis(query[b, h] @ relative_key.T, table_rows, axis=1)
            scores = products * scale
            if softcap:
                scores = softcap * np.tanh(scores / softcap)
            if relative_bias is not None:
                rows = relative_bucket(j - p, len(relative_bias), bidirectional_buckets, max_distance)
                scores = scores + relative_bias[rows, h]
            if alibi_slopes is not None:
                scores = scores + alibi_slopes[h] * (j - p)
            allowed = by_rule
            if mask is not None and mask.dtype == bool:
                allowed = by_rule & mask[b, h]
            elif mask is not None:
                scores = scores + mask[b, h]
            y[b, h] = attend(scores, allowed, value[b, g], None if sinks is None else float(sinks[h]), relative_value,
                             table_rows)
    return y


def attention_weights(query: Array, key: Array, **inputs) -> Array:
    """What attention multiplies values by: its output where the value of each stored key is a row of the identity."""
    values = np.broadcast_to(np.eye(key.shape[2]), (*key.shape[:3], key.shape[2]))
    return attention(query, key, values, **inputs)


# Views, reductions, selection

def concat(*, axis: int, **parts: Array) -> Array:
    """The names order the inputs, a before b. Beside the axis, which is one of the result's, they broadcast."""
    arrays = [parts[name] for name in sorted(parts)]
    rank = max(array.ndim for array in arrays)
    arrays = [array.reshape((1,) * (rank - array.ndim) + array.shape) for array in arrays]
    others = [[1 if i == axis % rank else size for i, size in enumerate(array.shape)] for array in arrays]
    common = np.broadcast_shapes(*others)
    wanted = [[array.shape[i] if i == axis % rank else size for i, size in enumerate(common)] for array in arrays]
    return np.concatenate([np.broadcast_to(*pair) for pair in zip(arrays, wanted)], axis=axis)


def strided(input: Array, *, starts: Optional[list] = None, ends: Optional[list] = None, steps: Optional[list] = None,
            axis: Optional[int] = None, start: int = 0, end: Optional[int] = None, step: int = 1) -> Array:
    """Bounds mean what they mean in Python's slices, negative ones included; steps default to 1, `end` to all."""
    if axis is not None:
        places = [slice(None)] * input.ndim
        places[axis] = slice(start, end, step)
        return input[tuple(places)]
    steps = [1] * len(starts) if steps is None else steps
    return input[tuple(slice(*bounds) for bounds in zip(starts, ends, steps))]


def pad(input: Array, *, before: list, after: list, value: float = 0) -> Array:
    return np.pad(input, list(zip(before, after)), constant_values=value)


def argmax(input: Array) -> Array:
    return input.argmax(axis=-1)


def top_k(input: Array, *, k: int) -> tuple[Array, Array]:
    indices = np.argsort(-input, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(input, indices, axis=-1), indices


def kv_write(cache: Array, update: Array, start: Array, count: Optional[Array] = None, *, ring: bool = False) -> Array:
    """The cache's new contents; update comes rounded to its type, or as bytes like the cache.

    Choice: a count beyond T means T, one below 0 means 0, and rows outside the cache are not written.
    """
    y = cache.copy()
    n_rows = update.shape[2]
    for b in range(len(cache)):
        for t in range(n_rows if count is None else min(int(count[b]), n_rows)):
            row = (start[b] + t) % cache.shape[2] if ring else start[b] + t
            if 0 <= row < cache.shape[2]:
                y[b, :, row] = update[b, :, t]
    return y


def reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda input, *, axis=-1, axes=None, keep=False: function(
        input, axis=tuple(axes) if axes else axis, keepdims=keep)


OPERATORS: dict[str, Callable[..., Any]] = {
    "embedding": embedding, "linear": linear, "matmul": matmul, "attention": attention, "attention_weights": attention_weights, "softmax": softmax,
    "log_softmax": log_softmax, "layer_norm": layer_norm, "rms_norm": rms_norm, "rope": rope,
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "glu": glu, "route": route, "expert_linear": expert_linear, "weighted_sum": weighted_sum,
    "sinusoidal_positions": sinusoidal_positions, "patch_embed": patch_embed, "concat": concat, "slice": strided,
    "transpose": lambda input, *, permutation: input.transpose(permutation),
    "reshape": lambda input, *, shape: input.reshape(shape), "pad": pad,
    "mean": reduction(np.mean), "sum": reduction(np.sum), "max": reduction(np.max),
    "argmax": argmax, "top_k": top_k,
}
OPERATORS.update({name: (lambda f: lambda input: f(input))(f) for name, f in UNARY.items()})


# Graphs

# What may be f16: a node's results are, if all of these are that it has, and an operator without any if its `type` says so.
ACTIVATION_ROLES = {"input", "residual", *"abcdefghijk", "gate", "up", "query", "pixels"}


class Graph:
    """The values of a graph so far, float64, int64 or bool, by name, and the files' types of its inputs."""

    def __init__(self) -> None:
        self.values: dict[str, Array] = {}
        self.types: dict[str, str] = {}
        # q8_0 inputs as bytes as well, so that rows which a kv_write leaves alone stay what they were to the bit.
        self.bytes: dict[str, Array] = {}
        self.aliases: dict[str, str] = {}
        self.halves: set[str] = set()  # results in f16

    def add_input(self, name: str, type_name: str, shape: list, stored: Tensor, layout: str = "nk") -> None:
        """Takes an input as a file holds it, a matrix of layout "kn" as its transpose. Raises ValueError where type or shape
        are not what the graph says."""
        array = stored.array
        if type_name in BLOCK_FORMATS:
            expected_shape, dtypes = [*shape[:-1], BLOCK_FORMATS[type_name].row_bytes(shape[-1])], ("U8",)
            if list(array.shape) == expected_shape and type_name == "q8_0":
                self.bytes[name] = array
        else:
            kinds = {"f32": ("F32",), "f16": ("F16",), "bf16": ("BF16",), "i32": ("I32", "I64"),
                     "i64": ("I64", "I32"), "bool": ("BOOL", "U8")}
            expected_shape, dtypes = list(shape), kinds[type_name]
        if list(array.shape) != expected_shape or stored.dtype not in dtypes:
            raise ValueError(f"input {name}: the file has {stored.dtype} {list(array.shape)}, "
                             f"the graph says {type_name} {list(shape)}")
        self.types[name] = type_name
        value = decoded(type_name, array, shape[-1] if shape else 1)
        self.values[name] = value.T if layout == "kn" else value

    def run(self, node: dict) -> None:
        """Computes one node of a graph file. Raises TypeError for an input or attribute that the operator has not."""
        op, outputs = node["op"], node["outputs"]
        if op == "kv_write":
            self.write_cache(node)
            return
        if op not in OPERATORS:
            raise ValueError(f"{op} is not an operator of graph files")
        inputs = {role: self.value(name) for role, name in node["inputs"].items()}
        attributes = dict(node.get("attributes", {}))
        halves = self.reads_halves(node) and op != "attention_weights"  # which are f32
        if op in ("embedding", "sinusoidal_positions"):
            halves = attributes.pop("type", "f32") == "f16" or node["inputs"].get("weight") in self.halves
        results = OPERATORS[op](**inputs, **attributes)
        results = results if isinstance(results, tuple) else (results,)
        for name, result in zip(outputs, results, strict=True):
            self.store(name, np.asarray(result), op, halves)

    def store(self, name: str, value: Array, op: str, halves: bool) -> None:
        """Takes a result of an operator, rounded if it is f16."""
        if halves and value.dtype.kind == "f":
            self.halves.add(name)
            value = value.astype(np.float16).astype(np.float64)
        self.values[name] = value

    def is_half(self, name: str) -> bool:
        return name in self.halves or self.input_type(name) == "f16"

    def reads_halves(self, node: dict) -> bool:
        """All activations that the node reads are f16."""
        activations = [name for role, name in node["inputs"].items() if role in ACTIVATION_ROLES]
        return bool(activations) and all(self.is_half(name) for name in activations)

    def write_cache(self, node: dict) -> None:
        """Changes the cache, whatever name a node reads it by; a name among the outputs is one more of these."""
        cache = self.aliases.get(node["inputs"]["cache"], node["inputs"]["cache"])
        rows = {role: self.value(name) for role, name in node["inputs"].items() if role != "cache"}
        if self.types[cache] == "q8_0":
            rows["update"] = tensor_files.encode_q8_0(rows["update"])
            self.bytes[cache] = kv_write(self.bytes[cache], **rows)
            self.values[cache] = decoded("q8_0", self.bytes[cache], self.values[cache].shape[-1])
        else:
            if self.types[cache] == "f16":
                rows["update"] = rows["update"].astype(np.float16).astype(np.float64)
            self.values[cache] = kv_write(self.values[cache], **rows)
        for name in node["outputs"]:
            if name != cache:
                self.aliases[name] = cache

    def value(self, name: str) -> Array:
        """float64, int64 or bool, by the name of an input, a result or an alias of a cache."""
        return self.values[self.aliases.get(name, name)]

    def input_type(self, name: str) -> Optional[str]:
        """The file's type of an input, or of the cache that a name is an alias of."""
        return self.types.get(self.aliases.get(name, name))

    def output(self, name: str) -> Tensor:
        """A value as the outputs' file holds it."""
        value, type_name = self.value(name), self.input_type(name)
        if type_name == "q8_0":
            return Tensor("U8", self.bytes[self.aliases.get(name, name)])
        if self.is_half(name):
            return Tensor("F16", value.astype(np.float16))
        dtype = "BOOL" if value.dtype == bool else "I32" if value.dtype.kind == "i" else "F64"
        return Tensor(dtype, value.astype(tensor_files.DTYPES[dtype]))


def decoded(type_name: str, array: Array, width: int) -> Array:
    """What a file holds as float64, int64 or bool."""
    if type_name in BLOCK_FORMATS:
        return tensor_files.decode_rows(type_name, array, width)
    if type_name == "bf16":
        return tensor_files.bf16_values(array)
    return array.astype({"i32": np.int64, "i64": np.int64, "bool": bool}.get(type_name, np.float64))


def evaluate(description: dict, inputs: dict[str, Tensor]) -> Graph:
    """Runs a graph file's nodes in their order."""
    graph = Graph()
    for name, entry in description["inputs"].items():
        if name not in inputs:
            raise ValueError(f"input {name} is not in the inputs' file")
        graph.add_input(name, entry["type"], entry["shape"], inputs[name], entry.get("layout", "nk"))
    with np.errstate(all="ignore"):
        for node in description["nodes"]:
            graph.run(node)
    return graph


def evaluate_files(graph_path: str, inputs_path: str) -> dict[str, Tensor]:
    """The outputs of a graph file by name."""
    with open(graph_path, encoding="utf-8") as file:
        description = json.load(file)
    graph = evaluate(description, tensor_files.read_safetensors(inputs_path))
    return {name: graph.output(name) for name in description["outputs"]}


# Comparison

class Bounds(NamedTuple):
    """How far finite values may lie apart: normalised mean squared error, and a part of the largest magnitude."""
    nmse: float = 1e-10
    relative: float = 1e-5


# Where a kv_write rounds computed values, a last bit of float32 decides between two neighbours now and then.
ROUNDED_CACHE_BOUNDS = {"f16": Bounds(1e-6, 2e-3), "q8_0": Bounds(2e-4, 2e-2)}
# The same of results in f16, which fused operators round once where others round twice.
ROUNDED_RESULT_BOUNDS = Bounds(1e-6, 1e-2)


def bounds_by_name(description: dict, halves: set[str]) -> dict[str, Bounds]:
    """The bounds of each result and written cache: wider from where computed values were rounded, into a cache or into a
    result that is one of `halves`.

    An input that is written rounds to the same bits everywhere, if no scale's last bit decides over one of its values.
    """
    inputs = description["inputs"]
    bounds: dict[str, Bounds] = {}
    aliases: dict[str, str] = {}
    for node in description["nodes"]:
        names = {role: aliases.get(name, name) for role, name in node["inputs"].items()}
        widest = max((bounds[name] for name in names.values() if name in bounds), default=Bounds())
        if node["op"] == "kv_write":
            if names["update"] not in inputs:
                widest = max(widest, ROUNDED_CACHE_BOUNDS.get(inputs[names["cache"]]["type"], Bounds()))
            bounds[names["cache"]] = widest
            aliases.update({name: names["cache"] for name in node["outputs"]})
        bounds.update({name: max(widest, ROUNDED_RESULT_BOUNDS) if name in halves else widest for name in node["outputs"]})
    return bounds


def difference(expected: Array, actual: Array, bounds: Bounds = Bounds()) -> Optional[str]:
    """Why actual is not expected, in words, or nothing: shapes, kinds, integers exactly, NaN and infinities in place,
    finite values within bounds."""
    if expected.shape != actual.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if (expected.dtype.kind == "f") != (actual.dtype.kind == "f"):
        return f"{actual.dtype} values, expected {expected.dtype}"
    if expected.dtype.kind != "f":
        n_wrong = int((expected.astype(np.int64) != actual.astype(np.int64)).sum())
        return f"{n_wrong} of {expected.size} integers differ" if n_wrong else None
    finite = np.isfinite(expected)
    if not np.array_equal(np.where(finite, 0, expected), np.where(np.isfinite(actual), 0, actual), equal_nan=True):
        return "NaN or infinities where the other has none"
    want, have = expected[finite].astype(np.float64), actual[finite].astype(np.float64)
    largest = float(np.abs(want).max(initial=0))
    worst = float(np.abs(want - have).max(initial=0))
    power = float((want ** 2).sum())
    nmse = float(((want - have) ** 2).sum()) / (power if power > 0 else 1.0)
    if worst > bounds.relative * largest or nmse > bounds.nmse:
        return f"nmse {nmse:.3g}, largest difference {worst:.3g}, largest magnitude {largest:.3g}"
    return None


def self_test(folder: str) -> int:
    """Compares with the expected outputs of every case; the number of failing ones, or 1 where there is no case."""
    cases = sorted(os.path.dirname(path) for path in glob.glob(os.path.join(folder, "*", "graph.json")))
    n_failed = 0
    for case in cases:
        actual = evaluate_files(os.path.join(case, "graph.json"), os.path.join(case, "inputs.safetensors"))
        expected = tensor_files.read_safetensors(os.path.join(case, "expected.safetensors"))
        reasons = [f"{name}: {reason}" for name in expected
                   if (reason := difference(expected[name].array, actual[name].array)) is not None]
        if reasons:
            n_failed += 1
            print(f"{case}: {'; '.join(reasons)}")
    print(f"{len(cases) - n_failed} of {len(cases)} cases passed")
    return n_failed if cases else 1


def main() -> int:
    parser = argparse.ArgumentParser(description="computes a graph file in float64")
    parser.add_argument("--self-test", metavar="FOLDER", help="whose cases have expected.safetensors")
    parser.add_argument("files", nargs="*", metavar="GRAPH INPUTS OUTPUTS")
    arguments = parser.parse_args()
    if arguments.self_test is not None:
        return 1 if self_test(arguments.self_test) else 0
    if len(arguments.files) != 3:
        parser.error("expected GRAPH.json INPUTS.safetensors OUTPUTS.safetensors")
    graph_path, inputs_path, outputs_path = arguments.files
    try:
        outputs = evaluate_files(graph_path, inputs_path)
    except (KeyError, OSError, TypeError, ValueError) as error:
        print(f"oracle: error: {graph_path}: {error}", file=sys.stderr)
        return 1
    tensor_files.write_safetensors(outputs_path, outputs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
