"""The model of a process: loaded beside the start-up, and what stands in until then."""

from __future__ import annotations

import asyncio
from pathlib import Path

import structlog

from reverie.domain.errors import ReverieError, Unavailable
from reverie.inference.cache import CachedEmbedder
from reverie.inference.embedder import Embedder, load_embedder
from reverie.inference.tokens import EstimatingTokenCounter, TokenCounter

log = structlog.get_logger("reverie.inference")

RETRY_SECONDS = 60.0


class ModelSlot:
    """Holds the embedder once it is there. Without one, services work on words alone."""

    def __init__(self, name: str, home: Path, folder: Path | None, threads: int, pull: bool):
        self._name = name
        self._home = home
        self._folder = folder
        self._threads = threads
        self._pull = pull
        self._tried = asyncio.Event()
        self.embedder: Embedder | None = None
        self.counter: TokenCounter = EstimatingTokenCounter()

    async def keep_loaded(self) -> None:
        """Loads the model, again after a pause where it fails; then rests. A background task."""
        while self.embedder is None:
            try:
                await self._load()
            except ReverieError as error:
                log.warning("model_missing", model=self._name, reason=str(error))
            finally:
                self._tried.set()
            if self.embedder is None:
                await asyncio.sleep(RETRY_SECONDS)
        await asyncio.Event().wait()

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

    def ready(self) -> Embedder:
        """The embedder. Raises `Unavailable` while there is none."""
        if self.embedder is None:
            raise Unavailable("the embedding model", "`reverie models pull` fetches it")
        return self.embedder

    async def tried(self) -> None:
        """Waits for the end of the first try to load."""
        await self._tried.wait()

    async def check(self) -> None:
        """Raises `Unavailable` while the first try to load goes on."""
        if not self._tried.is_set():
            raise Unavailable("the embedding model", "it is being loaded")
