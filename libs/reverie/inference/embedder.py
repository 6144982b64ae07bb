"""The embedder interface, the local ONNX embedder, and an LRU cache of vectors around either."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from reverie.inference.model_catalogue import DEFAULT_MODEL, ModelSpec, get_model_spec
from reverie.inference.model_download import Progress
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.inference.model_resolver import resolve_model
from reverie.inference.onnx_runner import (
    CUSTOM_GRAPH,
    MAX_WAITING_CALLS,
    NO_BATCHING,
    OnnxModel,
    OnnxRunner,
    Pooling,
    load_custom_profile,
)

Vectors = NDArray[np.float32]


def normalize_rows(vectors: NDArray[Any]) -> Vectors:
    """Each row at length 1; a row of zeros as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled


class Embedder(Protocol):
    """Turns texts into vectors. Texts close in meaning get vectors with a high inner product."""

    @property
    def name(self) -> str:
        """The model's name: vectors of two names must never be compared."""
        ...

    @property
    def dims(self) -> int:
        """Length of each vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Returns float32 (len(texts), dims), rows of length 1, in the order of the texts.

        Raises `Unavailable` if the model cannot process the texts now.
        """
        ...


class OnnxEmbedder(OnnxModel):
    """A dense model run by onnxruntime."""

    def __init__(self, name: str, runner: OnnxRunner, dims: int, pooling: Pooling) -> None:
        super().__init__(name, runner)
        self.dims, self._pooling = dims, pooling

    @classmethod
    def from_spec(
        cls, model: ModelSpec, folder: Path, threads: int = 1, max_waiting: int = MAX_WAITING_CALLS
    ) -> OnnxEmbedder:
        """Creates the embedder of a known model from its folder."""
        graph = folder / model.graph_file
        runner = OnnxRunner(model.name, graph, model.max_tokens, threads, max_waiting, NO_BATCHING)
        return cls(model.name, runner, model.dims, model.pooling)

    @classmethod
    def from_folder(cls, name: str, folder: Path, threads: int = 1) -> OnnxEmbedder:
        """A custom model: `model.onnx` and `tokenizer.json` in a folder.

        An optional `profile.json` sets `pooling` (cls, or mean by default) and `max_tokens` (512 by
        default). Raises `Misconfigured`.
        """
        profile = load_custom_profile(folder, "embedding_model")
        graph = folder / CUSTOM_GRAPH
        runner = OnnxRunner(name, graph, profile.max_tokens, threads, batch_tokens=NO_BATCHING)
        return cls(name, runner, runner.load(), profile.pooling)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1. Raises `Unavailable` when overrun."""
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        rows = await self._runner.run(texts)
        # In the BGE models, the first token ([CLS]) represents the text.
        return normalize_rows(
            np.stack([row[0] if self._pooling == "cls" else row.mean(0) for row in rows])
        )


def load_embedder(
    name: str = DEFAULT_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxEmbedder:
    """Returns the embedder of that name; downloads its files if needed. Blocks while loading.

    Raises as `resolve_model` does.
    """
    model_folder = resolve_model(name, home, folder, progress, download=download)
    return OnnxEmbedder.from_spec(get_model_spec(name), model_folder, threads)


DEFAULT_CACHED_TEXTS = 2048
_MAX_KEY_CHARS = 4096


class CachedEmbedder:
    """Caches the vectors of the `size` texts used last (1.5 KiB each at 384 dimensions).

    Texts over 4,096 characters are not cached.
    """

    def __init__(
        self,
        inner: Embedder,
        size: int = DEFAULT_CACHED_TEXTS,
        metrics: ModelMetrics = UNREGISTERED_METRICS,
    ) -> None:
        self._inner = inner
        self._metrics = metrics
        self._vectors: LRUCache[str, Vectors] = LRUCache(size)

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self._inner.name

    @property
    def dims(self) -> int:
        """The inner model's vector length."""
        return self._inner.dims

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """As the inner embedder, which gets only the texts that are not cached."""
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
        self._metrics.count_cached(self.name, len(vectors))
        missing = list(dict.fromkeys(text for text in texts if text not in vectors))
        if missing:
            vectors |= zip(missing, await self._inner.embed(missing), strict=True)
            for text in missing:
                if len(text) <= _MAX_KEY_CHARS:
                    self._vectors[text] = vectors[text].copy()
        return np.stack([vectors[text] for text in texts])
