"""Encodes texts as weighted vocabulary words with a learned sparse model (SPLADE)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reverie.inference.model_catalogue import SPARSE_MODEL, ModelSpec, get_model_spec
from reverie.inference.model_download import Progress
from reverie.inference.model_resolver import resolve_model
from reverie.inference.onnx_runner import MAX_WAITING_CALLS, NO_BATCHING, OnnxModel, OnnxRunner

WordWeights = Mapping[int, float]
"""Weights above 0 by the word's number in the model's vocabulary."""

MAX_TEXT_WORDS = 100
MAX_QUERY_WORDS = 32


class OnnxSparseEncoder(OnnxModel):
    """A sparse model run by onnxruntime."""

    def __init__(
        self, model: ModelSpec, folder: Path, threads: int = 1, max_waiting: int = MAX_WAITING_CALLS
    ) -> None:
        graph = folder / model.graph_file
        runner = OnnxRunner(model.name, graph, model.max_tokens, threads, max_waiting, NO_BATCHING)
        super().__init__(model.name, runner)

    async def encode(self, texts: Sequence[str], limit: int = MAX_TEXT_WORDS) -> list[WordWeights]:
        """The `limit` heaviest words of each text. Raises `Unavailable` when overrun."""
        if not texts:
            return []
        return [_select_heaviest(row, limit) for row in await self._runner.run(texts)]


def load_sparse_encoder(
    name: str = SPARSE_MODEL,
    home: Path = Path(),
    folder: Path | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    *,
    download: bool = True,
) -> OnnxSparseEncoder:
    """Returns the sparse model of that name; downloads its files if needed. Blocks while loading.

    Raises as `resolve_model` does.
    """
    model_folder = resolve_model(name, home, folder, progress, download=download)
    return OnnxSparseEncoder(get_model_spec(name), model_folder, threads)


def _select_heaviest(weights: NDArray[np.float32], limit: int) -> WordWeights:
    """The heaviest words, of two that weigh the same the one with the lower number."""
    nonzero = np.flatnonzero(weights > 0)
    heaviest = nonzero[np.argsort(-weights[nonzero], kind="stable")[:limit]]
    return {int(word): float(weights[word]) for word in np.sort(heaviest)}
