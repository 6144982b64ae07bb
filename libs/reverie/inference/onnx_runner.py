"""Runs an ONNX graph over texts in one thread, in small batches; loads custom model folders."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from reverie.domain.core.errors import Misconfigured, Unavailable
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.inference.token_counters import ModelTokenCounter

Pooling = Literal["cls", "mean"]
CUSTOM_GRAPH = "model.onnx"


class CustomModelProfile(BaseModel):
    """The profile of a custom model from `profile.json` in its folder; these defaults apply without
    it."""

    pooling: Pooling = "mean"
    max_tokens: int = Field(512, ge=8, le=32_768)


def load_custom_profile(folder: Path, setting: str) -> CustomModelProfile:
    """Reads the folder's profile.

    Raises `Misconfigured` naming the setting if files are missing.
    """
    missing = [name for name in (CUSTOM_GRAPH, "tokenizer.json") if not (folder / name).is_file()]
    if missing:
        raise Misconfigured(setting, f"{folder} has no {' and no '.join(missing)}")
    path = folder / "profile.json"
    try:
        return CustomModelProfile.model_validate_json(
            path.read_bytes() if path.is_file() else b"{}"
        )
    except (OSError, ValidationError) as error:
        raise Misconfigured(setting, f"{path} says no pooling (cls, mean) or max_tokens") from error


if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_BATCH_TEXTS = 8
MAX_BATCH_TOKENS = 2048
NO_BATCHING = 1
"""Tokens of a batch without mixing texts.

