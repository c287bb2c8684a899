"""Tensors in files, for the oracle: safetensors, and the block formats of quantised weights.

A second opinion shares no code with the library, so both are written here from their descriptions: safetensors
(https://github.com/huggingface/safetensors, section "Format") and the blocks of GGUF (ggml's block_* structures, whose
fields are named below in their order in memory; MXFP4 also in "OCP Microscaling Formats (MX) Specification", v1.0).
"""
import json
import struct
from typing import Callable, NamedTuple, Optional

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?"}


class Tensor(NamedTuple):
    """What a safetensors file holds under one name; BF16 as the 16 bits of each value."""
    dtype: str
    array: np.ndarray


def read_safetensors(path: str) -> dict[str, Tensor]:
    """Every tensor of a file by name. Raises ValueError where the file is not what its header says."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 8:
        raise ValueError(f"{path}: {len(data)} bytes are too few for a safetensors file")
    (header_bytes,) = struct.unpack_from("<Q", data)
    payload = data[8 + header_bytes:]
    tensors = {}
    for name, entry in json.loads(data[8:8 + header_bytes]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"{path}: {name} is of type {entry['dtype']}, known are {', '.join(DTYPES)}")
        begin, end = entry["data_offsets"]
        array = np.frombuffer(payload[begin:end], DTYPES[entry["dtype"]])
        if array.size != int(np.prod(entry["shape"], dtype=np.int64)):
            raise ValueError(f"{path}: {name} has {array.size} elements, its shape says {entry['shape']}")
        tensors[name] = Tensor(entry["dtype"], array.reshape(entry["shape"]))
    return tensors


def write_safetensors(path: str, tensors: dict[str, Tensor], metadata: Optional[dict[str, str]] = None) -> None:
    """Writes tensors in the order of the dictionary, and texts by name if there are any."""
    header, payload = {"__metadata__": metadata} if metadata else {}, []
    offset = 0
    for name, (dtype, array) in tensors.items():
        data = np.ascontiguousarray(array, DTYPES[dtype]).tobytes()
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        payload.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(payload))


def bf16_values(bits: np.ndarray) -> np.ndarray:
    """bfloat16 is the upper half of a float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """The bfloat16 nearest each finite value, ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


# Block formats. Each function takes blocks as (n, bytes of a block) of U8 and gives (n, values of a block) in float64.

IQ4_NL_VALUES = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float64)
E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float64)


def half(blocks: np.ndarray, at: int) -> np.ndarray:
    """The float16 at a byte of each block, as a column."""
    return np.ascontiguousarray(blocks[:, at:at + 2]).view("<f2").astype(np.float64)


def nibbles(data: np.ndarray) -> np.ndarray:
    """All low nibbles of a block's bytes, then all high ones."""
    return np.concatenate([data & 15, data >> 4], axis=1).astype(np.int64)


def fifth_bits(blocks: np.ndarray, at: int) -> np.ndarray:
    """The 32 bits of `qh`, bit i belonging to value i, as 0 or 16."""
    return np.unpackbits(blocks[:, at:at + 4], axis=1, bitorder="little").astype(np.int64) * 16


def q8_0(blocks: np.ndarray) -> np.ndarray:
    """d, qs[32]"""
    return half(blocks, 0) * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)


def q4_0(blocks: np.ndarray) -> np.ndarray:
    """d, qs[16]"""
    return half(blocks, 0) * (nibbles(blocks[:, 2:]) - 8)


def q4_1(blocks: np.ndarray) -> np.ndarray:
    """d, m, qs[16]"""
    return half(blocks, 0) * nibbles(blocks[:, 4:]) + half(blocks, 2)


def q5_0(blocks: np.ndarray) -> np.ndarray:
    """d, qh[4], qs[16]"""
    return half(blocks, 0) * (nibbles(blocks[:, 6:]) + fifth_bits(blocks, 2) - 16)


def q5_1(blocks: np.ndarray) -> np.ndarray:
    """d, m, qh[4], qs[16]"""
    return half(blocks, 0) * (nibbles(blocks[:, 8:]) + fifth_bits(blocks, 4)) + half(blocks, 2)


def iq4_nl(blocks: np.ndarray) -> np.ndarray:
    """d, qs[16]"""
    return half(blocks, 0) * IQ4_NL_VALUES[nibbles(blocks[:, 2:])]


def mxfp4(blocks: np.ndarray) -> np.ndarray:
    """e (a power of two, biased by 127), qs[16] of E2M1"""
    return np.exp2(blocks[:, :1].astype(np.float64) - 127) * E2M1_VALUES[nibbles(blocks[:, 1:])]


def two_bit_planes(qs: np.ndarray) -> np.ndarray:
    """Value 128 h + 32 j + l is bits 2j and 2j+1 of byte 32 h + l: (n, 2, 4, 32)."""
    halves = qs.reshape(-1, 2, 1, 32)
    return ((halves >> np.array([0, 2, 4, 6]).reshape(4, 1)) & 3).astype(np.int64)


