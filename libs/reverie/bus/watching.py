"""A look at a stream of NATS from a number on, by a consumer of its own that leaves no trace."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Protocol, TypeVar

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from reverie.bus.port import Stored
from reverie.domain.errors import Unavailable
from reverie.domain.ids import new_id

T = TypeVar("T")

PULL_SECONDS: Final = 5.0
"""Seconds that one pull waits for a message; a missing consumer is noticed after it."""
FORGET_SECONDS: Final = 60.0
"""After so long without a pull the server drops a consumer whose watcher died."""


class Life(Protocol):
    """A connection; `run` raises `Unavailable` as soon as it ends."""

    @property
    def js(self) -> JetStreamContext: ...

    async def run(self, work: Coroutine[Any, Any, T]) -> T: ...


async def watched(
    life: Life, stream: str, subject: str, after: int
) -> AsyncGenerator[Stored, None]:
    """Messages in order, until one is missing or the connection ends: begin anew after the last."""
    async with _consumer(life, stream, subject, after) as (pull, _):
        expected = 1
        while True:
            try:
                [raw] = await life.run(pull.fetch(1, timeout=PULL_SECONDS))
            except nats.errors.TimeoutError:
                continue
            place = raw.metadata
            # Nothing is acknowledged, so the server does not send again what got lost on the way.
            if place.sequence.consumer != expected:
                return
            expected += 1
            yield _stored(raw)


async def paged(life: Life, stream: str, subject: str, after: int, limit: int) -> list[Stored]:
    """Up to `limit` messages that lie in a stream, in order; fewer where some go meanwhile."""
    async with _consumer(life, stream, subject, after) as (pull, there):
        if not there:
            return []
        found = await life.run(pull.fetch(min(limit, there), timeout=PULL_SECONDS))
    return [_stored(raw) for raw in found]


def _stored(raw: Msg) -> Stored:
    place, headers = raw.metadata, dict(raw.headers or {})
    return Stored(place.sequence.stream, raw.subject, raw.data, headers, place.timestamp)


@asynccontextmanager
async def _consumer(
    life: Life, stream: str, subject: str, after: int
) -> AsyncIterator[tuple[JetStreamContext.PullSubscription, int]]:
    """A consumer of its own, and how many messages it found."""
    name = f"watch-{new_id()}"
    config = api.ConsumerConfig(
        name=name,
        filter_subject=subject,
        deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=api.AckPolicy.NONE,
        inactive_threshold=FORGET_SECONDS,
        num_replicas=1,
        mem_storage=True,
    )
    made = await life.run(life.js.add_consumer(stream, config))
    pull = await life.run(life.js.pull_subscribe_bind(consumer=name, stream=stream))
    try:
        yield pull, made.num_pending or 0
    finally:
        with suppress(Unavailable, nats.errors.Error, OSError, TimeoutError):
            await life.run(pull.unsubscribe())
            await life.run(life.js.delete_consumer(stream, name))
