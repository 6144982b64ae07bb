"""Running a graph over texts: a thread of its own, small batches, callers that take turns."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reverie.domain.errors import Unavailable
from reverie.inference.meters import UNHEARD, ModelMeters
from reverie.inference.tokens import ModelTokenCounter, load_tokenizer

if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_BATCH_TEXTS = 8
MAX_BATCH_TOKENS = 2048
ALONE = 1
"""Tokens of a batch where texts are not run together: in 8 bits one gives other numbers beside
others, and the same text must always give the same."""
MAX_WAITING = 64
MAX_CHARS = 32_768

Rows = list[NDArray[np.float32]]
Text = str | tuple[str, str]
"""One text, or two that a graph reads together."""


class Runner:
    """A graph run by onnxruntime in one thread of its own, off the event loop.

    Texts are cut at `max_tokens` (and at `MAX_CHARS` before that). Calls share the thread turn by
    turn, of `MAX_BATCH_TEXTS` and `MAX_BATCH_TOKENS`, so that a query waits for one turn of a long
    call, not for all; a turn is run in batches of `batch_tokens`. More than `max_waiting` calls at
    once are refused with `Unavailable`.
    """

    def __init__(
        self,
        name: str,
        graph: Path,
        max_tokens: int,
        threads: int,
        max_waiting: int = MAX_WAITING,
        batch_tokens: int = MAX_BATCH_TOKENS,
    ) -> None:
        self._name = name
        self._max_tokens = max_tokens
        # Shared with the counter, for some take 300 MB: so texts are cut here, not by it.
        self._tokenizer = load_tokenizer(graph.parent)
        self._session = _open_session(graph, threads)
        self._inputs = {entry.name for entry in self._session.get_inputs()}
        self.counter = ModelTokenCounter(self._tokenizer)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"model-{name}")
        self._max_waiting = max_waiting
        self._batch_tokens = batch_tokens
        self._waiting = 0
        self.meters: ModelMeters = UNHEARD

    async def run(self, texts: Sequence[Text]) -> Rows:
        """What the graph's first output says of each text: for hidden states, (tokens, dims).

        Raises `Unavailable` when overrun.
        """
        if self._waiting >= self._max_waiting:
            self.meters.refused(self._name)
            raise Unavailable(f"model {self._name}", f"{self._waiting} calls are waiting for it")
        self._waiting += 1
        try:
            with self.meters.call(self._name, self._max_waiting):
                return await self._each(texts)
        finally:
            self._waiting -= 1

    @property
    def width(self) -> int:
        """Length of the vectors that the first output holds."""
        width = self._session.get_outputs()[0].shape[-1]
        return int(width)

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _each(self, texts: Sequence[Text]) -> Rows:
        encoded, turns, out = await self._in_thread(self._begun, list(texts))
        rows = dict(zip(turns[0], out, strict=True))
        for turn in turns[1:]:
            out = await self._in_thread(self._measured, [encoded[place] for place in turn])
            rows.update(zip(turn, out, strict=True))
        return [rows[place] for place in range(len(encoded))]

    def _begun(self, texts: list[Text]) -> tuple[list[_Tokens], list[list[int]], Rows]:
        """The texts in tokens, their turns, and what the first gave: a question goes but once."""
        encoded = self._encode(texts)
        turns = list(_batches(encoded, MAX_BATCH_TOKENS))
        return encoded, turns, self._measured([encoded[place] for place in turns[0]])

    async def _in_thread(self, work: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _encode(self, texts: list[Text]) -> list[_Tokens]:
        encoded = self._tokenizer.encode_batch([_bounded(text) for text in texts])
        return [_cut(one, self._max_tokens) for one in encoded]

    def _measured(self, rows: list[_Tokens]) -> Rows:
        """What a turn gives, batch by batch: its texts are sorted by length already."""
        out: Rows = []
        for batch in _batches(rows, self._batch_tokens):
            with self.meters.batch(self._name, len(batch)):
                out += self._run([rows[place] for place in batch])
        return out

    def _run(self, rows: list[_Tokens]) -> Rows:
        width = max(len(row.ids) for row in rows)
        feed = {
            "input_ids": _padded([row.ids for row in rows], width),
            "attention_mask": _padded([[1] * len(row.ids) for row in rows], width),
            "token_type_ids": _padded([row.types for row in rows], width),
        }
        wanted = {name: array for name, array in feed.items() if name in self._inputs}
        out = self._session.run(None, wanted)[0]
        if out.ndim < 3:
            return list(out)
        # What stands for padding says nothing of a text.
        return [one[: len(row.ids)] for one, row in zip(out, rows, strict=True)]


@dataclass(frozen=True)
class _Tokens:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: list[int]
    types: list[int]


def _cut(encoded: Encoding, most: int) -> _Tokens:
    """The tokens, the last ones but for the closing one left out where they are too many."""
    ids, types = encoded.ids, encoded.type_ids
    if len(ids) <= most:
        return _Tokens(ids, types)
    return _Tokens([*ids[: most - 1], ids[-1]], [*types[: most - 1], types[-1]])


def _bounded(text: Text) -> Text:
    if isinstance(text, str):
        return text[:MAX_CHARS]
    return text[0][:MAX_CHARS], text[1][:MAX_CHARS]


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


def _batches(encoded: Sequence[_Tokens], tokens: int) -> Iterator[list[int]]:
    """Places of texts of like length, at most `MAX_BATCH_TEXTS` and `tokens` a batch."""
    batch: list[int] = []
    for place in sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids)):
        width = len(encoded[place].ids)
        if batch and (len(batch) == MAX_BATCH_TEXTS or (len(batch) + 1) * width > tokens):
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