def by_sixteens(quants: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Quants times the scale of their group of 16: (n, 256)."""
    return (quants.reshape(-1, 16, 16) * scales.reshape(-1, 16, 1)).reshape(-1, 256)


def q2_k(blocks: np.ndarray) -> np.ndarray:
    """scales[16] (low nibble scale, high nibble minimum), qs[64], d, dmin"""
    scales, quants = blocks[:, :16].astype(np.int64), two_bit_planes(blocks[:, 16:80])
    minima = np.repeat(scales >> 4, 16, axis=1)
    return half(blocks, 80) * by_sixteens(quants, scales & 15) - half(blocks, 82) * minima


def q3_k(blocks: np.ndarray) -> np.ndarray:
    """hmask[32], qs[64], scales[12] (low 4 bits of 16 in 8 bytes, then their high 2 bits in 4), d"""
    bit = np.arange(8).reshape(2, 4, 1)
    high = (blocks[:, :32].reshape(-1, 1, 1, 32) >> bit) & 1
    quants = two_bit_planes(blocks[:, 32:96]) + 4 * high.astype(np.int64) - 4
    packed = blocks[:, 96:108]
    upper = (packed[:, None, 8:] >> np.array([0, 2, 4, 6]).reshape(4, 1)) & 3
    scales = nibbles(packed[:, :8]) + 16 * upper.reshape(-1, 16).astype(np.int64) - 32
    return half(blocks, 108) * by_sixteens(quants, scales)


def six_bit_pairs(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eight 6-bit scales and eight minima from 12 bytes: four of each whole, the upper two bits of the others above them."""
    low, middle, last = (packed[:, i:i + 4].astype(np.int64) for i in (0, 4, 8))
    scales = np.concatenate([low & 63, (last & 15) | (low >> 6 << 4)], axis=1)
    minima = np.concatenate([middle & 63, (last >> 4) | (middle >> 6 << 4)], axis=1)
    return scales, minima


def by_thirty_twos(blocks: np.ndarray, quants: np.ndarray) -> np.ndarray:
    """d, dmin, scales[12] at the block's begin, applied to quants (n, 8, 32)."""
    scales, minima = six_bit_pairs(blocks[:, 4:16])
    values = half(blocks, 0)[:, :, None] * (scales[:, :, None] * quants) - (half(blocks, 2) * minima)[:, :, None]
    return values.reshape(-1, 256)


def alternate_nibbles(qs: np.ndarray) -> np.ndarray:
    """Groups of 32 values: low nibbles of 32 bytes, then their high nibbles, and so on: (n, 8, 32)."""
    runs = qs.reshape(-1, 4, 32)
    return np.stack([runs & 15, runs >> 4], axis=2).reshape(-1, 8, 32).astype(np.int64)


def q4_k(blocks: np.ndarray) -> np.ndarray:
    """d, dmin, scales[12], qs[128]"""
    return by_thirty_twos(blocks, alternate_nibbles(blocks[:, 16:]))


def q5_k(blocks: np.ndarray) -> np.ndarray:
    """d, dmin, scales[12], qh[32] (bit g of byte l: value l of group g), qs[128]"""
    high = (blocks[:, 16:48].reshape(-1, 1, 32) >> np.arange(8).reshape(8, 1)) & 1
    return by_thirty_twos(blocks, alternate_nibbles(blocks[:, 48:]) + 16 * high.astype(np.int64))


def q6_k(blocks: np.ndarray) -> np.ndarray:
    """ql[128], qh[64], scales[16] (signed), d"""
    runs = blocks[:, :128].reshape(-1, 2, 64)
    low = np.concatenate([runs & 15, runs >> 4], axis=2).astype(np.int64).reshape(-1, 256)
    quants = low + 16 * two_bit_planes(blocks[:, 128:192]).reshape(-1, 256) - 32
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.int64)
    return half(blocks, 208) * by_sixteens(quants, scales)


class BlockFormat(NamedTuple):
    """A block's values and bytes, and the function from its bytes to its values."""
    n_values: int
    n_bytes: int
    decode: Callable[[np.ndarray], np.ndarray]

    def row_bytes(self, width: int) -> int:
        """Bytes of a row; a row that ends inside a block is padded to the block's end, as cache rows are."""
        return -(-width // self.n_values) * self.n_bytes


BLOCK_FORMATS = {
    "q8_0": BlockFormat(32, 34, q8_0), "q4_0": BlockFormat(32, 18, q4_0), "q4_1": BlockFormat(32, 20, q4_1),
    "q5_0": BlockFormat(32, 22, q5_0), "q5_1": BlockFormat(32, 24, q5_1), "iq4_nl": BlockFormat(32, 18, iq4_nl),
    "mxfp4": BlockFormat(32, 17, mxfp4), "q2_k": BlockFormat(256, 84, q2_k), "q3_k": BlockFormat(256, 110, q3_k),
    "q4_k": BlockFormat(256, 144, q4_k), "q5_k": BlockFormat(256, 176, q5_k), "q6_k": BlockFormat(256, 210, q6_k),
}


def decode_rows(type_name: str, data: np.ndarray, width: int) -> np.ndarray:
    """Rows of bytes (..., row_bytes) as float64 (..., width)."""
    block = BLOCK_FORMATS[type_name]
    values = block.decode(data.reshape(-1, block.n_bytes))
    padded = values.reshape(*data.shape[:-1], -1)
    return padded[..., :width]


def encode_q8_0(values: np.ndarray) -> np.ndarray:
    """Rows (..., width) as q8_0 bytes, padded with zeros to whole blocks.

    d = max|x| / 127 is kept as float16, and x / d is rounded to nearest even with d before that rounding, as ggml's
    quantize_row_q8_0_ref divides (which rounds ties away from zero).
    """
    width = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], -(-width // 32) * 32), np.float64)
    padded[..., :width] = values
    blocks = padded.reshape(-1, 32)
    d = np.abs(blocks).max(axis=1, keepdims=True) / 127
    quants = np.rint(np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0)).astype(np.int8)
    data = np.concatenate([d.astype("<f2").view(np.uint8), quants.view(np.uint8)], axis=1)
    return data.reshape(*values.shape[:-1], -1)
