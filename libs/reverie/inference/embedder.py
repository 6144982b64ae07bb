"""Texts to vectors: the port, and the model that runs on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.inference.catalogue import DEFAULT_MODEL, Model, known
from reverie.inference.fetch import Progress
from reverie.inference.resolver import resolve
from reverie.inference.runner import MAX_WAITING, Runner
from reverie.inference.tokens import ModelTokenCounter

Vectors = NDArray[np.float32]


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
        """float32 (len(texts), dims), rows of length 1, in the order of the texts.

        Raises `Unavailable` where the model cannot take the texts now.
        """
        ...


class OnnxEmbedder:
    """A model run by onnxruntime in one thread of its own, off the event loop: see `Runner`."""

    def __init__(
        self, model: Model, folder: Path, threads: int = 1, max_waiting: int = MAX_WAITING
    ) -> None:
        self.name = model.name
        self.dims = model.dims
        graph = folder / model.graph
        self._runner = Runner(model.name, graph, model.max_tokens, threads, max_waiting)

    @property
    def counter(self) -> ModelTokenCounter:
        """The token counter of this model."""
        return self._runner.counter

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1. Raises `Unavailable` when overrun."""
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        # The first token ([CLS]) stands for the text in the BGE models.
        return _normalised(np.stack([hidden[0] for hidden in await self._runner.run(texts)]))

    async def warm(self) -> None:
        """Runs the model once, so that the first caller does not wait for its set-up."""
        await self.embed(["warm"])

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        self._runner.close()


def load_embedder(
    name: str = DEFAULT_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxEmbedder:
    """The embedder of that name, its files fetched where they must be. Blocks while loading.

    Raises as `resolver.resolve` does.
    """
    place = resolve(name, home, folder, progress, download=download)
    return OnnxEmbedder(known(name), place, threads)


def _normalised(vectors: NDArray[Any]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled
