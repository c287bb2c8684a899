"""The moves of random graphs: one operator with random attributes each, or a pattern that a compiler would fuse."""
import math
from typing import Callable, Optional

import numpy as np

import random_weights
from graph_builder import SIZES, GraphBuilder, Unfit
from random_weights import WEIGHT_TYPES
from tensor_files import BLOCK_FORMATS, Tensor

ACTIVATIONS = ["relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh", "sigmoid"]
LOWEST = float(np.finfo(np.float32).min)  # what masks made by PyTorch hold in place of minus infinity


def broadcastable(b: GraphBuilder, shape: tuple[int, ...]) -> list[int]:
    """A shape that broadcasts to `shape`: ones here and there, leading dimensions left out."""
    sizes = [1 if b.chance(0.3) else size for size in shape]
    return sizes[b.pick(range(len(sizes))):] if b.chance(0.4) else sizes


def optional_parameter(b: GraphBuilder, inputs: dict, role: str, width: int, probability: float = 0.6) -> None:
    if b.chance(probability):
        inputs[role] = b.normal([width], "w")


# Elementwise

def unary(b: GraphBuilder) -> None:
    x = b.activation()
    op = b.pick([*ACTIVATIONS, "exp", "neg"])
    if op == "exp" and np.abs(b.value(x)).max() > 5:
        op = "tanh"
    b.node(op, {"input": x})


def binary(b: GraphBuilder) -> None:
    x = b.activation()
    op = b.pick(["add", "sub", "mul", "div"])
    if b.chance(0.5):
        other_shape = broadcastable(b, b.value(x).shape)
    else:
        other_shape = list(b.value(x).shape)
    if op == "div":
        y = b.floats(b.rng.uniform(0.5, 2, other_shape) * b.rng.choice([-1, 1], other_shape))
        b.node(op, {"a": x, "b": y})
        return
    y = x if b.chance(0.05) and op != "sub" else b.like(other_shape)
    first, second = (x, y) if b.chance(0.5) else (y, x)
    b.node(op, {"a": first, "b": second})


def glu(b: GraphBuilder) -> None:
    gate = b.activation()
    attributes: dict = {}
    b.maybe(attributes, 0.6, "activation", ACTIVATIONS)
    b.node("glu", {"gate": gate, "up": b.like(b.value(gate).shape)}, attributes)


# Products

def weight_type(b: GraphBuilder) -> str:
    return "f32" if b.chance(0.3) else b.pick(WEIGHT_TYPES)


def block_width(type_name: str) -> int:
    return BLOCK_FORMATS[type_name].n_values if type_name in BLOCK_FORMATS else 1


def linear_of(b: GraphBuilder, x: str, type_name: str, n: int, extras: bool = True) -> str:
    """A linear of n outputs over x, with random bias, activation and residual if extras are wanted."""
    shape = b.value(x).shape
    inputs, attributes = {"input": x, "weight": b.weight(type_name, n, shape[-1])}, {}
    if extras:
        optional_parameter(b, inputs, "bias", n, 0.5)
        b.maybe(attributes, 0.4, "activation", ["none", *ACTIVATIONS])
        if b.chance(0.4):
            full = (*shape[:-1], n)
            inputs["residual"] = b.like(full if b.chance(0.7) else broadcastable(b, full))
    return b.node("linear", inputs, attributes)[0]


def linear(b: GraphBuilder) -> None:
    type_name = weight_type(b)
    x = b.activation((2, 3, 4) if b.chance(0.9) else (1,), multiple=block_width(type_name))
    y = linear_of(b, x, type_name, b.pick(SIZES))
    if b.chance(0.2):
        linear_of(b, x, type_name, b.pick(SIZES))
    elif b.chance(0.2):
        b.node("add", {"a": y, "b": b.like(b.value(y).shape)})


