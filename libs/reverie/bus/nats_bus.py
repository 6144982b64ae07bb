"""The bus on NATS JetStream: a connection that is re-established, and the bus operations.

The driver's own reconnection is off: it stops permanently on some server errors, and it buffers
publishes during an outage. Here a lost connection is replaced by a new one, and pending calls fail
at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final, Self

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from prometheus_client import CollectorRegistry

from reverie.bus.credentials import NO_CREDENTIALS, NatsCredentials
from reverie.bus.interface import MAX_PAYLOAD, MessageBus, StoredMessage
from reverie.bus.jetstream_pull import (
    DRIVER_ERRORS,
    NatsDelivery,
    fetch_page,
    list_tenant_consumers,
    pull_messages,
    watch_messages,
)
from reverie.bus.nats_session import NatsSession, connection_lost_error
from reverie.bus.permissions import inbox_prefix, user_from_url
from reverie.bus.streams import CONSUMERS, QUEUES, ConsumerSpec, ensure_jetstream, parse_server_urls
from reverie.bus.telemetry import BusMetrics
from reverie.domain.core.errors import InvalidInput, PayloadTooLarge, Unavailable

DEADLINE: Final = 5.0
"""Seconds within which the server must have stored or answered."""
_NO_MESSAGE_ERRORS: Final = (10037, 10043, 10057)
"""The server's errors for a message that does not exist: one within what it holds has its own."""
CONNECT_SECONDS: Final = 2
CLOSE_SECONDS: Final = 2.0
MAX_RETRY_DELAY: Final = 5.0
_DUPLICATE_SUBJECT_ERROR: Final = "maximum messages per subject exceeded"

log = structlog.get_logger("reverie.bus")


def _retry_delay(failures: int) -> float:
    return min(MAX_RETRY_DELAY, 0.1 * 2.0 ** min(failures, 10))


