"""A reranking endpoint has the last word on the order, as long as it answers in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from reverie.domain.errors import Unavailable
from reverie.inference.rerank import EndpointReranker
from reverie.testing.models import model_home
from reverie.testing.servers import Database
from tests.stack import running_stack

TEXTS = ("The pool holds ten connections", "The pool was drained in May", "The pool is in Berlin")


class Judge:
    """An endpoint that likes the texts with a word best; it can be told to hang or to fail."""

    def __init__(self) -> None:
        self.likes = "Berlin"
        self.hang = False
        self.answer: Any = None
        self.keys: list[str | None] = []

    async def rerank(self, request: web.Request) -> web.Response:
        self.keys.append(request.headers.get("Authorization"))
        body = await request.json()
        if self.hang:
            await asyncio.Event().wait()
        results = [
            {"index": place, "relevance_score": float(self.likes in text)}
            for place, text in enumerate(body["documents"])
        ]
        return web.json_response(self.answer or {"results": results})


@asynccontextmanager
async def endpoint() -> AsyncIterator[tuple[Judge, str]]:
    judge = Judge()
    app = web.Application()
    app.router.add_post("/v1/rerank", judge.rerank)
    async with TestServer(app, shutdown_timeout=0.1) as server:
        yield judge, str(server.make_url("/v1/rerank"))


async def test_the_endpoint_orders_the_first_hits_and_late_or_wrong_it_does_not(
    database: Database, nats_url: str
) -> None:
    async with (
        endpoint() as (judge, url),
        running_stack(
            database,
            nats_url,
            model_home(),
            rerank_url=url,
            rerank_key="rerank-key",
            rerank_seconds=5.0,
        ) as stack,
    ):
        for text in TEXTS:
            await stack.post("/v1/remember", {"content": text})
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["memories"][0]["content"] == TEXTS[2]
        scores = [hit["score"] for hit in found["memories"]]
        assert scores == sorted(scores, reverse=True)
        assert found["degraded"] == []
        judge.likes = "May"
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["memories"][0]["content"] == TEXTS[1]
        judge.answer = {"results": [{"index": 7, "relevance_score": 1.0}]}
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["degraded"] == ["rerank"]
        assert len(found["memories"]) == len(TEXTS)
        assert set(judge.keys) == {"Bearer rerank-key"}
    async with (
        endpoint() as (judge, url),
        running_stack(
            database, nats_url, model_home(), rerank_url=url, rerank_seconds=0.05
        ) as stack,
    ):
        judge.hang = True
        for text in TEXTS:
            await stack.post("/v1/remember", {"content": text})
        found = await stack.post("/v1/recall", {"query": "pool"})
        assert found["degraded"] == ["rerank"]
        assert {hit["content"] for hit in found["memories"]} >= set(TEXTS)


async def test_an_endpoint_that_is_not_there_is_said_to_be_away() -> None:
    reranker = EndpointReranker("http://127.0.0.1:9/rerank", "any", None)
    with pytest.raises(Unavailable, match="rerank_url"):
        await reranker.order("question", ["text"])
    await reranker.close()