def matmul(b: GraphBuilder) -> None:
    x = b.activation((2, 3, 4))
    *batch, rows, columns = b.value(x).shape
    attributes = {"transpose_a": b.chance(0.3), "transpose_b": b.chance(0.5)}
    attributes = {name: value for name, value in attributes.items() if value or b.chance(0.3)}
    b.maybe(attributes, 0.3, "scale", [0.125, -0.7, 1.0])
    k, n = rows if attributes.get("transpose_a") else columns, b.pick(SIZES)
    matrix = [n, k] if attributes.get("transpose_b") else [k, n]
    other_batch = broadcastable(b, tuple(batch)) if batch and b.chance(0.8) else []
    if other_batch and b.chance(0.3) and len(other_batch) == len(batch):
        other_batch = [b.pick([2, 3]) if mine == 1 else size for mine, size in zip(batch, other_batch)]
    y = b.floats(b.rng.standard_normal([*other_batch, *matrix]) / math.sqrt(k))
    b.node("matmul", {"a": x, "b": y}, attributes)


def embedding(b: GraphBuilder) -> None:
    type_name = weight_type(b)
    width = block_width(type_name) * b.pick([1, 2]) if type_name in BLOCK_FORMATS else b.pick(SIZES)
    rows = b.pick([1, 2, 7, 37, 64, 113])
    if b.chance(0.2):
        # An argmax among more columns than there are rows names rows that do not exist: they embed as zeros.
        columns = b.pick([size for size in SIZES if size <= rows]) if b.chance(0.8) else rows + 3
        ids = b.node("argmax", {"input": selectable(b, b.shape(b.pick([2, 3]), columns, 300))})[0]
    else:
        ids = b.integers(b.rng.integers(0, rows, b.shape(b.pick([1, 2]), limit=60)))
    attributes = {"type": "f16"} if b.halves and b.chance(0.8) else {}
    b.maybe(attributes, 0.3, "scale", [8.0, 0.3, 22.627417])
    b.node("embedding", {"ids": ids, "weight": b.weight(type_name, rows, width)}, attributes)


def patch_embed(b: GraphBuilder) -> None:
    patch, channels, width = b.pick([1, 2, 3, 4, 7, 8]), b.pick([1, 3, 4]), b.pick([1, 8, 31, 64])
    pixels = b.normal([b.pick([1, 2]), channels, patch * b.pick([1, 2, 3, 5]), patch * b.pick([1, 2, 4])])
    weight_shape = [width, channels, patch, patch]
    inputs = {"pixels": pixels,
              "weight": b.floats(b.rng.standard_normal(weight_shape) / math.sqrt(channels * patch * patch), "w")}
    optional_parameter(b, inputs, "bias", width)
    b.node("patch_embed", inputs, {"patch": patch})


# Normalisation

def softmax(b: GraphBuilder) -> None:
    x = b.activation()
    shape = b.value(x).shape
    inputs, attributes = {"input": x}, {}
    b.maybe(attributes, 0.5, "axis", range(-len(shape), len(shape)))
    b.maybe(attributes, 0.4, "scale", [0.125, 1.0, -0.5, 2.0])
    if b.chance(0.4):
        inputs["mask"] = b.normal(broadcastable(b, shape))
    b.node(b.pick(["softmax", "log_softmax"]), inputs, attributes)


def layer_norm(b: GraphBuilder) -> str:
    x = b.activation()
    rows = b.value(x)
    # The rounding of the mean, which no disturbance of the values shows: a pair's norm is +-1 however near the two lie.
    if rows.shape[-1] > 1 and (rows.std(axis=-1) < 0.05 * np.abs(rows).max(axis=-1)).any():
        raise Unfit("layer_norm of rows that hardly vary")
    inputs, attributes = {"input": x}, {}
    for role in ("weight", "bias"):
        optional_parameter(b, inputs, role, b.value(x).shape[-1])
    b.maybe(attributes, 0.5, "epsilon", [1e-6, 1e-12, 1e-3])
    return b.node("layer_norm", inputs, attributes)[0]


