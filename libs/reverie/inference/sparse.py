"""Texts to weighted words: a learned sparse model, which names words that a text does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.inference.catalogue import SPARSE_MODEL, Model, known
from reverie.inference.fetch import Progress
from reverie.inference.meters import ModelMeters
from reverie.inference.resolver import resolve
from reverie.inference.runner import ALONE, MAX_WAITING, Runner
from reverie.inference.tokens import ModelTokenCounter

Words = Mapping[int, float]
"""Weights above 0 by the word's number in the model's vocabulary."""

TEXT_WORDS = 100
QUERY_WORDS = 32


class SparseEncoder(Protocol):
    """Turns texts into weighted words. Texts close in meaning have a high inner product."""

    @property
    def name(self) -> str:
        """The model's name: weights of two names must never be compared."""
        ...

    async def encode(self, texts: Sequence[str], most: int = TEXT_WORDS) -> list[Words]:
        """The `most` heaviest words of each text, in the order of the texts.

        Raises `Unavailable` where the model cannot take the texts now.
        """
        ...


class OnnxSparse:
    """A sparse model run by onnxruntime in one thread of its own: see `Runner`."""

    def __init__(
        self, model: Model, folder: Path, threads: int = 1, max_waiting: int = MAX_WAITING
    ) -> None:
        self.name = model.name
        graph = folder / model.graph
        self._runner = Runner(model.name, graph, model.max_tokens, threads, max_waiting, ALONE)

    @property
    def counter(self) -> ModelTokenCounter:
        """The token counter of this model."""
        return self._runner.counter

    def count_by(self, meters: ModelMeters) -> None:
        """From now on its calls are counted there."""
        self._runner.meters = meters

    async def encode(self, texts: Sequence[str], most: int = TEXT_WORDS) -> list[Words]:
        """The `most` heaviest words of each text. Raises `Unavailable` when overrun."""
        if not texts:
            return []
        return [_heaviest(row, most) for row in await self._runner.run(texts)]

    async def warm(self) -> None:
        """Runs the model once, so that the first caller does not wait for its set-up."""
        await self.encode(["warm"])

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        self._runner.close()


def load_sparse(
    name: str = SPARSE_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxSparse:
    """The sparse model of that name, its files fetched where they must be. Blocks while loading.

    Raises as `resolver.resolve` does.
    """
    place = resolve(name, home, folder, progress, download=download)
    return OnnxSparse(known(name), place, threads)


def _heaviest(weights: NDArray[np.float32], most: int) -> Words:
    """The heaviest words, of two that weigh the same the one with the lower number."""
    there = np.flatnonzero(weights > 0)
    best = there[np.argsort(-weights[there], kind="stable")[:most]]
    return {int(word): float(weights[word]) for word in np.sort(best)}
