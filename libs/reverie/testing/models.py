"""The real models for tests: fetched once into a folder outside any home."""

from __future__ import annotations

import os
import tempfile
import threading
from functools import cache
from pathlib import Path

from reverie.inference.catalogue import DEFAULT_MODEL, SPARSE_MODEL
from reverie.inference.embedder import OnnxEmbedder, load_embedder
from reverie.inference.fetch import Progress
from reverie.inference.resolver import resolve
from reverie.inference.sparse import OnnxSparse, load_sparse

Asked = tuple[str, Path, Path | None, int]

_LOADED: dict[Asked, OnnxEmbedder] = {}
_SPARSE: dict[Asked, OnnxSparse] = {}
_LOADING = threading.Lock()


def model_home(*names: str) -> Path:
    """A home folder whose `models/<name>` hold verified models, fetched where they must be.

    `names`: which; the default model and the sparse one where none is named.

    `REVERIE_TEST_MODELS`, else `reverie-test-models` in the system's folder for temporary files.
    Hand `model_home() / "models"` to a service as its models folder. Raises `Unavailable` where
    no place gives the files.
    """
    default = Path(tempfile.gettempdir()) / "reverie-test-models"
    home = Path(os.environ.get("REVERIE_TEST_MODELS") or default)
    for name in names or (DEFAULT_MODEL, SPARSE_MODEL):
        _resolved(name, home)
    return home


@cache
def _resolved(name: str, home: Path) -> Path:
    """`resolve`, which hashes every file, once a process."""
    return resolve(name, home)


def loaded_once(
    name: str = DEFAULT_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxEmbedder:
    """`load_embedder`, with one model a process for each way to ask; it is never closed."""
    asked = (name, home, folder, threads)
    with _LOADING:
        if asked not in _LOADED:
            _LOADED[asked] = load_embedder(*asked, progress, download=download)
        return _LOADED[asked]


def sparse_once(
    name: str = SPARSE_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxSparse:
    """`load_sparse` in the same way."""
    asked = (name, home, folder, threads)
    with _LOADING:
        if asked not in _SPARSE:
            _SPARSE[asked] = load_sparse(*asked, progress, download=download)
        return _SPARSE[asked]
