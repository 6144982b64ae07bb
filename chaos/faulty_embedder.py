"""An embedding endpoint that becomes slow, hangs, fails or returns nonsense on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.testing.models import FakeEmbedder

MODEL = "chaos-embedder"
DIMS = 256
SLOW = 3.0
"""Seconds that an answer takes where it is slow."""


class EmbedderMode(StrEnum):
    """How it answers."""

    NORMAL = "normal"
    SLOW = "slow"
    HANGING = "hanging"
    FAILING = "failing"
    TORN = "torn"


@dataclass
class Embeddings:
    """The endpoint; `url` is what `embedding_url` is set to."""

    url: str = ""
    mode: EmbedderMode = EmbedderMode.NORMAL
    answered: int = 0
    _model: FakeEmbedder = field(default_factory=lambda: FakeEmbedder(MODEL, DIMS))
    _is_normal: asyncio.Event = field(default_factory=asyncio.Event)

    def set_mode(self, mode: EmbedderMode) -> None:
        """From now on it answers so; what hangs is let go when it is well again."""
        self.mode = mode
        (self._is_normal.set if mode == EmbedderMode.NORMAL else self._is_normal.clear)()

    def settings(self) -> dict[str, Any]:
        """Those of a service that embeds by it."""
        return {
            "embedding_model": MODEL,
            "embedding_url": self.url,
            "embedding_dims": DIMS,
            "recall_sparse": "off",
        }

    async def answer(self, request: web.Request) -> web.Response:
        """`POST /v1/embeddings`."""
        texts = (await request.json())["input"]
        match self.mode:
            case EmbedderMode.SLOW:
                await asyncio.sleep(SLOW)
            case EmbedderMode.HANGING:
                await self._is_normal.wait()
            case EmbedderMode.FAILING:
                return web.json_response({"error": {"message": "overloaded"}}, status=503)
            case EmbedderMode.TORN:
                return web.Response(text='{"data": [{"ind', content_type="application/json")
        self.answered += 1
        vectors = await self._model.embed(texts)
        data = [{"index": at, "embedding": row.tolist()} for at, row in enumerate(vectors)]
        return web.json_response({"data": data})


@asynccontextmanager
async def embeddings() -> AsyncIterator[Embeddings]:
    """The endpoint, while it is open."""
    made = Embeddings()
    app = web.Application()
    app.router.add_post("/v1/embeddings", made.answer)
    async with TestServer(app, shutdown_timeout=0.1) as server:
        made.url = f"{server.make_url('/v1')}"
        try:
            yield made
        finally:
            made.set_mode(EmbedderMode.NORMAL)
