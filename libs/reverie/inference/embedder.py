"""Texts to vectors: the port, and the model that runs on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from reverie.inference.catalogue import DEFAULT_MODEL, Model, known
from reverie.inference.fetch import Progress
from reverie.inference.meters import ModelMeters
from reverie.inference.own import OWN_GRAPH, Pooling, own_profile
from reverie.inference.resolver import resolve
from reverie.inference.runner import ALONE, MAX_WAITING, Runner
from reverie.inference.tokens import ModelTokenCounter
from reverie.inference.vectors import Vectors, normalised


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
        graph = folder / model.graph
        runner = Runner(model.name, graph, model.max_tokens, threads, max_waiting, ALONE)
        self._set(model.name, runner, model.dims, model.pooling)

    @classmethod
    def local(cls, name: str, folder: Path, threads: int = 1) -> OnnxEmbedder:
        """A model of one's own: `model.onnx` and `tokenizer.json` in a folder.

        A `profile.json` beside them may say `pooling` (cls or mean; unset: mean) and `max_tokens`
        (unset: 512). Raises `Misconfigured`.
        """
        profile = own_profile(folder, "model")
        graph = folder / OWN_GRAPH
        runner = Runner(name, graph, profile.max_tokens, threads, batch_tokens=ALONE)
        made = cls.__new__(cls)
        made._set(name, runner, runner.width, profile.pooling)
        return made

    def _set(self, name: str, runner: Runner, dims: int, pooling: Pooling) -> None:
        self.name, self.dims, self._runner, self._pooling = name, dims, runner, pooling

    @property
    def counter(self) -> ModelTokenCounter:
        """The token counter of this model."""
        return self._runner.counter

    def count_by(self, meters: ModelMeters) -> None:
        """From now on its calls are counted there."""
        self._runner.meters = meters

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1. Raises `Unavailable` when overrun."""
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        rows = await self._runner.run(texts)
        # The first token ([CLS]) stands for the text in the BGE models.
        return normalised(np.stack([r[0] if self._pooling == "cls" else r.mean(0) for r in rows]))

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
