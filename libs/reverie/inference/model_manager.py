"""Loads a process's models in the background and hands out those that are ready."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import structlog

from reverie.domain.core.errors import ReverieError, Unavailable
from reverie.inference.embedder import (
    DEFAULT_CACHED_TEXTS,
    CachedEmbedder,
    Embedder,
    OnnxEmbedder,
    load_embedder,
)
from reverie.inference.embedding_endpoint import EmbeddingEndpoint, EndpointEmbedder
from reverie.inference.model_catalogue import MODELS, SPARSE_MODEL
from reverie.inference.model_metrics import UNREGISTERED_METRICS, ModelMetrics
from reverie.inference.model_resolver import resolve_model
from reverie.inference.sparse_encoder import SparseEncoder, load_sparse_encoder
from reverie.inference.token_counters import EstimatingTokenCounter, ModelTokenCounter, TokenCounter

log = structlog.get_logger("reverie.inference")

RETRY_SECONDS = 60.0
PROBE_TEXT = "The same text gives the same vector, or the model is another."
MIN_PROBE_SIMILARITY = 0.98
"""Cosine: int8 kernels round a little differently from machine to machine."""

SparseMode = Literal["auto", "on", "off"]
"""Whether a sparse model is used: where it can be had at the start, in any case, or never."""


class ModelManager:
    """Holds the models once they are there. Without them, services work on words alone.

    `release_after`: seconds without a call after which a model leaves memory until the next call.
    """

    def __init__(
        self,
        name: str,
        home: Path,
        folder: Path | None,
        threads: int,
        download: bool,
        sparse_mode: SparseMode = "off",
        endpoint: EmbeddingEndpoint | None = None,
        metrics: ModelMetrics = UNREGISTERED_METRICS,
        cached_texts: int = DEFAULT_CACHED_TEXTS,
    ):
        self._name = name
        self._home = home
        self._folder = folder
        self._threads = threads
        self._download = download
        self._sparse_mode = sparse_mode
        self._endpoint = endpoint
        self._metrics = metrics
        self._cached_texts = cached_texts
        self.release_after: float | None = None
        self._first_attempt_done = asyncio.Event()
        self._load_requested = asyncio.Event()
        self._open_lock = asyncio.Lock()
        self._verified: set[str] = set()
        self._other_embedders: dict[str, Embedder | None] = {}
        self._counters: dict[str, TokenCounter] = {}
        self.embedder: Embedder | None = None
        self.sparse_encoder: SparseEncoder | None = None
        self.counter: TokenCounter = EstimatingTokenCounter()
        self.sparse_counter: TokenCounter = EstimatingTokenCounter()

    def set_metrics(self, metrics: ModelMetrics) -> None:
        """Counts there what the models do; to be set before any is loaded."""
        self._metrics = metrics

    async def run_loading_loop(self) -> None:
        """Loads the models, again after a pause where it fails; then rests. A background task."""
        try:
            await self._load_missing()
        finally:
            self._first_attempt_done.set()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._load_requested.wait(), RETRY_SECONDS if self._is_incomplete else None
                )
            self._load_requested.clear()
            await self._load_missing()

    async def load_token_counter(self) -> None:
        """Loads only what counts tokens: for a process that embeds nothing. A background task."""
        try:
            if self._endpoint is None and self._name in MODELS:
                arguments = (self._name, self._home, self._folder)
                model_folder = await asyncio.to_thread(
                    resolve_model, *arguments, download=self._download
                )
                self.counter = await asyncio.to_thread(ModelTokenCounter.load, model_folder)
        except ReverieError as error:
            log.warning("model_missing", model=self._name, reason=str(error))
        finally:
            self._first_attempt_done.set()

    @property
    def _is_incomplete(self) -> bool:
        return (
            self.embedder is None
            or self._is_sparse_missing
            or None in self._other_embedders.values()
        )

    async def _load_missing(self) -> None:
        if self.embedder is None:
            self.embedder = await self._try_open(self._name)
        for name in [name for name, embedder in self._other_embedders.items() if embedder is None]:
            async with self._open_lock:
                if self._find_loaded(name) is None:
                    self._other_embedders[name] = await self._try_open(name)
        if self.sparse_encoder is None and (
            self._is_sparse_missing or not self._first_attempt_done.is_set()
        ):
            try:
                await self._load_sparse()
            except ReverieError as error:
                if self._is_sparse_missing:
                    self._metrics.set_loaded(SPARSE_MODEL, False)
                log.warning("model_missing", model=SPARSE_MODEL, reason=str(error))

    async def _try_open(self, name: str) -> Embedder | None:
        embedder: Embedder | None = None
        try:
            embedder = self._with_cache(await self._open_embedder(name))
        except ReverieError as error:
            log.warning("model_missing", model=name, reason=str(error))
        except Exception:  # a folder of one's own may hold anything
            log.exception("model_broken", model=name)
        self._metrics.set_loaded(name, embedder is not None)
        return embedder

    def _with_cache(self, inner: Embedder) -> Embedder:
        return CachedEmbedder(inner, self._cached_texts, self._metrics)

    async def _open_embedder(self, name: str) -> Embedder:
        if self._endpoint is not None and name == self._name:
            remote = EndpointEmbedder(name, self._endpoint)
            remote.set_metrics(self._metrics)
            return remote
        if name in MODELS:
            arguments = (name, self._home, self._folder, self._threads)
            loaded = await asyncio.to_thread(load_embedder, *arguments, download=self._download)
        else:
            model_folder = (self._folder or self._home / "models") / name
            loaded = await asyncio.to_thread(
                OnnxEmbedder.from_folder, name, model_folder, self._threads
            )
        loaded.release_when_idle(self.release_after)
        await loaded.warm()
        loaded.set_metrics(self._metrics)
        self._counters[name] = loaded.counter
        if name == self._name:
            self.counter = loaded.counter
        return loaded

    async def _load_sparse(self) -> None:
        if self._sparse_mode == "off":
            return
        loaded = await asyncio.to_thread(
            load_sparse_encoder,
            SPARSE_MODEL,
            self._home,
            self._folder,
            self._threads,
            download=self._download,
        )
        loaded.release_when_idle(self.release_after)
        await loaded.warm()
        loaded.set_metrics(self._metrics)
        self._metrics.set_loaded(SPARSE_MODEL, True)
        self.sparse_counter = loaded.counter
        self.sparse_encoder = loaded

    @property
    def _is_sparse_missing(self) -> bool:
        return self._sparse_mode == "on" and self.sparse_encoder is None

    @property
    def uses_sparse(self) -> bool:
        """Whether the sparse model is to be asked: it is there, or it should be."""
        return self.sparse_encoder is not None or self._is_sparse_missing

    def get_state(self, name: str) -> Literal["ready", "loading", "missing"]:
        """Whether the embedder of that name is there, or may come yet."""
        if self._find_loaded(name) is not None:
            return "ready"
        return "missing" if self._first_attempt_done.is_set() else "loading"

    def is_endpoint_model(self, name: str) -> bool:
        """Whether the model answers elsewhere."""
        return self._endpoint is not None and name == self._name

    def get_embedder(self) -> Embedder:
        """The embedder. Raises `Unavailable` while there is none."""
        if self.embedder is None:
            raise Unavailable("the embedding model", "`reverie models pull` fetches it")
        return self.embedder

    def get_sparse_encoder(self) -> SparseEncoder:
        """The sparse model. Raises `Unavailable` while there is none."""
        if self.sparse_encoder is None:
            raise Unavailable(f"model {SPARSE_MODEL}", "`reverie models pull` fetches it")
        return self.sparse_encoder

    def get_counter(self, name: str) -> TokenCounter:
        """The counter of the model of that name; that of the one set, where it has none."""
        return self._counters.get(name, self.counter)

    def _find_loaded(self, name: str) -> Embedder | None:
        candidates = (self.embedder, self._other_embedders.get(name))
        return next(
            (embedder for embedder in candidates if embedder is not None and embedder.name == name),
            None,
        )

    def request_loading(self, name: str) -> None:
        """Has the embedder of that name loaded beside, where it is not there."""
        if name != self._name and name not in self._other_embedders:
            self._other_embedders[name] = None
            self._load_requested.set()

    def get_embedder_by_name(self, name: str) -> Embedder:
        """The embedder of that name, which a tenant goes by.

        Raises `Unavailable` while there is none; it is loaded beside then.
        """
        if (embedder := self._find_loaded(name)) is not None:
            return embedder
        self.request_loading(name)
        raise Unavailable(f"model {name}", "it is being loaded, or no place gives it")

    async def get_verified_embedder(self, name: str, probe: Sequence[float]) -> Embedder:
        """`get_embedder_by_name`, once it says of the probe text what it said when its vectors
        were made.
        """
        embedder = self.get_embedder_by_name(name)
        if probe and name not in self._verified:
            [vector] = await embedder.embed([PROBE_TEXT])
            if (
                len(probe) != embedder.dims
                or float(vector @ np.asarray(probe, np.float32)) < MIN_PROBE_SIMILARITY
            ):
                hint = "it is not what made its vectors: give it a name of its own, and reembed"
                raise Unavailable(f"model {name}", hint)
            self._verified.add(name)
        return embedder

    async def load_now(self, name: str) -> Embedder:
        """The embedder of that name, loaded now where it must be. Raises as loading does."""
        async with self._open_lock:
            if self._find_loaded(name) is None:
                self._other_embedders[name] = self._with_cache(await self._open_embedder(name))
        return self.get_embedder_by_name(name)

    async def wait_for_first_attempt(self) -> None:
        """Waits for the end of the first try to load."""
        await self._first_attempt_done.wait()

    async def check_first_attempt(self) -> None:
        """Raises `Unavailable` while the first try to load goes on."""
        if not self._first_attempt_done.is_set():
            raise Unavailable("the embedding model", "it is being loaded")
