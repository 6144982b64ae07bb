"""Pull subscriptions of JetStream: stream reads, durable consumers and message deliveries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from time import monotonic
from typing import Final, NamedTuple, Protocol

import nats.errors
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from reverie.bus.interface import Message, StoredMessage
from reverie.bus.nats_session import NatsSession
from reverie.bus.streams import ConsumerSpec, build_consumer_config
from reverie.domain.core.errors import Unavailable
from reverie.domain.core.ids import new_id

DRIVER_ERRORS: Final = (nats.errors.Error, OSError, TimeoutError)
PULL_TIMEOUT: Final = 5.0
"""Seconds that one pull waits for a message; a missing consumer is noticed after it."""
_PULL_NANOSECONDS: Final = int(PULL_TIMEOUT * 1_000_000_000)
IDLE_SECONDS: Final = 0.5
"""Seconds between two looks for a tenant whose messages wait, at least."""
IDLE_FACTOR: Final = 10
"""How many times as long as a look takes: with thousands of tenants it takes a while."""
MAX_IDLE_SECONDS: Final = 5.0
"""Seconds at most: where a look was held up, the next message waits no longer for it."""
CONSUMERS_PER_PAGE: Final = 256
"""Consumers that the server lists at a time."""
CONFIGURED: Final = ("ack_wait", "max_deliver", "max_ack_pending", "inactive_threshold")
"""What a later version may configure otherwise."""
WATCH_BATCH: Final = 256
"""Messages that one pull of a watcher asks for; the server sends each as soon as it is there."""
INACTIVE_SECONDS: Final = 60.0
"""Seconds without a pull after which the server drops the consumer of a dead watcher."""


async def watch_messages(
    session: NatsSession, stream: str, subject: str, after: int
) -> AsyncGenerator[StoredMessage, None]:
    """Yields messages in order.

    Ends if one is missing or the connection breaks; the caller resumes after the last one.
    """
    async with _ephemeral_consumer(session, stream, subject, after) as (subscription, _):
        expected, requested = 1, 0
        while True:
            if not requested:
                await _request(session, subscription, WATCH_BATCH, expires=_PULL_NANOSECONDS)
                requested = WATCH_BATCH
            raw = await session.run(subscription._sub.next_msg(2 * PULL_TIMEOUT))
            if JetStreamContext.is_status_msg(raw):
                if (raw.headers or {}).get(api.Header.STATUS) != api.StatusCode.REQUEST_TIMEOUT:
                    return
                requested = 0
                continue
            requested -= 1
            metadata = raw.metadata
            # Nothing is acknowledged, so the server does not send again what got lost on the way.
            if metadata.sequence.consumer != expected:
                return
            expected += 1
            yield _to_stored_message(raw)


async def fetch_page(
    session: NatsSession, stream: str, subject: str, after: int, limit: int
) -> list[StoredMessage]:
    """Returns up to `limit` stored messages of a stream, in order; fewer if some are deleted."""
    async with _ephemeral_consumer(session, stream, subject, after) as (subscription, pending):
        if not pending:
            return []
        messages = await session.run(subscription.fetch(min(limit, pending), timeout=PULL_TIMEOUT))
    return [_to_stored_message(raw) for raw in messages]


def _to_stored_message(raw: Msg) -> StoredMessage:
    metadata, headers = raw.metadata, dict(raw.headers or {})
    return StoredMessage(
        metadata.sequence.stream, raw.subject, raw.data, headers, metadata.timestamp
    )


@asynccontextmanager
async def _ephemeral_consumer(
    session: NatsSession, stream: str, subject: str, after: int
) -> AsyncIterator[tuple[JetStreamContext.PullSubscription, int]]:
    """A consumer of its own, and how many messages it found."""
    name = f"watch-{new_id()}"
    config = api.ConsumerConfig(
        name=name,
        filter_subject=subject,
        deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
        opt_start_seq=after + 1,
        ack_policy=api.AckPolicy.NONE,
        inactive_threshold=INACTIVE_SECONDS,
        num_replicas=1,
        mem_storage=True,
    )
    consumer_info = await session.run(session.js.add_consumer(stream, config))
    subscription = await session.run(session.js.pull_subscribe_bind(consumer=name, stream=stream))
    try:
        yield subscription, consumer_info.num_pending or 0
    finally:
        with suppress(Unavailable, *DRIVER_ERRORS):
            await session.run(subscription.unsubscribe())
            await session.run(session.js.delete_consumer(stream, name))


@asynccontextmanager
async def open_pull_subscription(
    session: NatsSession, spec: ConsumerSpec
) -> AsyncIterator[JetStreamContext.PullSubscription]:
    """A pull subscription; on exit, unprocessed messages are returned (nak)."""
    subscription = await session.run(
        session.js.pull_subscribe_bind(consumer=spec.name, stream=spec.stream)
    )
    try:
        yield subscription
    finally:
        with suppress(Unavailable, *DRIVER_ERRORS):
            await session.run(subscription.unsubscribe())
            # Messages that arrived too late for this worker go to another one at once.
            while subscription.pending_msgs:
                for raw in await session.run(subscription.fetch(1, timeout=0.1)):
                    await session.run(raw.nak())


async def pull_messages(
    session: NatsSession, spec: ConsumerSpec, prefetch: int
) -> AsyncGenerator[Msg | None, None]:
    """Yields messages, and None now and then while there are none.

    Requests up to `prefetch` at a time: if each tenant has a consumer, of one tenant after another.
    """
    if not spec.per_tenant:
        async with open_pull_subscription(session, spec) as subscription:
            while True:
                yield await _fetch_next(session, subscription, prefetch)
    while True:
        is_idle, started = True, monotonic()
        for consumer in await list_tenant_consumers(session, spec):
            if not consumer.unsettled:
                continue
            if not consumer.is_current:
                config = build_consumer_config(consumer.spec)
                await session.run(session.js.add_consumer(spec.stream, config))
            async with (
                open_pull_subscription(session, consumer.spec) as subscription,
                aclosing(_fetch_available(session, subscription, prefetch)) as messages,
            ):
                async for raw in messages:
                    is_idle = False
                    yield raw
        if is_idle:
            yield None
            await asyncio.sleep(compute_pause(monotonic() - started))


def compute_pause(look_seconds: float) -> float:
    """Seconds until the next look for a tenant whose messages wait, by what the last one took."""
    return min(max(IDLE_SECONDS, IDLE_FACTOR * look_seconds), MAX_IDLE_SECONDS)


class TenantConsumer(NamedTuple):
    """A tenant's consumer, and its messages that are not settled yet.

    `is_current`: it exists, as this version configures it.
    """

    spec: ConsumerSpec
    is_current: bool
    unsettled: int


async def list_tenant_consumers(session: NatsSession, spec: ConsumerSpec) -> list[TenantConsumer]:
    """The consumers of all tenants whose messages the stream has."""
    js = session.js
    info = await session.run(js.stream_info(spec.stream, subjects_filter=spec.subject_filter))
    existing: dict[str, api.ConsumerInfo] = {}
    page_size = CONSUMERS_PER_PAGE
    while page_size == CONSUMERS_PER_PAGE:
        page = await session.run(js.consumers_info(spec.stream, len(existing)))
        existing |= {one.name: one for one in page}
        page_size = len(page)
    return [
        _describe_consumer(spec.for_subject(subject), existing, count)
        for subject, count in (info.state.subjects or {}).items()
    ]


def _describe_consumer(
    spec: ConsumerSpec, existing: Mapping[str, api.ConsumerInfo], count: int
) -> TenantConsumer:
    """`count`: the messages of a tenant that has no consumer yet."""
    if (info := existing.get(spec.name)) is None:
        return TenantConsumer(spec, is_current=False, unsettled=count)
    wanted = build_consumer_config(spec)
    is_current = all(getattr(info.config, name) == getattr(wanted, name) for name in CONFIGURED)
    unsettled = (info.num_pending or 0) + (info.num_ack_pending or 0)
    return TenantConsumer(spec, is_current, unsettled)


async def _fetch_available(
    session: NatsSession, subscription: JetStreamContext.PullSubscription, limit: int
) -> AsyncGenerator[Msg, None]:
    """Yields up to `limit` messages that can be delivered now."""
    await _request(session, subscription, limit, no_wait=True)
    for _ in range(limit):
        raw = await session.run(subscription._sub.next_msg(PULL_TIMEOUT))
        if JetStreamContext.is_status_msg(raw):
            return
        yield raw


async def _request(
    session: NatsSession,
    subscription: JetStreamContext.PullSubscription,
    limit: int,
    **more: bool | int,
) -> None:
    payload = json.dumps({"batch": limit, **more}).encode()
    await session.run(subscription._nc.publish(subscription._nms, payload, subscription._deliver))


async def _fetch_next(
    session: NatsSession, subscription: JetStreamContext.PullSubscription, prefetch: int
) -> Msg | None:
    """Returns the next message; None if there is none in time.

    If more are pending on the server, prefetches up to `prefetch` of them.
    """
    none_pending = not subscription.pending_msgs
    try:
        [raw] = await session.run(subscription.fetch(1, timeout=PULL_TIMEOUT))
    except nats.errors.TimeoutError:
        return None
    if none_pending and (extra := min(raw.metadata.num_pending, prefetch - 1)) > 0:
        # The driver's own way to fetch several waits until all arrived. The next fetches find
        # these.
        with suppress(Unavailable, *DRIVER_ERRORS):
            await _request(session, subscription, extra, no_wait=True)
    return raw


class _AckSender(Protocol):
    async def send_ack(self, reply: str, payload: bytes, timeout_seconds: float) -> None: ...

    async def send_progress(self, reply: str, payload: bytes) -> None: ...


class NatsDelivery:
    """A delivery that is settled through the bus, not through the connection it arrived on.

    An acknowledgement still counts if the work outlived a reconnect.
    """

    def __init__(self, bus: _AckSender, spec: ConsumerSpec, raw: Msg):
        self._bus = bus
        self._ack_timeout = spec.ack_wait
        self._reply = raw.reply
        self.seq = raw.metadata.sequence.stream
        self.message = Message(
            raw.subject, raw.data, dict(raw.headers or {}), raw.metadata.num_delivered
        )

    async def ack(self) -> None:
        await self._bus.send_ack(self._reply, Msg.Ack.Ack, self._ack_timeout)

    async def nak(self, delay: float) -> None:
        detail = b" " + json.dumps({"delay": int(delay * 1e9)}).encode() if delay > 0 else b""
        await self._bus.send_ack(self._reply, Msg.Ack.Nak + detail, self._ack_timeout)

    async def term(self) -> None:
        await self._bus.send_ack(self._reply, Msg.Ack.Term, self._ack_timeout)

    async def progress(self) -> None:
        await self._bus.send_progress(self._reply, Msg.Ack.Progress)