In 8 bits, a text gives different numbers in different batches, but the same text must always give
the same. A batch is no faster either: a processor reads 24 texts of 50 to 300 tokens sooner one by
one.
"""
MAX_WAITING_CALLS = 64
MAX_CHARS = 32_768

OutputRows = list[NDArray[np.float32]]
InputText = str | tuple[str, str]
"""One text, or two that a graph reads together."""


class OnnxRunner:
    """A graph run by onnxruntime in one thread of its own, off the event loop.

    Texts are cut at `max_tokens` (and at `MAX_CHARS` before that). Calls share the thread turn by
    turn, of `MAX_BATCH_TEXTS` and `MAX_BATCH_TOKENS`, so that a query waits for one turn of a long
    call, not for all; a turn is run in batches of `batch_tokens`. More than `max_waiting` calls at
    once are refused with `Unavailable`.

    The first call loads the graph and the tokenizer, unless `load` did. With `release_after` set,
    the graph leaves memory after so many seconds without a call, and the next call loads it again.
    """

    def __init__(
        self,
        name: str,
        graph: Path,
        max_tokens: int,
        threads: int,
        max_waiting: int = MAX_WAITING_CALLS,
        batch_tokens: int = MAX_BATCH_TOKENS,
    ) -> None:
        self._name = name
        self._max_tokens = max_tokens
        # Its tokenizer is used here too, so texts are cut here and not by it.
        self.counter = ModelTokenCounter(graph.parent)
        self._open = partial(_open_session, graph, threads)
        self._session: Any = None
        self._release_timer: asyncio.TimerHandle | None = None
        self.release_after: float | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"model-{name}")
        self._max_waiting = max_waiting
        self._batch_tokens = batch_tokens
        self._waiting = 0
        self.metrics: ModelMetrics = UNREGISTERED_METRICS

    async def run(self, texts: Sequence[InputText]) -> OutputRows:
        """Returns the graph's first output for each text: for hidden states, (tokens, dims).

        Raises `Unavailable` when overloaded.
        """
        if self._waiting >= self._max_waiting:
            self.metrics.count_refused(self._name)
            raise Unavailable(f"model {self._name}", f"{self._waiting} calls are waiting for it")
        self._waiting += 1
        try:
            with self.metrics.track_call(self._name, self._max_waiting):
                return await self._run_turns(texts)
        finally:
            self._waiting -= 1
            self._schedule_release()

    def load(self) -> int:
        """Loads the graph and the tokenizer; returns the length of the first output's vectors."""
        self._session = self._open()
        self.counter.count("warm")
        return int(self._session.get_outputs()[0].shape[-1])

    def _schedule_release(self) -> None:
        if self._release_timer is not None:
            self._release_timer.cancel()
        if self.release_after is not None:
            loop = asyncio.get_running_loop()
            # In the thread that runs it: nothing is running then.
            self._release_timer = loop.call_later(
                self.release_after, self._thread.submit, self._release
            )

    def _release(self) -> None:
        self._session = None

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        if self._release_timer is not None:
            self._release_timer.cancel()
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def _run_turns(self, texts: Sequence[InputText]) -> OutputRows:
        encoded, turns, outputs = await self._run_in_thread(self._run_first_turn, list(texts))
        rows = dict(zip(turns[0], outputs, strict=True))
        for turn in turns[1:]:
            outputs = await self._run_in_thread(self._run_turn, [encoded[index] for index in turn])
            rows.update(zip(turn, outputs, strict=True))
        return [rows[index] for index in range(len(encoded))]

    def _run_first_turn(
        self, texts: list[InputText]
    ) -> tuple[list[_TokenizedText], list[list[int]], OutputRows]:
        """The texts in tokens, their turns, and what the first gave: a question goes but once."""
        encodings = self.counter.tokenizer.encode_batch([_limit_chars(text) for text in texts])
        encoded = [_truncate(encoding, self._max_tokens) for encoding in encodings]
        turns = list(_split_batches(encoded, MAX_BATCH_TOKENS))
        return encoded, turns, self._run_turn([encoded[index] for index in turns[0]])

    async def _run_in_thread(self, function: Any, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def _run_turn(self, tokenized: list[_TokenizedText]) -> OutputRows:
        """Returns the output of a turn, batch by batch; its texts are already sorted by length."""
        outputs: OutputRows = []
        for batch in _split_batches(tokenized, self._batch_tokens):
            texts = [tokenized[index] for index in batch]
            with self.metrics.track_batch(self._name, len(batch)):
                outputs += self._run_batch(texts)
            self.metrics.count_tokens(self._name, sum(len(text.ids) for text in texts))
        return outputs

    def _run_batch(self, tokenized: list[_TokenizedText]) -> OutputRows:
        width = max(len(text.ids) for text in tokenized)
        feed = {
            "input_ids": _pad([text.ids for text in tokenized], width),
            "attention_mask": _pad([[1] * len(text.ids) for text in tokenized], width),
            "token_type_ids": _pad([text.types for text in tokenized], width),
        }
        if self._session is None:
            self._session = self._open()
        names = {entry.name for entry in self._session.get_inputs()}
        inputs = {name: array for name, array in feed.items() if name in names}
        output = self._session.run(None, inputs)[0]
        if output.ndim < 3:
            return list(output)
        # Padding contains no information about a text.
        return [vectors[: len(text.ids)] for vectors, text in zip(output, tokenized, strict=True)]


class OnnxModel:
    """A model of texts that a runner of its own runs."""

    def __init__(self, name: str, runner: OnnxRunner) -> None:
        self.name, self._runner = name, runner

    @property
    def counter(self) -> ModelTokenCounter:
        """The token counter of this model."""
        return self._runner.counter

    def set_metrics(self, metrics: ModelMetrics) -> None:
        """From now on its calls are counted there."""
        self._runner.metrics = metrics

    def release_when_idle(self, seconds: float | None) -> None:
        """Unloads the model after so many seconds without a call; None: never."""
        self._runner.release_after = seconds

    async def warm(self) -> None:
        """Runs the model once, so that the first caller does not wait for its set-up."""
        await self._runner.run(["warm"])

    def close(self) -> None:
        """Ends the thread; a batch under way is finished first."""
        self._runner.close()


@dataclass(frozen=True)
class _TokenizedText:
    """The numbers of a text's tokens, and of which of two texts each is."""

    ids: list[int]
    types: list[int]


def _truncate(encoded: Encoding, limit: int) -> _TokenizedText:
    """Truncates the tokens to the limit; the closing token is kept."""
    ids, types = encoded.ids, encoded.type_ids
    if len(ids) <= limit:
        return _TokenizedText(ids, types)
    return _TokenizedText([*ids[: limit - 1], ids[-1]], [*types[: limit - 1], types[-1]])


def _limit_chars(text: InputText) -> InputText:
    if isinstance(text, str):
        return text[:MAX_CHARS]
    return text[0][:MAX_CHARS], text[1][:MAX_CHARS]


def _open_session(path: Path, threads: int) -> Any:
    # Must be set before the import: else onnxruntime writes a device id and uses the network.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # With the arena on, one large batch keeps gigabytes permanently.
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _split_batches(encoded: Sequence[_TokenizedText], max_tokens: int) -> Iterator[list[int]]:
    """Places of texts of like length, at most `MAX_BATCH_TEXTS` and `max_tokens` a batch."""
    batch: list[int] = []
    for index in sorted(range(len(encoded)), key=lambda i: len(encoded[i].ids)):
        width = len(encoded[index].ids)
        if batch and (len(batch) == MAX_BATCH_TEXTS or (len(batch) + 1) * width > max_tokens):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _pad(rows: list[list[int]], width: int) -> NDArray[np.int64]:
    padded = np.zeros((len(rows), width), dtype=np.int64)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded
