"""Loads the models of a process in the background and hands out those that are loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
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
from reverie.inference.sparse_encoder import OnnxSparseEncoder, load_sparse_encoder
from reverie.inference.token_counters import EstimatingTokenCounter, ModelTokenCounter, TokenCounter

log = structlog.get_logger("reverie.inference")

RETRY_SECONDS = 60.0
PROBE_TEXT = "The same text gives the same vector, or the model is another."
MIN_PROBE_SIMILARITY = 0.98
"""Cosine: int8 kernels round a little differently from machine to machine."""

SparseMode = Literal["auto", "on", "off"]
"""When the sparse model is used: if it can be loaded at the start, always, or never."""

_ESTIMATE = EstimatingTokenCounter()


class ModelManager:
    """The models of a process. While they are missing, services search by words alone.

    `endpoints`: the models behind an endpoint, by name. Without `embeds`, embeddings are off:
    nothing is loaded or requested. `release_after`: seconds without a call after which a model is
    unloaded until the next call. Its graph is not loaded before the first call either.
    """

    def __init__(
        self,
        name: str,
        home: Path,
        folder: Path | None,
        threads: int,
        download: bool,
        sparse_mode: SparseMode = "off",
        endpoints: Mapping[str, EmbeddingEndpoint] = MappingProxyType({}),
        metrics: ModelMetrics = UNREGISTERED_METRICS,
        cached_texts: int = DEFAULT_CACHED_TEXTS,
        embeds: bool = True,
    ):
        self._name = name
        self._home = home
        self._folder = folder
        self._threads = threads
        self._download = download
        self._sparse_mode: SparseMode = sparse_mode if embeds else "off"
        self._endpoints = endpoints
        self._metrics = metrics
        self._cached_texts = cached_texts
        self.embeds = embeds
        self.release_after: float | None = None
        # None: requested, and not loaded yet.
        self._embedders: dict[str, Embedder | None] = {name: None} if embeds else {}
        self._counters: dict[str, TokenCounter] = {}
        self._verified: set[str] = set()
        self._load_lock = asyncio.Lock()
        self._load_requested = asyncio.Event()
        self._first_attempt_done = asyncio.Event()
        self.sparse_encoder: OnnxSparseEncoder | None = None

    def set_metrics(self, metrics: ModelMetrics) -> None:
        """Counts there what the models do; to be set before any is loaded."""
        self._metrics = metrics

    async def run(self) -> None:
        """Loads the requested models and retries later on failure. A background task."""
        while True:
            for name in [name for name, embedder in self._embedders.items() if embedder is None]:
                with self._log_failure(name):
                    await self.load(name)
            if self._is_sparse_missing or (
                self._sparse_mode == "auto" and not self._first_attempt_done.is_set()
            ):
                with self._log_failure(SPARSE_MODEL):
                    await self._load_sparse()
            self._first_attempt_done.set()
            is_incomplete = None in self._embedders.values() or self._is_sparse_missing
            with suppress(TimeoutError):
                await asyncio.wait_for(
                    self._load_requested.wait(), RETRY_SECONDS if is_incomplete else None
                )
            self._load_requested.clear()

    async def load_token_counter(self) -> None:
        """Loads only the token counter: for a process that embeds nothing. A background task."""
        try:
            if self.embeds and self._name not in self._endpoints and self._name in MODELS:
                arguments = (self._name, self._home, self._folder)
                model_folder = await asyncio.to_thread(
                    resolve_model, *arguments, download=self._download
                )
                counter = ModelTokenCounter(model_folder)
                await asyncio.to_thread(counter.count, "warm")
                self._counters[self._name] = counter
        except ReverieError as error:
            log.warning("model_missing", model=self._name, reason=str(error))
        finally:
            self._first_attempt_done.set()

    async def load(self, name: str) -> Embedder:
        """Returns the embedder of that name; loads it now if needed. Raises loading errors."""
        self._check_embeds(name)
        async with self._load_lock:
            embedder = self._embedders.get(name)
            if embedder is None:
                opened = await self._open_embedder(name)
                embedder = CachedEmbedder(opened, self._cached_texts, self._metrics)
                self._embedders[name] = embedder
                self._metrics.set_loaded(name, True)
        return embedder

    def request_loading(self, name: str) -> None:
        """Requests that the embedder of that name is loaded in the background, if not loaded."""
        if self.embeds and name not in self._embedders:
            self._embedders[name] = None
            self._load_requested.set()

    async def get_embedder(self, name: str = "", probe: Sequence[float] = ()) -> Embedder:
        """Returns the loaded embedder of that name, or of the configured name.

        `probe`: the vector of `PROBE_TEXT` that is stored with the embedder's vectors; compared
        once. Raises `Unavailable` if the embedder is not loaded, and requests it. Also raises
        `Unavailable` if its vector of the probe differs.
        """
        name = name or self._name
        self._check_embeds(name)
        embedder = self._embedders.get(name)
        if embedder is None:
            self.request_loading(name)
            hint = "it is being loaded; `reverie models pull` fetches it"
            raise Unavailable(f"model {name}", hint)
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

    def get_sparse_encoder(self) -> OnnxSparseEncoder:
        """Returns the sparse model. Raises `Unavailable` if it is not loaded."""
        if self.sparse_encoder is None:
            raise Unavailable(f"model {SPARSE_MODEL}", "`reverie models pull` fetches it")
        return self.sparse_encoder

    @property
    def uses_sparse(self) -> bool:
        """Whether texts should be encoded by the sparse model: it is loaded, or it should be."""
        return self.sparse_encoder is not None or self._is_sparse_missing

    @property
    def counter(self) -> TokenCounter:
        """The token counter of the configured model; an estimate if it has no counter."""
        return self._counters.get(self._name, _ESTIMATE)

    def get_counter(self, name: str) -> TokenCounter:
        """The token counter of the model of that name, else of the configured one."""
        return self._counters.get(name, self.counter)

    @property
    def sparse_counter(self) -> TokenCounter:
        """The token counter of the sparse model; an estimate if it is not loaded."""
        return self.sparse_encoder.counter if self.sparse_encoder else _ESTIMATE

    @property
    def is_ready(self) -> bool:
        """Whether the configured embedder is loaded."""
        return self._embedders.get(self._name) is not None

    def get_state(self, name: str) -> Literal["ready", "loading", "missing"]:
        """Whether the embedder of that name is loaded, or may be soon."""
        if self._embedders.get(name) is not None:
            return "ready"
        return "missing" if self._first_attempt_done.is_set() else "loading"

    def is_endpoint_model(self, name: str) -> bool:
        """Whether the model is behind an HTTP endpoint."""
        return name in self._endpoints

    async def wait_for_first_attempt(self) -> None:
        """Waits until each model was loaded, or failed to load, once."""
        await self._first_attempt_done.wait()

    async def raise_while_first_loading(self) -> None:
        """Raises `Unavailable` during the first attempt to load."""
        if not self._first_attempt_done.is_set():
            raise Unavailable("the embedding model", "it is being loaded")

    def _check_embeds(self, name: str) -> None:
        if not self.embeds:
            raise Unavailable(f"model {name}", "embeddings are off: set embeddings_enabled")

    @property
    def _is_sparse_missing(self) -> bool:
        return self._sparse_mode == "on" and self.sparse_encoder is None

    @contextmanager
    def _log_failure(self, name: str) -> Iterator[None]:
        try:
            yield
            return
        except ReverieError as error:
            log.warning("model_missing", model=name, reason=str(error))
        except Exception:  # a custom folder may contain any file
            log.exception("model_load_failed", model=name)
        if name != SPARSE_MODEL or self._is_sparse_missing:
            self._metrics.set_loaded(name, False)

    async def _open_embedder(self, name: str) -> Embedder:
        if endpoint := self._endpoints.get(name):
            remote = EndpointEmbedder(name, endpoint)
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
        await self._prepare(loaded)
        self._counters[name] = loaded.counter
        return loaded

    async def _load_sparse(self) -> None:
        loaded = await asyncio.to_thread(
            load_sparse_encoder,
            SPARSE_MODEL,
            self._home,
            self._folder,
            self._threads,
            download=self._download,
        )
        await self._prepare(loaded)
        self._metrics.set_loaded(SPARSE_MODEL, True)
        self.sparse_encoder = loaded

    async def _prepare(self, model: OnnxEmbedder | OnnxSparseEncoder) -> None:
        """Warms a model that stays in memory; any other loads its graph with the first call."""
        model.release_when_idle(self.release_after)
        if self.release_after is None:
            await model.warm()
        model.set_metrics(self._metrics)
