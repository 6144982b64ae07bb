"""The models of a process: loaded beside the start-up, and what stands in until then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import structlog

from reverie.domain.errors import ReverieError, Unavailable
from reverie.inference.cache import KEPT_TEXTS, CachedEmbedder
from reverie.inference.catalogue import MODELS, SPARSE_MODEL
from reverie.inference.embedder import Embedder, OnnxEmbedder, load_embedder
from reverie.inference.endpoint import Endpoint, EndpointEmbedder
from reverie.inference.meters import UNHEARD, ModelMeters
from reverie.inference.resolver import resolve
from reverie.inference.sparse import SparseEncoder, load_sparse
from reverie.inference.tokens import EstimatingTokenCounter, ModelTokenCounter, TokenCounter

log = structlog.get_logger("reverie.inference")

RETRY_SECONDS = 60.0
PROBE = "The same text gives the same vector, or the model is another."
SAME = 0.98
"""Cosine: int8 kernels round a little differently from machine to machine."""

SparseMode = Literal["auto", "on", "off"]
"""Whether a sparse model is used: where it can be had at the start, in any case, or never."""


class ModelSlot:
    """Holds the models once they are there. Without them, services work on words alone."""

    def __init__(
        self,
        name: str,
        home: Path,
        folder: Path | None,
        threads: int,
        pull: bool,
        sparse: SparseMode = "off",
        endpoint: Endpoint | None = None,
        meters: ModelMeters = UNHEARD,
        cached: int = KEPT_TEXTS,
    ):
        self._name = name
        self._home = home
        self._folder = folder
        self._threads = threads
        self._pull = pull
        self._sparse_mode = sparse
        self._endpoint = endpoint
        self._meters = meters
        self._cached = cached
        self._tried = asyncio.Event()
        self._asked = asyncio.Event()
        self._opening = asyncio.Lock()
        self._checked: set[str] = set()
        self._others: dict[str, Embedder | None] = {}
        self._counters: dict[str, TokenCounter] = {}
        self.embedder: Embedder | None = None
        self.sparse: SparseEncoder | None = None
        self.counter: TokenCounter = EstimatingTokenCounter()
        self.sparse_counter: TokenCounter = EstimatingTokenCounter()

    async def keep_loaded(self) -> None:
        """Loads the models, again after a pause where it fails; then rests. A background task."""
        try:
            await self._load_missing()
        finally:
            self._tried.set()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), RETRY_SECONDS if self._lacks else None)
            self._asked.clear()
            await self._load_missing()

    async def keep_counting(self) -> None:
        """Loads only what counts tokens: for a process that embeds nothing. A background task."""
        try:
            if self._endpoint is None and self._name in MODELS:
                wanted = (self._name, self._home, self._folder)
                place = await asyncio.to_thread(resolve, *wanted, download=self._pull)
                self.counter = await asyncio.to_thread(ModelTokenCounter.load, place)
        except ReverieError as error:
            log.warning("model_missing", model=self._name, reason=str(error))
        finally:
            self._tried.set()

    @property
    def _lacks(self) -> bool:
        return self.embedder is None or self._lacks_sparse or None in self._others.values()

    async def _load_missing(self) -> None:
        if self.embedder is None:
            self.embedder = await self._tried_to_open(self._name)
        for name in [name for name, one in self._others.items() if one is None]:
            async with self._opening:
                if self._there(name) is None:
                    self._others[name] = await self._tried_to_open(name)
        if self.sparse is None and (self._lacks_sparse or not self._tried.is_set()):
            try:
                await self._load_sparse()
            except ReverieError as error:
                if self._lacks_sparse:
                    self._meters.loaded(SPARSE_MODEL, False)
                log.warning("model_missing", model=SPARSE_MODEL, reason=str(error))

    async def _tried_to_open(self, name: str) -> Embedder | None:
        opened: Embedder | None = None
        try:
            opened = self._caching(await self._open(name))
        except ReverieError as error:
            log.warning("model_missing", model=name, reason=str(error))
        except Exception:  # a folder of one's own may hold anything
            log.exception("model_broken", model=name)
        self._meters.loaded(name, opened is not None)
        return opened

    def _caching(self, inner: Embedder) -> Embedder:
        return CachedEmbedder(inner, self._cached, self._meters)

    async def _open(self, name: str) -> Embedder:
        if self._endpoint is not None and name == self._name:
            remote = EndpointEmbedder(name, self._endpoint)
            remote.count_by(self._meters)
            return remote
        if name in MODELS:
            wanted = (name, self._home, self._folder, self._threads)
            loaded = await asyncio.to_thread(load_embedder, *wanted, download=self._pull)
        else:
            place = (self._folder or self._home / "models") / name
            loaded = await asyncio.to_thread(OnnxEmbedder.local, name, place, self._threads)
        await loaded.warm()
        loaded.count_by(self._meters)
        self._counters[name] = loaded.counter
        if name == self._name:
            self.counter = loaded.counter
        return loaded

    async def _load_sparse(self) -> None:
        if self._sparse_mode == "off":
            return
        loaded = await asyncio.to_thread(
            load_sparse,
            SPARSE_MODEL,
            self._home,
            self._folder,
            self._threads,
            download=self._pull,
        )
        await loaded.warm()
        loaded.count_by(self._meters)
        self._meters.loaded(SPARSE_MODEL, True)
        self.sparse_counter = loaded.counter
        self.sparse = loaded

    @property
    def _lacks_sparse(self) -> bool:
        return self._sparse_mode == "on" and self.sparse is None

    @property
    def wants_sparse(self) -> bool:
        """Whether the sparse model is to be asked: it is there, or it should be."""
        return self.sparse is not None or self._lacks_sparse

    def state(self, name: str) -> Literal["ready", "loading", "missing"]:
        """Whether the embedder of that name is there, or may come yet."""
        if self._there(name) is not None:
            return "ready"
        return "missing" if self._tried.is_set() else "loading"

    def is_endpoint(self, name: str) -> bool:
        """Whether the model answers elsewhere."""
        return self._endpoint is not None and name == self._name

    def ready(self) -> Embedder:
        """The embedder. Raises `Unavailable` while there is none."""
        if self.embedder is None:
            raise Unavailable("the embedding model", "`reverie models pull` fetches it")
        return self.embedder

    def sparse_ready(self) -> SparseEncoder:
        """The sparse model. Raises `Unavailable` while there is none."""
        if self.sparse is None:
            raise Unavailable(f"model {SPARSE_MODEL}", "`reverie models pull` fetches it")
        return self.sparse

    def counter_of(self, name: str) -> TokenCounter:
        """The counter of the model of that name; that of the one set, where it has none."""
        return self._counters.get(name, self.counter)

    def _there(self, name: str) -> Embedder | None:
        both = (self.embedder, self._others.get(name))
        return next((one for one in both if one is not None and one.name == name), None)

    def want(self, name: str) -> None:
        """Has the embedder of that name loaded beside, where it is not there."""
        if name != self._name and name not in self._others:
            self._others[name] = None
            self._asked.set()

    def named(self, name: str) -> Embedder:
        """The embedder of that name, which a tenant goes by.

        Raises `Unavailable` while there is none; it is loaded beside then.
        """
        if (there := self._there(name)) is not None:
            return there
        self.want(name)
        raise Unavailable(f"model {name}", "it is being loaded, or no place gives it")

    async def checked(self, name: str, probe: Sequence[float]) -> Embedder:
        """`named`, once it says of the probe text what it said when its vectors were made."""
        one = self.named(name)
        if probe and name not in self._checked:
            [made] = await one.embed([PROBE])
            if len(probe) != one.dims or float(made @ np.asarray(probe, np.float32)) < SAME:
                hint = "it is not what made its vectors: give it a name of its own, and reembed"
                raise Unavailable(f"model {name}", hint)
            self._checked.add(name)
        return one

    async def opened(self, name: str) -> Embedder:
        """The embedder of that name, loaded now where it must be. Raises as loading does."""
        async with self._opening:
            if self._there(name) is None:
                self._others[name] = self._caching(await self._open(name))
        return self.named(name)

    async def tried(self) -> None:
        """Waits for the end of the first try to load."""
        await self._tried.wait()

    async def check(self) -> None:
        """Raises `Unavailable` while the first try to load goes on."""
        if not self._tried.is_set():
            raise Unavailable("the embedding model", "it is being loaded")
