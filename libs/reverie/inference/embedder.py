"""Texts to vectors: the port, and the model that runs on this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reverie.domain.errors import Unavailable
from reverie.inference.catalogue import DEFAULT_MODEL, Model, known
from reverie.inference.fetch import Progress
from reverie.inference.resolver import resolve
from reverie.inference.tokens import ModelTokenCounter, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding

Vectors = NDArray[np.float32]

MAX_BATCH_TEXTS = 8
MAX_BATCH_TOKENS = 2048
MAX_WAITING = 64
MAX_CHARS = 32_768


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
    """A model run by onnxruntime in one thread of its own, off the event loop.

    Texts are cut at the model's token limit (and at `MAX_CHARS` before that). Calls share the
    thread batch by batch, so that a query waits for one batch of a long call, not for all. More
    than `max_waiting` calls at once are refused with `Unavailable`.
    """

    def __init__(
        self, model: Model, folder: Path, threads: int = 1, max_waiting: int = MAX_WAITING
    ) -> None:
        self.name = model.name
        self.dims = model.dims
        self._tokenizer = load_tokenizer(folder)
        self._tokenizer.enable_truncation(model.max_tokens)
        self._session = _open_session(folder / model.files[0].name, threads)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self._counter = ModelTokenCounter.load(folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._max_waiting = max_waiting
        self._waiting = 0

    @property
    def counter(self) -> ModelTokenCounter:
        """The token counter of this model."""
        return self._counter

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """float32 (len(texts), dims), rows of length 1. Raises `Unavailable` when overrun."""
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        if not texts:
            return vectors
        if self._waiting >= self._max_waiting:
            raise Unavailable(f"model {self.name}", f"{self._waiting} calls are waiting for it")
        self._waiting += 1
        try:
            encoded = await self._in_thread(self._encode, list(texts))
            for batch in _batches(encoded):
                rows = [encoded[place] for place in batch]
                vectors[batch] = await self._in_thread(self._run, rows)
        finally:
            self._waiting -= 1
        return vectors

    async def warm(self) -> None:
        """Runs the model once, so that the first caller does not wait for its set-up."""
        await self.embed(["warm"])

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _encode(self, texts: list[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch([text[:MAX_CHARS] for text in texts])

    def _run(self, rows: list[Encoding]) -> Vectors:
        width = max(len(row.ids) for row in rows)
        feed = {
            "input_ids": _padded([row.ids for row in rows], width),
            "attention_mask": _padded([row.attention_mask for row in rows], width),
            "token_type_ids": _padded([row.type_ids for row in rows], width),
        }
        wanted = {name: array for name, array in feed.items() if name in self._inputs}
        hidden = self._session.run(None, wanted)[0]
        # The first token ([CLS]) stands for the text in the BGE models.
        return _normalised(hidden[:, 0])


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


def _open_session(path: Path, threads: int) -> Any:
    # Must stand before the import: else onnxruntime writes a device id and asks the network.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # With the arena on, one large batch keeps gigabytes for good.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _batches(encoded: Sequence[Encoding]) -> Iterator[list[int]]:
    """Places of texts of like length, at most `MAX_BATCH_TEXTS` and `MAX_BATCH_TOKENS` a batch."""
    batch: list[int] = []
    for place in sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids)):
        width = len(encoded[place].ids)
        if batch and (len(batch) == MAX_BATCH_TEXTS or (len(batch) + 1) * width > MAX_BATCH_TOKENS):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _padded(rows: list[list[int]], width: int) -> NDArray[np.int64]:
    out = np.zeros((len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        out[index, : len(row)] = row
    return out


def _normalised(vectors: NDArray[Any]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: Vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return scaled