def rms_norm_of(b: GraphBuilder, x: str) -> str:
    inputs, attributes = {"input": x}, {}
    optional_parameter(b, inputs, "weight", b.value(x).shape[-1], 0.8)
    b.maybe(attributes, 0.5, "epsilon", [1e-6, 1e-3])
    b.maybe(attributes, 0.3, "weight_offset", [1.0, 0.5])
    return b.node("rms_norm", inputs, attributes)[0]


def rms_norm(b: GraphBuilder) -> None:
    rms_norm_of(b, b.activation())


# Positions

def rope_of(b: GraphBuilder, x: str, positions: str, attributes: dict, factors: Optional[str]) -> str:
    inputs = {"input": x, "positions": positions}
    if factors is not None:
        inputs["frequency_factors"] = factors
    return b.node("rope", inputs, dict(attributes))[0]


def rope_attributes(b: GraphBuilder, width: int) -> tuple[dict, Optional[str]]:
    """Attributes, and frequency factors of their dimensions or nothing."""
    attributes: dict = {}
    b.maybe(attributes, 0.7, "style", ["half", "interleaved"])
    b.maybe(attributes, 0.4, "dimensions", range(2, width + 1, 2))
    b.maybe(attributes, 0.4, "theta", [500000.0, 1e6, 100.0])
    b.maybe(attributes, 0.3, "attention_factor", [1.25, 0.5])
    b.maybe(attributes, 0.2, "max_position", [4096, 8192])
    n = attributes.get("dimensions", width)
    factors = b.exact_floats(b.rng.uniform(1, 8, n // 2), "w") if b.chance(0.3) else None
    return attributes, factors


def rope(b: GraphBuilder) -> None:
    x = b.activation((4,), multiple=2) if b.chance(0.5) else b.normal(b.shape(4, b.pick([2, 6, 16, 20, 64, 80])))
    batch, _, rows, width = b.value(x).shape
    shape = [batch, rows] if b.chance(0.5) else [rows]
    positions = b.integers(b.rng.integers(0, 4096, shape))
    rope_of(b, x, positions, *rope_attributes(b, width))


def sinusoidal_positions(b: GraphBuilder) -> None:
    attributes = {"width": b.pick([2, 8, 16, 62, 64])}
    b.maybe(attributes, 0.3, "theta", [500.0, 1e5])
    b.maybe(attributes, 0.6, "layout", ["interleaved", "split"])
    b.maybe(attributes, 0.4, "end_at_theta", [True, True, False])
    if b.halves:
        b.maybe(attributes, 0.8, "type", ["f16", "f16", "f32"])
    b.node("sinusoidal_positions", {"positions": b.integers(b.rng.integers(0, 2048, b.shape(1)))}, attributes)


# Views

def concat(b: GraphBuilder) -> None:
    x = b.activation()
    shape = b.value(x).shape
    axis = b.pick(range(len(shape)))
    parts = [x]
    for _ in range(b.pick([1, 1, 2, 3])):
        other = list(shape)
        other[axis] = b.pick([1, 2, 7, shape[axis]])
        if b.chance(0.3):  # one for all along other axes; those before the axis may be left out
            other = [1 if i != axis and b.chance(0.5) else size for i, size in enumerate(other)]
            other = other[b.pick(range(axis + 1)):] if axis else other
        parts.append(b.like(other))
    order = b.rng.permutation(len(parts))
    b.node("concat", {"abcd"[i]: parts[part] for i, part in enumerate(order)},
           {"axis": axis - len(shape) if b.chance(0.4) else axis})


def slice_(b: GraphBuilder) -> None:
    """Bounds count from the end now and then; steps go forwards, which is all that the library takes."""
    x = b.activation()
    if b.chance(0.3):
        shape = b.value(x).shape
        axis = b.pick(range(len(shape)))
        attributes = {"axis": axis - len(shape) if b.chance(0.5) else axis}
        if b.chance(0.7):
            attributes["start"] = b.pick([0, -1, shape[axis] // 2])
        if b.chance(0.3) and "start" not in attributes:
            attributes["end"] = b.pick([1, shape[axis], shape[axis] + 3])
        b.maybe(attributes, 0.4, "step", [1, 2, 3])
        b.node("slice", {"input": x}, attributes)
        return
    starts, ends, steps = [], [], []
    for size in b.value(x).shape:
        start = int(b.rng.integers(size))
        end = int(b.rng.integers(start + 1, size + 1))
        if b.chance(0.4):
            start, end = 0, size
        step = b.pick([1, 1, 1, 2, 3])
        starts.append(start - size if b.chance(0.3) else start)
        ends.append(end - size if b.chance(0.3) and end < size else end)
        steps.append(step)
    attributes = {"starts": starts, "ends": ends}
    if any(step != 1 for step in steps) or b.chance(0.5):
        attributes["steps"] = steps
    b.node("slice", {"input": x}, attributes)


def transpose(b: GraphBuilder) -> None:
    x = b.activation((2, 3, 4))
    n_dims = b.value(x).ndim
    axes = b.rng.permutation(n_dims).tolist()
    b.node("transpose", {"input": x}, {"permutation": [axis - n_dims if b.chance(0.2) else axis for axis in axes]})


def reshape(b: GraphBuilder) -> None:
    """Joins two neighbouring dimensions or splits one."""
    x = b.activation()
    shape = list(b.value(x).shape)
    axis = b.pick(range(len(shape)))
    if axis + 1 < len(shape) and b.chance(0.5):
        shape[axis:axis + 2] = [shape[axis] * shape[axis + 1]]
    elif len(shape) < 4:
        divisor = b.pick([n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0])
        shape[axis:axis + 1] = [divisor, shape[axis] // divisor]
    if b.chance(0.4):
        shape[b.pick(range(len(shape)))] = -1
    b.node("reshape", {"input": x}, {"shape": shape})


def pad(b: GraphBuilder) -> None:
    x = b.activation()
    n_dims = b.value(x).ndim
    attributes = {"before": b.rng.integers(0, 3, n_dims).tolist(), "after": b.rng.integers(0, 4, n_dims).tolist()}
    b.maybe(attributes, 0.5, "value", [-1.5, 0.25])
    b.node("pad", {"input": x}, attributes)


# Reductions and selection

def reduce(b: GraphBuilder) -> None:
    x = b.activation((2, 3, 4))
    n_dims = b.value(x).ndim
    if b.chance(0.4):
        n_axes = b.pick(range(1, n_dims))
        attributes: dict = {"axes": [axis - n_dims if b.chance(0.5) else axis for axis in b.rng.permutation(n_dims)[:n_axes].tolist()]}
    else:
        attributes = {"axis": b.pick(range(-n_dims, n_dims))}
    b.maybe(attributes, 0.5, "keep", [True, False])
    b.node(b.pick(["mean", "sum", "max"]), {"input": x}, attributes)


def selectable(b: GraphBuilder, shape: list[int]) -> str:
    """An input to select from: few distinct values, or all distinct; no negative zero, which is equal to zero."""
    values = b.rng.integers(-4, 5, shape) / 2 if b.chance(0.5) else b.rng.standard_normal(shape)
    return b.exact_floats(values + 0.0)


def select(b: GraphBuilder) -> None:
    x = selectable(b, b.shape(b.pick([1, 2, 3])))
    if b.chance(0.2) and b.value(x).ndim > 1:
        x = b.node("transpose", {"input": x}, {"permutation": list(range(b.value(x).ndim))[::-1]})[0]
    if b.chance(0.5):
        b.node("argmax", {"input": x})
        return
    width = b.value(x).shape[-1]
    b.node("top_k", {"input": x}, {"k": b.pick([1, width, int(b.rng.integers(1, width + 1))])}, n_outputs=2)


# Attention

def keys(b: GraphBuilder, type_name: str, shape: list[int], lengths: Optional[np.ndarray]) -> str:
    """Keys or values; rows beyond the lengths may be poisoned, and f32 ones a transposed view."""
    tensor = random_weights.random_cache(b.rng, type_name, shape)
    if lengths is not None and b.chance(0.4):
        huge = 1e30 if type_name == "f32" else 6e4
        tensor = random_weights.poison(type_name, tensor, lengths, b.pick([np.nan, huge]))
    elif (type_name == "f32" or (type_name == "f16" and b.halves)) and b.chance(0.3):
        rows = tensor.array.transpose(0, 2, 1, 3)
        x = b.f32(rows) if type_name == "f32" else b.add_input("x", type_name, rows.shape, Tensor("F16", rows))
        return b.node("transpose", {"input": x}, {"permutation": [0, 2, 1, 3]})[0]
    return b.add_input("c", type_name, shape, tensor)


def attention_mask(b: GraphBuilder, shape: tuple[int, ...]) -> str:
    """Boolean or added, of a shape that broadcasts; some rows let nothing through."""
    sizes = broadcastable(b, shape)
    closed = b.rng.random([*sizes[:-1], 1]) < (0.3 if b.chance(0.5) else 0)
    if b.chance(0.5):
        open_ = (b.rng.random(sizes) < 0.7) & ~closed
        return b.add_input("i", "bool", sizes, Tensor("BOOL", open_))
    values = b.rng.standard_normal(sizes)
    if b.chance(0.4):
        values = np.where((b.rng.random(sizes) < 0.3) | closed, LOWEST, values)
    return b.exact_floats(values)


def attention_tables(b: GraphBuilder, inputs: dict, attributes: dict, n_heads: int, width: int, value_width: int,
                     reach: int) -> None:
    """Biases by distance, relative keys and values, sinks; reach bounds the distances."""
    if b.chance(0.2):
        inputs["alibi_slopes"] = b.floats(b.rng.uniform(0.05, 1, n_heads) * 8 / reach, "w")
    if b.chance(0.2):
        inputs["relative_bias"] = b.normal([b.pick([8, 16, 32]), n_heads], "w")
        b.maybe(attributes, 0.6, "bidirectional_buckets", [True, False])
        b.maybe(attributes, 0.5, "max_distance", [20, 64, 100])
    rows = 2 * b.pick([0, 1, 2, 5, 16]) + 1
    if b.chance(0.2):
        inputs["relative_key"] = b.normal([rows, width], "w")
    if b.chance(0.2):
        inputs["relative_value"] = b.normal([rows, value_width], "w")
    if b.chance(0.2):
        inputs["sinks"] = b.normal([n_heads], "w")


def attention_rules(b: GraphBuilder, attributes: dict) -> None:
    """Which keys a query may see, and what happens to scores."""
    b.maybe(attributes, 0.5, "causal", [True, True, False])
    b.maybe(attributes, 0.25, "window_back", [0, 1, 5, 17, 64])
    b.maybe(attributes, 0.2, "window_ahead", [0, 1, 4, 33])
    b.maybe(attributes, 0.2, "prefix", [1, 3, 20])
    if b.chance(0.2):
        attributes["chunk"] = b.pick([1, 4, 8, 16, 33])
        b.maybe(attributes, 0.6, "chunks_back", [0, 1, 2])
    b.maybe(attributes, 0.2, "softcap", [1.0, 5.0, 30.0])
    b.maybe(attributes, 0.3, "scale", [0.05, 0.125, 0.2])


def attention(b: GraphBuilder) -> None:
    batch, n_kv_heads = b.pick([1, 1, 1, 2, 3]), b.pick([1, 1, 2, 3])
    n_heads = n_kv_heads * b.pick([1, 1, 2, 3, 4])
    n_queries, n_keys = b.pick([1, 1, 2, 7, 16, 17, 37]), b.pick([1, 2, 7, 31, 37, 64, 65, 89, 113, 130, 257])
    width = b.pick([1, 4, 8, 16, 20, 31, 32, 40, 64, 80, 128])
    value_width = width if b.chance(0.7) else b.pick([1, 8, 24, 32, 33, 64])
    key_type = b.pick(["f32", "f32", "f16", "q8_0"])
    if key_type == "q8_0":  # whose rows in files are whole blocks
        width, value_width = 32 * b.pick([1, 2, 3, 4]), 32 * b.pick([1, 2])
    lengths = None
    inputs, attributes = {}, {}
    attention_rules(b, attributes)
    if b.chance(0.4):
        lengths = b.rng.choice([0, 1, n_keys, n_keys // 2, int(b.rng.integers(n_keys + 1))], batch)
        if b.chance(0.2):
            lengths[:] = lengths[0]
        inputs["lengths"] = b.integers(lengths[:1] if (lengths == lengths[0]).all() else lengths)
    if b.chance(0.4) or ("chunk" in attributes and n_queries > n_keys):
        inputs["query_offset"] = b.integers(b.rng.integers(0, n_keys + 2, batch))
    if b.chance(0.3):
        x = b.normal([batch, n_queries, n_heads, width])
        inputs["query"] = b.node("transpose", {"input": x}, {"permutation": [0, 2, 1, 3]})[0]
    else:
        inputs["query"] = b.like([batch, n_heads, n_queries, width])
    for_all = key_type != "q8_0" and b.chance(0.3) and (lengths is None or (lengths == lengths[0]).all())
    n_sequences = 1 if for_all else batch
    hidden = lengths if lengths is None else lengths[:n_sequences]
    inputs["key"] = keys(b, key_type, [n_sequences, n_kv_heads, n_keys, width], hidden)
    inputs["value"] = keys(b, key_type, [n_sequences, n_kv_heads, n_keys, value_width], hidden)
    if b.chance(0.4):
        inputs["mask"] = attention_mask(b, (batch, n_heads, n_queries, n_keys))
    attention_tables(b, inputs, attributes, n_heads, width, value_width, n_keys + n_queries)
    b.node("attention", inputs, attributes)
    if b.chance(0.3):
        b.node("attention_weights", {name: value for name, value in inputs.items() if name not in ("value", "relative_value")}, attributes)


# Patterns

def feed_forward(b: GraphBuilder) -> None:
    """A norm, gate and up into glu, down with a residual."""
    type_name = weight_type(b)
    x = b.activation((2, 3), multiple=block_width(type_name))
    width = b.value(x).shape[-1]
    normed = rms_norm_of(b, x) if b.chance(0.8) else x
    hidden = b.pick([31, 32, 64, 113])
    up_type = type_name if b.chance(0.7) else "f32"
    gate, up = (linear_of(b, normed, t, hidden, extras=b.chance(0.2)) for t in (type_name, up_type))
    attributes: dict = {}
    b.maybe(attributes, 0.5, "activation", ACTIVATIONS)
    product = b.node("glu", {"gate": gate, "up": up}, attributes)[0]
    down_type = b.pick([t for t in WEIGHT_TYPES if hidden % block_width(t) == 0])
    inputs = {"input": product, "weight": b.weight(down_type, width, hidden)}
    if b.chance(0.8):
        inputs["residual"] = x
    b.node("linear", inputs)


def mixture_of_experts(b: GraphBuilder) -> None:
    """Of each token's experts gate and up into glu, down, and their weighted sum with a residual."""
    n_experts, hidden = b.pick([1, 2, 5, 8]), b.pick([31, 32, 64])
    k = int(b.rng.integers(1, min(n_experts, 3) + 1))
    type_name = weight_type(b)
    x = b.activation((2, 3), multiple=block_width(type_name))
    *tokens, width = b.value(x).shape
    attributes: dict = {}
    b.maybe(attributes, 0.5, "normalize", [True, False])
    experts, weights = b.node("route", {"logits": selectable(b, [*tokens, n_experts])}, {"k": k, **attributes}, n_outputs=2)

    def of_experts(y: str, kind: str, n: int, columns: int) -> str:
        inputs = {"input": y, "weight": b.weight(kind, n_experts * n, columns), "experts": experts}
        optional_parameter(b, inputs, "bias", n_experts * n, 0.4)
        return b.node("expert_linear", inputs, {"count": n_experts})[0]

    gate, up = (of_experts(x, type_name, hidden, width) for _ in range(2))
    attributes = {}
    b.maybe(attributes, 0.5, "activation", ACTIVATIONS)
    b.maybe(attributes, 0.3, "limit", [0.5, 7.0])
    b.maybe(attributes, 0.3, "up_bias", [1.0])
    product = b.node("glu", {"gate": gate, "up": up}, attributes)[0]
    down_type = b.pick([t for t in WEIGHT_TYPES if hidden % block_width(t) == 0])
    inputs = {"input": of_experts(product, down_type, width, hidden), "weights": weights}
    if b.chance(0.6):
        inputs["residual"] = x
    b.node("weighted_sum", inputs)


def heads_of(b: GraphBuilder, x: str, type_name: str, n_heads: int, width: int) -> str:
    """A projection of x (B, T, C) as (B, H, T, D)."""
    batch, rows, _ = b.value(x).shape
    y = linear_of(b, x, type_name, n_heads * width, extras=False)
    y = b.node("reshape", {"input": y}, {"shape": [batch, rows, n_heads, width]})[0]
    return b.node("transpose", {"input": y}, {"permutation": [0, 2, 1, 3]})[0]


def cache_input(b: GraphBuilder, type_name: str, shape: list[int], valid: np.ndarray) -> str:
    """A cache before its step; rows from `valid` on were never written and hold NaN now and then."""
    tensor = random_weights.random_cache(b.rng, type_name, shape)
    if b.chance(0.4):
        tensor = random_weights.poison(type_name, tensor, valid, np.nan)
    name = b.add_input("c", type_name, shape, tensor)
    b.exact.add(name)
    return name


def cache_rows(b: GraphBuilder, batch: int, rows: int, n_keys: int) -> tuple[dict[str, str], np.ndarray, np.ndarray]:
    """start and perhaps count of a kv_write as inputs, and both as numbers."""
    start = b.rng.integers(0, n_keys - rows + 1, batch)
    count = np.full(batch, rows)
    inputs = {"start": b.integers(start)}
    if b.chance(0.4):
        count = b.rng.integers(0, rows + 1, batch)
        inputs["count"] = b.integers(count)
    return inputs, start, count


def self_attention(b: GraphBuilder) -> None:
    """q, k and v, rope of q and k, both cache writes, attention over the cache, the output projection."""
    type_name, cache_type = weight_type(b), b.pick(["f32", "f16", "q8_0"])
    batch, rows = b.pick([1, 1, 2]), b.pick([1, 1, 2, 7, 17])
    model_width = block_width(type_name) * b.pick([1, 2]) if type_name in BLOCK_FORMATS else b.pick([31, 64, 113])
    n_kv_heads, width = b.pick([1, 2, 3]), b.pick([32, 64]) if cache_type == "q8_0" else b.pick([6, 16, 20, 32])
    n_heads = n_kv_heads * b.pick([1, 2, 3])
    x = b.normal([batch, rows, model_width])
    normed = rms_norm_of(b, x) if b.chance(0.5) else x
    q, k, v = (heads_of(b, normed, type_name, n, width) for n in (n_heads, n_kv_heads, n_kv_heads))
    n_keys = rows + b.pick([0, 1, 30, 64])
    written, start, count = cache_rows(b, batch, rows, n_keys)
    if b.chance(0.8):
        positions = b.integers(start[:, None] + np.arange(rows))
        rotation = rope_attributes(b, width)
        q, k = (rope_of(b, y, positions, *rotation) for y in (q, k))
    caches = [cache_input(b, cache_type, [batch, n_kv_heads, n_keys, width], start) for _ in range(2)]
    for cache, update in zip(caches, (k, v)):
        b.node("kv_write", {"cache": cache, "update": update, **written}, n_outputs=0)
    inputs = {"query": q, "key": caches[0], "value": caches[1], "lengths": b.integers(start + count),
              "query_offset": b.integers(start)}
    attributes = {"causal": b.chance(0.8)}
    b.maybe(attributes, 0.2, "window_back", [1, 5, 17])
    y = b.node("attention", inputs, attributes)[0]
    y = b.node("transpose", {"input": y}, {"permutation": [0, 2, 1, 3]})[0]
    y = b.node("reshape", {"input": y}, {"shape": [batch, rows, n_heads * width]})[0]
    b.node("linear", {"input": y, "weight": b.weight("f32", model_width, n_heads * width), "residual": x})


def kv_write(b: GraphBuilder) -> None:
    """A new input written into a cache, and perhaps read by attention."""
    cache_type = b.pick(["f32", "f16", "q8_0"])
    batch, n_kv_heads, rows = b.pick([1, 2]), b.pick([1, 2, 3]), b.pick([1, 2, 7, 16])
    width = b.pick([32, 64, 96]) if cache_type == "q8_0" else b.pick([1, 7, 16, 31, 64])
    n_keys = rows + b.pick([0, 1, 30, 64])
    written, start, count = cache_rows(b, batch, rows, n_keys)
    update_shape = [batch, n_kv_heads, rows, width]
    values = random_weights.q8_0_grid(b.rng, update_shape) if cache_type == "q8_0" else b.rng.standard_normal(update_shape)
    cache = cache_input(b, cache_type, [batch, n_kv_heads, n_keys, width], start)
    b.node("kv_write", {"cache": cache, "update": b.exact_floats(values), **written}, n_outputs=0)
    if b.chance(0.6):
        query = b.like([batch, n_kv_heads * b.pick([1, 2]), rows, width])
        b.node("attention", {"query": query, "key": cache, "value": cache, "lengths": b.integers(start + count),
                             "query_offset": b.integers(start)}, {"causal": b.chance(0.7)})


def norm_linear(b: GraphBuilder) -> None:
    type_name = weight_type(b)
    x = b.activation((2, 3), multiple=block_width(type_name))
    linear_of(b, rms_norm_of(b, x), type_name, b.pick(SIZES))


MOVES: list[tuple[Callable[[GraphBuilder], object], float]] = [
    (unary, 3), (binary, 3), (glu, 1), (linear, 4), (matmul, 2), (embedding, 1), (patch_embed, 0.5), (softmax, 1.5),
    (layer_norm, 1), (rms_norm, 1), (rope, 1), (sinusoidal_positions, 0.5), (concat, 1), (slice_, 1.5), (transpose, 1.5),
    (reshape, 1), (pad, 0.7), (reduce, 1), (select, 1.2), (attention, 5), (feed_forward, 1.5), (mixture_of_experts, 1), (kv_write, 1), (norm_linear, 1)]


def add_move(b: GraphBuilder) -> None:
    """Adds one move. Raises Unfit as GraphBuilder's functions do."""
    if not b.description["nodes"] and b.chance(0.12):
        self_attention(b)
        return
    weights = np.array([weight for _, weight in MOVES])
    MOVES[int(b.rng.choice(len(MOVES), p=weights / weights.sum()))][0](b)