class NatsBus(MessageBus):
    """The bus on NATS JetStream. Made by `connect`; `close` it at the end."""

    def __init__(
        self,
        url: str,
        name: str,
        replicas: int,
        max_payload: int,
        heartbeat: float,
        metrics: BusMetrics,
        credentials: NatsCredentials,
    ):
        self.max_payload = max_payload
        self.metrics = metrics
        metrics.track_connection(lambda: self.connected)
        self._servers = parse_server_urls(url)
        self._inbox_prefix = inbox_prefix(name if credentials.has_identity else user_from_url(url))
        self._credentials = credentials
        self._url = url
        credentials.connect_options(url)
        self._name = name
        self._replicas = replicas
        self._heartbeat = heartbeat
        self._session: NatsSession | None = None
        self._session_ready = asyncio.Event()
        self._connection_task = asyncio.create_task(
            self._maintain_connection(), name=f"bus connection of {name}"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; the bus cannot be used afterwards."""
        self._connection_task.cancel()
        await asyncio.wait({self._connection_task})

    async def wait_connected(self, timeout_seconds: float) -> bool:
        """Wait up to `timeout_seconds` seconds for the server; whether it is there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self._session_ready.wait()
        return self.connected

    @property
    def connected(self) -> bool:
        return self._session is not None and self._session.client.is_connected

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        session = self._current_session()
        with _translate_errors(len(data), session):
            try:
                await session.run(
                    session.js.publish(subject, data, timeout=DEADLINE, headers=dict(headers))
                )
            except nats.js.errors.APIError as error:
                if _DUPLICATE_SUBJECT_ERROR not in (error.description or ""):
                    raise

    async def deliveries(
        self, spec: ConsumerSpec, prefetch: int = 1
    ) -> AsyncGenerator[NatsDelivery, None]:
        failures = 0
        while True:
            session = await self._wait_for_session()
            try:
                async with aclosing(pull_messages(session, spec, prefetch)) as messages:
                    async for raw in messages:
                        failures = 0
                        if raw is not None:
                            yield NatsDelivery(self, spec, raw)
            except nats.js.errors.ServiceUnavailableError:
                failures += 1
                await self._recreate_consumers(session, spec)
            # Whatever the driver raises, a consumer that ends is worse than one that tries again.
            except Exception as error:
                failures += 1
                log.info("bus_pull_failed", consumer=spec.name, error=type(error).__name__)
            await asyncio.sleep(_retry_delay(failures))

    async def read(self, stream: str, seq: int, subject: str | None = None) -> StoredMessage | None:
        session = self._current_session()
        with _translate_errors(0, session):
            try:
                raw = await session.run(
                    session.js.get_msg(
                        stream, seq=seq, subject=subject, direct=True, next=subject is not None
                    )
                )
            except nats.js.errors.NotFoundError:
                return None
        if raw.seq is None or raw.subject is None or raw.time is None:
            return None
        return StoredMessage(
            raw.seq, raw.subject, raw.data or b"", dict(raw.headers or {}), raw.time
        )

    async def read_page(
        self, stream: str, subject: str, after: int, limit: int
    ) -> list[StoredMessage]:
        session = self._current_session()
        if stream in QUEUES:
            return await self._read_queue_page(stream, subject, after, limit)
        with _translate_errors(0, session):
            return await fetch_page(session, stream, subject, after, limit)

    async def _read_queue_page(
        self, stream: str, subject: str, after: int, limit: int
    ) -> list[StoredMessage]:
        """Reads messages one by one, because a queue allows no consumer besides that of its
        workers."""
        messages: list[StoredMessage] = []
        while len(messages) < limit and (message := await self.read(stream, after + 1, subject)):
            messages.append(message)
            after = message.seq
        return messages

    async def sequence_range(self, stream: str) -> tuple[int, int]:
        session = self._current_session()
        with _translate_errors(0, session):
            state = (await session.run(session.js.stream_info(stream))).state
        return (state.first_seq if state.messages else state.last_seq + 1), state.last_seq

    async def count_messages(self, stream: str) -> int:
        session = self._current_session()
        with _translate_errors(0, session):
            return (await session.run(session.js.stream_info(stream))).state.messages

    async def watch(
        self, stream: str, subject: str, after: int
    ) -> AsyncGenerator[StoredMessage, None]:
        failures = 0
        while True:
            session = await self._wait_for_session()
            try:
                async with aclosing(watch_messages(session, stream, subject, after)) as messages:
                    async for message in messages:
                        failures, after = 0, message.seq
                        yield message
            # Whatever the driver raises, a watch that ends is worse than one that tries again.
            except Exception as error:
                log.info("bus_watch_failed", stream=stream, error=type(error).__name__)
            failures += 1
            await asyncio.sleep(_retry_delay(failures))

    async def remove(self, stream: str, seq: int) -> None:
        # Deletes without overwriting the data, which would take a hundred times as long.
        await self._request_api(
            f"MSG.DELETE.{stream}", {"seq": seq, "no_erase": True}, _NO_MESSAGE_ERRORS
        )

    async def purge(self, stream: str, subject: str) -> int:
        return int((await self._request_api(f"PURGE.{stream}", {"filter": subject}))["purged"])

    async def _request_api(
        self, api_path: str, payload: dict[str, object], ignored_errors: tuple[int, ...] = ()
    ) -> Any:
        """Returns the reply of the server's API. The driver's own calls lack some of its fields."""
        session = self._current_session()
        with _translate_errors(0, session):
            request = session.client.request(
                f"$JS.API.STREAM.{api_path}", json.dumps(payload).encode(), timeout=DEADLINE
            )
            response = json.loads((await session.run(request)).data)
        if "error" in response and response["error"].get("err_code") not in ignored_errors:
            raise Unavailable("NATS JetStream", response["error"].get("description", "it refused"))
        return response

    async def lag(self, spec: ConsumerSpec) -> int:
        session = self._current_session()
        with _translate_errors(0, session):
            if spec.per_tenant:
                return sum(one.unsettled for one in await list_tenant_consumers(session, spec))
            info = await session.run(session.js.consumer_info(spec.stream, spec.name))
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    async def send_ack(self, reply: str, payload: bytes, timeout_seconds: float) -> None:
        """Settles a message and waits for confirmation, on a later connection if this one ended."""
        await self.wait_connected(timeout_seconds)
        session = self._current_session()
        with _translate_errors(0, session):
            await session.run(session.client.request(reply, payload, timeout=DEADLINE))

    async def send_progress(self, reply: str, payload: bytes) -> None:
        """Send a sign of life for a message, unconfirmed."""
        session = self._current_session()
        with _translate_errors(0, session):
            await session.run(session.client.publish(reply, payload))

    def _current_session(self) -> NatsSession:
        if self._session is None or not self._session.client.is_connected:
            raise connection_lost_error()
        return self._session

    async def _wait_for_session(self) -> NatsSession:
        while self._session is None:
            await self._session_ready.wait()
        return self._session

    async def _recreate_consumers(self, session: NatsSession, spec: ConsumerSpec) -> None:
        """Nobody serves the consumer: the stream was lost, or never made."""
        consumers = {consumer.name: consumer for consumer in CONSUMERS} | {spec.name: spec}
        log.warning("bus_consumer_missing", consumer=spec.name, stream=spec.stream)
        with suppress(Unavailable, *DRIVER_ERRORS):
            await session.run(ensure_jetstream(session.js, self._replicas, consumers.values()))

    async def _maintain_connection(self) -> None:
        failures, logged_errors = 0, set[str]()
        while True:
            session = await self._open_session()
            if isinstance(session, NatsSession):
                failures, logged_errors = 0, set()
                await self._run_session(session)
            elif str(session) not in logged_errors:
                logged_errors.add(str(session))
                log.warning("bus_unreachable", client=self._name, error=str(session))
            await asyncio.sleep(_retry_delay(failures))
            failures += 1

    async def _open_session(self) -> NatsSession | Exception:
        """Returns a new connection, or the reason why there is none."""
        client = Client()
        session = NatsSession(client, client.jetstream(timeout=DEADLINE), asyncio.Future())
        errors: list[Exception] = []

        async def remember(error: Exception) -> None:
            errors.append(error)

        async def mark_closed() -> None:
            session.mark_closed()

        try:
            await client.connect(
                self._servers,
                name=self._name,
                inbox_prefix=self._inbox_prefix,
                error_cb=remember,
                closed_cb=mark_closed,
                allow_reconnect=False,
                connect_timeout=CONNECT_SECONDS,
                reconnect_time_wait=0,
                max_reconnect_attempts=1,
                **self._credentials.connect_options(self._url),
            )
        # This task must outlive whatever the driver raises: nobody else would connect again.
        except Exception as error:
            await _close_client(client)
            return (errors or [error])[-1]
        except asyncio.CancelledError:
            await _close_client(client)
            raise
        return session

    async def _run_session(self, session: NatsSession) -> None:
        self._session = session
        self._session_ready.set()
        log.info("bus_connected", client=self._name)
        try:
            while await self._is_alive_after_heartbeat(session):
                pass
            log.warning("bus_disconnected", client=self._name)
        finally:
            self._session = None
            self._session_ready.clear()
            session.mark_closed()
            await _close_client(session.client)

    async def _is_alive_after_heartbeat(self, session: NatsSession) -> bool:
        """Waits one heartbeat; returns whether the server still responds after it."""
        await asyncio.wait({session.closed}, timeout=self._heartbeat)
        if session.closed.done():
            return False
        try:
            await session.run(session.client.rtt(timeout=DEADLINE))  # type: ignore[arg-type]
        except Exception:
            return False
        return True


def connect(
    url: str,
    name: str,
    *,
    replicas: int = 1,
    max_payload: int = MAX_PAYLOAD,
    heartbeat: float = 5.0,
    registry: CollectorRegistry | None = None,
    credentials: NatsCredentials = NO_CREDENTIALS,
) -> NatsBus:
    """Returns a bus that connects in the background, without end.

    Needs a running loop and never waits. `url` may name several servers, separated by commas.
    `heartbeat`: seconds between checks that the server responds. `registry` receives the metrics.
    `credentials`: the identity, if `url` has none. Raises `Misconfigured` for a malformed `url` and
    missing files.
    """
    metrics = BusMetrics(registry or CollectorRegistry())
    return NatsBus(url, name, replicas, max_payload, heartbeat, metrics, credentials)


async def _close_client(client: Client) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()
    # A peer that no longer reads keeps the driver from coming to this line itself.
    if client._transport:
        client._transport.close()  # type: ignore[no-untyped-call]


@contextmanager
def _translate_errors(size: int, session: NatsSession) -> Iterator[None]:
    """The driver's errors as the one error tree."""
    try:
        yield
    except nats.js.errors.NoStreamResponseError as error:
        raise Unavailable("the stream", "run `reverie migrate` to create it") from error
    except nats.js.errors.APIError as error:
        raise Unavailable("NATS JetStream", error.description or "it refused") from error
    except nats.errors.MaxPayloadError as error:
        limit = session.client.max_payload
        raise PayloadTooLarge("payload", size, limit, "max_payload of the NATS server") from error
    except (nats.errors.BadSubjectError, nats.errors.BadHeaderError) as error:
        raise InvalidInput("subject", "not a subject or header that NATS takes") from error
    except DRIVER_ERRORS as error:
        raise Unavailable("NATS", "it did not confirm in time") from error
