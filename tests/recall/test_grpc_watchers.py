"""A gRPC watcher that does not read is disconnected; unexpected errors become problems."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import grpc
import pytest

from reverie.contracts import reverie_pb2 as pb
from reverie.runtime.http.dispatch import Dispatcher
from reverie.runtime.http.instrumentation import AfterReplyRunner, RequestInstrumentation
from reverie.runtime.http.reverse_proxy import ProxyOptions, ProxyRoute, ReverseProxy
from reverie.runtime.limits.concurrency import (
    ConcurrencyLimiter,
    ConcurrencyLimits,
    ConcurrencyMetrics,
)
from reverie.runtime.observability.http_client_metrics import HttpClientMetrics
from reverie.runtime.observability.metrics import create_registry
from reverie.testing.models import model_home
from reverie.testing.servers import DatabaseUrls
from reverie_services.recall.grpc.event_streams import READER_TASK_NAME, EventStreamServicer
from reverie_services.recall.grpc.messages import abort_on_error
from tests.support.stack import Stack, eventually, running_stack


async def test_a_watcher_that_does_not_read_is_disconnected_and_misses_nothing(
    database: DatabaseUrls, nats_url: str
) -> None:
    async with (
        running_stack(database, nats_url, model_home()) as stack,
        _events_of(stack) as dispatcher,
    ):
        await _overflow(stack, dispatcher)


@asynccontextmanager
async def _events_of(stack: Stack) -> AsyncIterator[Dispatcher]:
    """A dispatcher that has the stream of events, as the gateway's has."""
    registry = create_registry()
    dispatcher = Dispatcher(RequestInstrumentation(registry, AfterReplyRunner()), None)
    limits, metrics = ConcurrencyLimits(8, 8, 5.0), ConcurrencyMetrics(registry)
    proxy = ReverseProxy(
        ProxyOptions(
            body_limit=1000,
            timeout=30.0,
            metrics=HttpClientMetrics(registry),
            create_limiter=partial(ConcurrencyLimiter, limits, metrics),
            # The service that is asked checks the key, too.
            authenticate=AsyncMock(),
        )
    )
    events = ProxyRoute("/v1/events", "ingest", stack.urls["ingest"], endless=True)
    proxy.add_routes(dispatcher, [events])
    async with proxy.run():
        yield dispatcher


async def _overflow(stack: Stack, dispatcher: Dispatcher) -> None:
    watching = EventStreamServicer(dispatcher, backlog=3)
    context = Unread(stack.key)
    events = watching.watch_memories(pb.WatchRequest(event=["remembered"]), context)
    told = [await anext(events)]
    made = [await _remembered(stack, n) for n in range(8)]
    await eventually(_nobody_reads)
    with pytest.raises(Unread.Ended):
        await _all(events, told)
    assert context.status == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "ask again with the last cursor" in context.words
    again = pb.WatchRequest(event=["remembered"], cursor=told[-1].cursor)
    patient = EventStreamServicer(dispatcher, backlog=100)
    heard = patient.watch_memories(again, Unread(stack.key))
    seen = [one.id for one in told if not one.alive]
    assert len(seen) < len(made)
    while len(seen) < len(made):
        one = await anext(heard)
        seen += [] if one.alive else [one.id]
    assert seen == made
    await heard.aclose()  # type: ignore[attr-defined]


async def test_an_unexpected_internal_error_is_reported_without_details() -> None:
    context = Unread("any")
    with pytest.raises(Unread.Ended):
        async with abort_on_error(context):
            raise KeyError("a table of ours")
    assert context.status == grpc.StatusCode.INTERNAL
    assert context.words.startswith("internal: something failed inside")


class Unread:
    """The server's side of a call whose client takes its time."""

    class Ended(Exception):
        """What ending the call raises."""

    def __init__(self, key: str) -> None:
        self._key = key
        self.status: grpc.StatusCode | None = None
        self.words = ""

    def invocation_metadata(self) -> Any:
        return (("authorization", f"Bearer {self._key}"),)

    async def abort(self, status: grpc.StatusCode, words: str, trailing_metadata: Any) -> None:
        self.status, self.words = status, words
        raise self.Ended


async def _nobody_reads() -> bool:
    return not any(task.get_name() == READER_TASK_NAME for task in asyncio.all_tasks())


async def _all(events: AsyncIterator[Any], told: list[Any]) -> None:
    async for one in events:
        told.append(one)  # noqa: PERF401


async def _remembered(stack: Stack, n: int) -> str:
    return str((await stack.post("/v1/remember", {"content": f"Sack {n} is full."}))["id"])
