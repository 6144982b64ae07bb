"""An embedder without a model: deterministic, fast, near for texts that share words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from reverie.inference.vectors import Vectors

_WORD = re.compile(r"\w+")


class FakeEmbedder:
    """Hashes a bag of words onto `dims` signed places and scales it to length 1."""

    def __init__(self, name: str = "fake", dims: int = 384) -> None:
        self.name = name
        self.dims = dims

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1, the same for the same words."""
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            self._fill(row, text)
        return vectors

    def _fill(self, row: Vectors, text: str) -> None:
        for word in _WORD.findall(text.lower()):
            digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
            row[digest % self.dims] += 1.0 if digest >> 63 else -1.0
        length = float(np.linalg.norm(row))
        if length == 0.0:
            row[0] = length = 1.0
        row /= length
