"""A fake embedder, and the real models loaded once for all tests of a process."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from reverie.inference.embedder import OnnxEmbedder, Vectors, load_embedder
from reverie.inference.model_catalogue import DEFAULT_MODEL, SPARSE_MODEL
from reverie.inference.model_download import Progress
from reverie.inference.model_resolver import resolve_model
from reverie.inference.sparse_encoder import OnnxSparseEncoder, load_sparse_encoder

_WORD_PATTERN = re.compile(r"\w+")


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
        for word in _WORD_PATTERN.findall(text.lower()):
            digest = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
            row[digest % self.dims] += 1.0 if digest >> 63 else -1.0
        length = float(np.linalg.norm(row))
        if length == 0.0:
            row[0] = length = 1.0
        row /= length


ModelKey = tuple[str, Path, Path | None, int]

_EMBEDDERS: dict[ModelKey, OnnxEmbedder] = {}
_SPARSE_ENCODERS: dict[ModelKey, OnnxSparseEncoder] = {}
_LOADING_LOCK = threading.Lock()


def model_home(*names: str) -> Path:
    """Returns a home folder whose `models/<name>` contain verified models, downloaded if needed.

    `names`: which models; by default the default model and the sparse one. The folder is
    `REVERIE_TEST_MODELS`, else `reverie-test-models` in the system's folder for temporary files.
    Pass `model_home() / "models"` to a service as its models folder. Raises `Unavailable` if no
    source delivers the files.
    """
    default = Path(tempfile.gettempdir()) / "reverie-test-models"
    home = Path(os.environ.get("REVERIE_TEST_MODELS") or default)
    for name in names or (DEFAULT_MODEL, SPARSE_MODEL):
        _resolve_once(name, home)
    return home


@cache
def _resolve_once(name: str, home: Path) -> Path:
    """`resolve_model`, which hashes every file, once a process."""
    return resolve_model(name, home)


def load_embedder_once(
    name: str = DEFAULT_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxEmbedder:
    """`load_embedder`, with one model a process for each way to ask; it is never closed."""
    model_key = (name, home, folder, threads)
    with _LOADING_LOCK:
        if model_key not in _EMBEDDERS:
            _EMBEDDERS[model_key] = load_embedder(*model_key, progress, download=download)
        return _EMBEDDERS[model_key]


def load_sparse_encoder_once(
    name: str = SPARSE_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxSparseEncoder:
    """`load_sparse_encoder` in the same way."""
    model_key = (name, home, folder, threads)
    with _LOADING_LOCK:
        if model_key not in _SPARSE_ENCODERS:
            _SPARSE_ENCODERS[model_key] = load_sparse_encoder(
                *model_key, progress, download=download
            )
        return _SPARSE_ENCODERS[model_key]
