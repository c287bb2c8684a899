"""Random but valid weights for random graphs, in every type that a graph file knows."""
import math

import numpy as np

import tensor_files
from tensor_files import BLOCK_FORMATS, Tensor

QUANTISED_DEVIATION = 0.25  # of the values; smaller ones would push block scales below float16's normal numbers

# By type: the values' spread in units of d, for uniformly random quants and scales; for types with a minimum also the
# minimum, as (multiple of -d that centres the values) or the spread in units of dmin.
SPREAD = {"q8_0": 74, "q4_0": 4.6, "q4_1": 4.6, "q5_0": 9.2, "q5_1": 9.2, "iq4_nl": 68,
          "q2_k": 13, "q3_k": 45, "q4_k": 280, "q5_k": 580, "q6_k": 1400}
CENTRE = {"q4_1": 7.5, "q5_1": 15.5}
MINIMUM_SPREAD = {"q2_k": 8, "q4_k": 36, "q5_k": 36}
# Byte offsets of float16 fields.
SCALE_AT = {"q2_k": 80, "q3_k": 108, "q6_k": 208}
MINIMUM_AT = {"q4_1": 2, "q5_1": 2, "q2_k": 82, "q4_k": 2, "q5_k": 2}
WEIGHT_TYPES = ["f32", "f16", "bf16", *BLOCK_FORMATS]


def put_half(blocks: np.ndarray, at: int, values: np.ndarray) -> None:
    blocks[:, at:at + 2] = values.astype("<f2").view(np.uint8).reshape(-1, 2)


def random_blocks(rng: np.random.Generator, type_name: str, rows: int, width: int) -> np.ndarray:
    """Rows of quantised blocks as U8: any bits for quants and for the scales inside a block, sane values for the
    float16 fields and for MXFP4's exponent."""
    block = BLOCK_FORMATS[type_name]
    data = rng.integers(0, 256, (rows * width // block.n_values, block.n_bytes), np.uint8)
    factor = rng.uniform(0.5, 1.5, len(data))
    if type_name == "mxfp4":
        data[:, 0] = 127 + int(math.log2(QUANTISED_DEVIATION)) - 2 + rng.integers(-1, 2, len(data))
        return data.reshape(rows, -1)
    d = factor * QUANTISED_DEVIATION / SPREAD[type_name]
    if type_name in CENTRE:
        put_half(data, MINIMUM_AT[type_name], -CENTRE[type_name] * d * rng.uniform(0.9, 1.1, len(data)))
    elif type_name in MINIMUM_SPREAD:
        deviation = QUANTISED_DEVIATION / MINIMUM_SPREAD[type_name]
        put_half(data, MINIMUM_AT[type_name], rng.uniform(0.5, 1.5, len(data)) * deviation)
    else:
        d *= rng.choice([-1, 1], len(data))
    put_half(data, SCALE_AT.get(type_name, 0), d)
    return data.reshape(rows, -1)


def random_weight(rng: np.random.Generator, type_name: str, rows: int, width: int) -> Tensor:
    """A weight (rows, width) as a file stores it; float types with deviation 1 / sqrt(width)."""
    if type_name in BLOCK_FORMATS:
        return Tensor("U8", random_blocks(rng, type_name, rows, width))
    values = (rng.standard_normal((rows, width)) / math.sqrt(width)).astype(np.float32)
    if type_name == "bf16":
        return Tensor("BF16", tensor_files.bf16_bits(values))
    return Tensor(type_name.upper(), values.astype(tensor_files.DTYPES[type_name.upper()]))


def random_cache(rng: np.random.Generator, type_name: str, shape: list[int]) -> Tensor:
    """Keys, values or a cache (B, G, S, D) of f32, f16 or q8_0, with deviation 1."""
    values = rng.standard_normal(shape).astype(np.float32)
    if type_name == "q8_0":
        return Tensor("U8", tensor_files.encode_q8_0(values))
    return Tensor(type_name.upper(), values.astype(tensor_files.DTYPES[type_name.upper()]))


def q8_0_grid(rng: np.random.Generator, shape: list[int]) -> np.ndarray:
    """Values that q8_0 holds exactly, however its scale is computed: multiples of a power of two, up to 127 of them."""
    width = shape[-1]
    values = rng.integers(-127, 128, shape).astype(np.float32)
    values[..., ::32] = 127 * rng.choice([-1, 1], values[..., ::32].shape)
    exponents = rng.integers(-8, -5, (*shape[:-1], -(-width // 32)))
    return (values * np.exp2(np.repeat(exponents, 32, axis=-1)[..., :width])).astype(np.float32)


def poison(type_name: str, keys: Tensor, lengths: np.ndarray, value: float) -> Tensor:
    """Keys, values or a cache with `value` in every row from the sequence's length on: what must not leak from there."""
    array = keys.array.copy()
    for batch, length in enumerate(lengths):
        rows = np.ascontiguousarray(array[batch, :, length:])
        if type_name == "q8_0":
            blocks = rows.reshape(-1, BLOCK_FORMATS["q8_0"].n_bytes)
            put_half(blocks, 0, np.full(len(blocks), value))
        else:
            rows[...] = value
        array[batch, :, length:] = rows
    return Tensor(keys.dtype, array)
