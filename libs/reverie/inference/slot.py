"""The models of a process: loaded beside the start-up, and what stands in until then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import structlog

from reverie.domain.errors import ReverieError, Unavailable
from reverie.inference.cache import CachedEmbedder
from reverie.inference.catalogue import SPARSE_MODEL
from reverie.inference.embedder import Embedder, load_embedder
from reverie.inference.sparse import SparseEncoder, load_sparse
from reverie.inference.tokens import EstimatingTokenCounter, TokenCounter

log = structlog.get_logger("reverie.inference")

RETRY_SECONDS = 60.0

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
    ):
        self._name = name
        self._home = home
        self._folder = folder
        self._threads = threads
        self._pull = pull
        self._sparse_mode = sparse
        self._tried = asyncio.Event()
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
        while self.embedder is None or self._lacks_sparse:
            await asyncio.sleep(RETRY_SECONDS)
            await self._load_missing()
        await asyncio.Event().wait()

    async def _load_missing(self) -> None:
        if self.embedder is None:
            try:
                await self._load()
            except ReverieError as error:
                log.warning("model_missing", model=self._name, reason=str(error))
        if self.sparse is None and (self._lacks_sparse or not self._tried.is_set()):
            try:
                await self._load_sparse()
            except ReverieError as error:
                log.warning("model_missing", model=SPARSE_MODEL, reason=str(error))

    async def _load(self) -> None:
        loaded = await asyncio.to_thread(
            load_embedder,
            self._name,
            self._home,
            self._folder,
            self._threads,
            download=self._pull,
        )
        await loaded.warm()
        self.counter = loaded.counter
        self.embedder = CachedEmbedder(loaded)

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
        self.sparse_counter = loaded.counter
        self.sparse = loaded

    @property
    def _lacks_sparse(self) -> bool:
        return self._sparse_mode == "on" and self.sparse is None

    @property
    def wants_sparse(self) -> bool:
        """Whether the sparse model is to be asked: it is there, or it should be."""
        return self.sparse is not None or self._lacks_sparse

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

    async def tried(self) -> None:
        """Waits for the end of the first try to load."""
        await self._tried.wait()

    async def check(self) -> None:
        """Raises `Unavailable` while the first try to load goes on."""
        if not self._tried.is_set():
            raise Unavailable("the embedding model", "it is being loaded")
