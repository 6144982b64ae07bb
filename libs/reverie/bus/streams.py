"""Definitions of the JetStream streams and consumers, and the function that creates them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import JetStreamContext, api

from reverie.bus.credentials import NO_CREDENTIALS, NatsCredentials
from reverie.contracts import events
from reverie.domain.core.errors import Misconfigured, Unavailable

MIB: Final = 1024 * 1024
HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
DEDUPE_SECONDS: Final = 300.0
"""Time for which a `Nats-Msg-Id` is remembered: longer than any ack wait and relay grace."""
TENANT_CONSUMER_SECONDS: Final = 8 * DAY
"""Time after which the server drops a tenant's consumer that nobody reads: longer than it keeps the
messages, so that none is delivered again."""
CONNECT_SECONDS: Final = 10
_URL_PATTERN: Final = re.compile(r"(nats|tls|ws|wss)://([^@/\s]+@)?[^@/\s]+(:\d{1,5})?/?")


@dataclass(frozen=True)
class StreamSpec:
    """A stream. `max_age` in seconds, `max_bytes` in bytes.

    `queue`: a message leaves when it is acknowledged. `one_per_subject`: a second message on a
    subject is refused while the first is there.
    """

    name: str
    subjects: tuple[str, ...]
    max_age: float
    max_bytes: int
    queue: bool = False
    one_per_subject: bool = False


@dataclass(frozen=True)
class ConsumerSpec:
    """A durable pull consumer.

    `ack_wait`: seconds until an unanswered message is delivered to another worker; a running
    handler prolongs it every third of that. `max_deliver`: -1 for no limit. `backoff`: seconds
    before the next delivery after the first, second, ... failure (the last repeats). The delays
    travel with each refusal and are not given to the server, whose own back-off list would
    replace `ack_wait` and make a killed worker's message wait as long as a failing one's.
    `per_tenant`: each tenant that the `*` in the filter stands for has a consumer of its own, so
    that tenants take turns. It is created when messages of the tenant are found.
    """

    name: str
    stream: str
    subject_filter: str
    ack_wait: float = 30.0
    max_deliver: int = 8
    backoff: tuple[float, ...] = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0)
    max_ack_pending: int = 1000
    per_tenant: bool = False

    def for_subject(self, subject: str) -> ConsumerSpec:
        """The consumer of the tenant that the subject names."""
        return replace(self, name=f"{self.name}-{subject.split('.')[1]}", subject_filter=subject)


STREAMS: Final = (
    # The oldest go when it is full: a memory whose event was lost still says
    # `enriched_version < version`.
    StreamSpec(events.MEMORY_STREAM, ("memory.*.>",), max_age=7 * DAY, max_bytes=512 * MIB),
    # The age frees a subject that nothing else freed; the job itself is a row.
    StreamSpec(
        events.DREAM_STREAM,
        ("dream.*.*.requested",),
        max_age=2 * DAY,
        max_bytes=64 * MIB,
        queue=True,
        one_per_subject=True,
    ),
    StreamSpec(events.GIT_STREAM, ("git.*.*.changed",), max_age=7 * DAY, max_bytes=128 * MIB),
    # A turn of the engine is a row, which may be asked for again while it waits for a person.
    StreamSpec(
        events.TURN_STREAM, ("turn.*.*.requested",), max_age=2 * DAY, max_bytes=64 * MIB, queue=True
    ),
    # What agents say while they say it; what was said is in Postgres.
    StreamSpec(events.ENGINE_STREAM, ("engine.*.*.event",), max_age=DAY, max_bytes=256 * MIB),
    StreamSpec(events.DEAD_LETTER_STREAM, ("dead.>",), max_age=30 * DAY, max_bytes=256 * MIB),
    StreamSpec(
        events.ADVISORY_STREAM,
        ("$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",),
        max_age=7 * DAY,
        max_bytes=16 * MIB,
        queue=True,
    ),
)

QUEUES: Final = frozenset(spec.name for spec in STREAMS if spec.queue)

INGEST_ENRICH: Final = ConsumerSpec(
    "ingest-enrich", events.MEMORY_STREAM, "memory.*.remembered", ack_wait=10.0
)
INGEST_ENRICH_BULK: Final = ConsumerSpec(
    "ingest-enrich-bulk", events.MEMORY_STREAM, "memory.*.bulk.remembered", per_tenant=True
)
DREAM_WORKERS: Final = ConsumerSpec(
    "dream-workers", events.DREAM_STREAM, "dream.*.*.requested", ack_wait=10.0
)
STALENESS_CHANGES: Final = ConsumerSpec("staleness-changes", events.GIT_STREAM, "git.*.*.changed")
ENGINE_WORKERS: Final = ConsumerSpec(
    "engine-workers",
    events.TURN_STREAM,
    "turn.*.*.requested",
    ack_wait=10.0,
    max_deliver=-1,
    backoff=(1.0, 2.0, 5.0, 15.0),
)
DEAD_LETTER_WATCHER: Final = ConsumerSpec(
    "dead-watch",
    events.ADVISORY_STREAM,
    "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>",
    max_deliver=-1,
    backoff=(1.0, 5.0, 30.0),
)
CONSUMERS: Final = (
    INGEST_ENRICH,
    INGEST_ENRICH_BULK,
    DREAM_WORKERS,
    STALENESS_CHANGES,
    ENGINE_WORKERS,
    DEAD_LETTER_WATCHER,
)


def is_own_consumer(stream: str, name: str) -> bool:
    """Whether it is one of `CONSUMERS`, or that of a tenant."""
    return any(
        spec.stream == stream
        and (name.startswith(f"{spec.name}-") if spec.per_tenant else name == spec.name)
        for spec in CONSUMERS
    )


async def ensure_streams(
    nats_url: str,
    replicas: int = 1,
    consumers: Iterable[ConsumerSpec] = CONSUMERS,
    credentials: NatsCredentials = NO_CREDENTIALS,
) -> None:
    """Creates or updates every stream and consumer; safe to repeat while services run.

    `nats_url` as in `parse_server_urls`. Raises `Unavailable` if no server responds in ten seconds
    or JetStream is missing (a cluster has it once it has a leader). Raises `Misconfigured` if the
    server refuses (too many replicas, too little storage).
    """
    addresses = parse_server_urls(nats_url)
    client = Client()
    failures: list[Exception] = []
    try:
        options = credentials.connect_options(nats_url)
        await asyncio.wait_for(_connect(client, addresses, options, failures), CONNECT_SECONDS)
        await ensure_jetstream(client.jetstream(timeout=CONNECT_SECONDS), replicas, consumers)
    except nats.js.errors.ServiceUnavailableError as error:
        raise Unavailable("JetStream", error.description or "is it enabled?") from error
    except nats.js.errors.APIError as error:
        raise Misconfigured("nats_url", error.description or str(error)) from error
    except (nats.errors.Error, OSError, TimeoutError) as error:
        raise Unavailable("NATS", connection_hint([*failures, error])) from error
    finally:
        await client.close()


def parse_server_urls(url: str) -> list[str]:
    """The server addresses in `url`, which may name several, separated by commas.

    Raises `Misconfigured` for one that is no NATS address.
    """
    addresses = [part.strip() for part in url.split(",")]
    if all(_URL_PATTERN.fullmatch(address) for address in addresses):
        return addresses
    raise Misconfigured("nats_url", "expected nats://host:port (or tls, ws, wss)")


def connection_hint(failures: Iterable[Exception]) -> str:
    """What to do about failures to connect."""
    words = " ".join(str(failure).lower() for failure in failures)
    if "authorization" in words or "authentication" in words:
        return "it refuses the login: check user and password in nats_url, or nats_creds"
    return "is it running with JetStream enabled?"


async def _connect(
    client: Client,
    addresses: list[str],
    connect_options: Mapping[str, Any],
    failures: list[Exception],
) -> None:
    async def remember(failure: Exception) -> None:
        failures.append(failure)

    await client.connect(
        addresses,
        name="reverie-migrate",
        error_cb=remember,
        allow_reconnect=False,
        connect_timeout=CONNECT_SECONDS // 2,
        reconnect_time_wait=1,
        max_reconnect_attempts=3,
        **connect_options,
    )


async def ensure_jetstream(
    js: JetStreamContext, replicas: int, consumers: Iterable[ConsumerSpec] = CONSUMERS
) -> None:
    """`ensure_streams` on a connection that is open; raises the driver's errors."""
    for stream in STREAMS:
        config = _stream_config(stream, replicas)
        try:
            await js.update_stream(config)
        except nats.js.errors.NotFoundError:
            await js.add_stream(config)
    for consumer in consumers:
        if not consumer.per_tenant:
            await js.add_consumer(consumer.stream, build_consumer_config(consumer))


def _stream_config(spec: StreamSpec, replicas: int) -> api.StreamConfig:
    one_per_subject = spec.one_per_subject
    return api.StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        retention=api.RetentionPolicy.WORK_QUEUE if spec.queue else api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        max_age=spec.max_age,
        max_bytes=spec.max_bytes,
        max_msgs_per_subject=1 if one_per_subject else -1,
        discard=api.DiscardPolicy.NEW if one_per_subject else api.DiscardPolicy.OLD,
        discard_new_per_subject=one_per_subject,
        duplicate_window=DEDUPE_SECONDS,
        num_replicas=replicas,
        allow_direct=True,
    )


def build_consumer_config(spec: ConsumerSpec) -> api.ConsumerConfig:
    """The server's configuration of a consumer."""
    return api.ConsumerConfig(
        name=spec.name,
        durable_name=spec.name,
        filter_subject=spec.subject_filter,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=spec.ack_wait,
        max_deliver=spec.max_deliver,
        max_ack_pending=spec.max_ack_pending,
        inactive_threshold=TENANT_CONSUMER_SECONDS if spec.per_tenant else None,
    )
