"""The NATS side of the bus: one connection that is kept for ever, and the primitives.

The driver's own reconnection is off: it gives up for good on some server errors and buffers
what is published meanwhile. Here a lost connection is replaced by a new one, and what was
asked of the old one fails at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from typing import Any, Final, Self, TypeVar

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from prometheus_client import CollectorRegistry

from reverie.bus.connected import Connected, down
from reverie.bus.credentials import NOBODY, Credentials
from reverie.bus.delivery import NatsDelivery
from reverie.bus.meters import BusMeters
from reverie.bus.permissions import inbox_of, user_in
from reverie.bus.port import MAX_PAYLOAD, Bus, Stored
from reverie.bus.pulling import DRIVER_ERRORS, next_of, pulling
from reverie.bus.streams import CONSUMERS, QUEUES, ConsumerSpec, ensure, servers
from reverie.bus.watching import paged, watched
from reverie.domain.errors import Invalid, TooLarge, Unavailable

T = TypeVar("T")

DEADLINE: Final = 5.0
"""Seconds within which the server must have stored or answered."""
_MISSING: Final = (404, 500)
"""What the server says, either way, of a message that is not there."""
CONNECT_SECONDS: Final = 2
CLOSE_SECONDS: Final = 2.0
SLOWEST_RETRY: Final = 5.0
_TICKET_IS_THERE: Final = "maximum messages per subject exceeded"

log = structlog.get_logger("reverie.bus")


def _pause(failures: int) -> float:
    return min(SLOWEST_RETRY, 0.1 * 2.0 ** min(failures, 10))


class NatsBus(Bus):
    """The bus on NATS JetStream. Made by `connect`; `close` it at the end."""

    def __init__(
        self,
        url: str,
        name: str,
        replicas: int,
        max_payload: int,
        heartbeat: float,
        meters: BusMeters,
        credentials: Credentials,
    ):
        self.max_payload = max_payload
        self.meters = meters
        meters.connected(lambda: self.connected)
        self._servers = servers(url)
        self._inbox = inbox_of(name if credentials.named else user_in(url))
        self._credentials = credentials
        self._url = url
        credentials.options(url)
        self._name = name
        self._replicas = replicas
        self._heartbeat = heartbeat
        self._life: Connected | None = None
        self._up = asyncio.Event()
        self._keeper = asyncio.create_task(self._keep(), name=f"bus keeper of {name}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; the bus cannot be used afterwards."""
        self._keeper.cancel()
        await asyncio.wait({self._keeper})

    async def wait_connected(self, patience: float) -> bool:
        """Wait up to `patience` seconds for the server; whether it is there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._up.wait()
        return self.connected

    @property
    def connected(self) -> bool:
        return self._life is not None and self._life.client.is_connected

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        life = self._living()
        with _translated(len(data), life):
            try:
                await life.run(
                    life.js.publish(subject, data, timeout=DEADLINE, headers=dict(headers))
                )
            except nats.js.errors.APIError as error:
                if _TICKET_IS_THERE not in (error.description or ""):
                    raise

    async def deliveries(
        self, spec: ConsumerSpec, ahead: int = 1
    ) -> AsyncGenerator[NatsDelivery, None]:
        failures = 0
        while True:
            life = await self._alive()
            try:
                async with pulling(life, spec) as pull:
                    while True:
                        raw = await next_of(life, pull, ahead)
                        failures = 0
                        if raw is not None:
                            yield NatsDelivery(self, spec, raw)
            except nats.js.errors.ServiceUnavailableError:
                failures += 1
                await self._restore(life, spec)
            # Whatever the driver raises, a consumer that ends is worse than one that tries again.
            except Exception as error:
                failures += 1
                log.info("bus_pull_failed", consumer=spec.name, error=type(error).__name__)
            await asyncio.sleep(_pause(failures))

    async def read(self, stream: str, seq: int, subject: str | None = None) -> Stored | None:
        life = self._living()
        with _translated(0, life):
            try:
                raw = await life.run(
                    life.js.get_msg(
                        stream, seq=seq, subject=subject, direct=True, next=subject is not None
                    )
                )
            except nats.js.errors.NotFoundError:
                return None
        if raw.seq is None or raw.subject is None or raw.time is None:
            return None
        return Stored(raw.seq, raw.subject, raw.data or b"", dict(raw.headers or {}), raw.time)

    async def page(self, stream: str, subject: str, after: int, limit: int) -> list[Stored]:
        life = self._living()
        if stream in QUEUES:
            return await self._read_on(stream, subject, after, limit)
        with _translated(0, life):
            return await paged(life, stream, subject, after, limit)

    async def _read_on(self, stream: str, subject: str, after: int, limit: int) -> list[Stored]:
        """One by one: a queue has no consumer beside that of its workers."""
        page: list[Stored] = []
        while len(page) < limit and (found := await self.read(stream, after + 1, subject)):
            page.append(found)
            after = found.seq
        return page

    async def ends(self, stream: str) -> tuple[int, int]:
        life = self._living()
        with _translated(0, life):
            state = (await life.run(life.js.stream_info(stream))).state
        return (state.first_seq if state.messages else state.last_seq + 1), state.last_seq

    async def held(self, stream: str) -> int:
        life = self._living()
        with _translated(0, life):
            return (await life.run(life.js.stream_info(stream))).state.messages

    async def watch(self, stream: str, subject: str, after: int) -> AsyncGenerator[Stored, None]:
        failures = 0
        while True:
            life = await self._alive()
            try:
                async with aclosing(watched(life, stream, subject, after)) as found:
                    async for stored in found:
                        failures, after = 0, stored.seq
                        yield stored
            # Whatever the driver raises, a watch that ends is worse than one that tries again.
            except Exception as error:
                log.info("bus_watch_failed", stream=stream, error=type(error).__name__)
            failures += 1
            await asyncio.sleep(_pause(failures))

    async def remove(self, stream: str, seq: int) -> None:
        # Without writing over it, which would take a hundred times as long.
        await self._ask(f"MSG.DELETE.{stream}", {"seq": seq, "no_erase": True}, _MISSING)

    async def purge(self, stream: str, subject: str) -> int:
        return int((await self._ask(f"PURGE.{stream}", {"filter": subject}))["purged"])

    async def _ask(self, call: str, asked: dict[str, object], fine: tuple[int, ...] = ()) -> Any:
        """What the server answers: by hand, for the driver's own calls know less."""
        life = self._living()
        with _translated(0, life):
            sent = life.client.request(
                f"$JS.API.STREAM.{call}", json.dumps(asked).encode(), timeout=DEADLINE
            )
            told = json.loads((await life.run(sent)).data)
        if "error" in told and told["error"].get("code") not in fine:
            raise Unavailable("NATS JetStream", told["error"].get("description", "it refused"))
        return told

    async def lag(self, spec: ConsumerSpec) -> int:
        life = self._living()
        with _translated(0, life):
            info = await life.run(life.js.consumer_info(spec.stream, spec.name))
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    async def answer(self, reply: str, verdict: bytes, patience: float) -> None:
        """Settle a message and see it confirmed, on a later connection if this one ended."""
        await self.wait_connected(patience)
        life = self._living()
        with _translated(0, life):
            await life.run(life.client.request(reply, verdict, timeout=DEADLINE))

    async def tell(self, reply: str, verdict: bytes) -> None:
        """Send a sign of life for a message, unconfirmed."""
        life = self._living()
        with _translated(0, life):
            await life.run(life.client.publish(reply, verdict))

    def _living(self) -> Connected:
        if self._life is None or not self._life.client.is_connected:
            raise down()
        return self._life

    async def _alive(self) -> Connected:
        while self._life is None:
            await self._up.wait()
        return self._life

    async def _restore(self, life: Connected, spec: ConsumerSpec) -> None:
        """Nobody serves the consumer: the stream was lost, or never made."""
        consumers = {known.name: known for known in CONSUMERS} | {spec.name: spec}
        log.warning("bus_consumer_missing", consumer=spec.name, stream=spec.stream)
        with suppress(Unavailable, *DRIVER_ERRORS):
            await life.run(ensure(life.js, self._replicas, consumers.values()))

    async def _keep(self) -> None:
        failures, told = 0, set[str]()
        while True:
            life = await self._open()
            if isinstance(life, Connected):
                failures, told = 0, set()
                await self._live_through(life)
            elif str(life) not in told:
                told.add(str(life))
                log.warning("bus_unreachable", client=self._name, error=str(life))
            await asyncio.sleep(_pause(failures))
            failures += 1

    async def _open(self) -> Connected | Exception:
        """A new connection, or why there is none."""
        client = Client()
        life = Connected(client, client.jetstream(timeout=DEADLINE), asyncio.Future())
        why: list[Exception] = []

        async def remember(error: Exception) -> None:
            why.append(error)

        try:
            await client.connect(
                self._servers,
                name=self._name,
                inbox_prefix=self._inbox,
                error_cb=remember,
                closed_cb=_ending(life),
                allow_reconnect=False,
                connect_timeout=CONNECT_SECONDS,
                reconnect_time_wait=0,
                max_reconnect_attempts=1,
                **self._credentials.options(self._url),
            )
        # The keeper must outlive whatever the driver raises: nobody else would connect again.
        except Exception as error:
            await _shut(client)
            return (why or [error])[-1]
        except asyncio.CancelledError:
            await _shut(client)
            raise
        return life

    async def _live_through(self, life: Connected) -> None:
        self._life = life
        self._up.set()
        log.info("bus_connected", client=self._name)
        try:
            while await self._beats(life):
                pass
            log.warning("bus_lost", client=self._name)
        finally:
            self._life = None
            self._up.clear()
            life.end()
            await _shut(life.client)

    async def _beats(self, life: Connected) -> bool:
        """Wait one heartbeat; whether the server still answers after it."""
        await asyncio.wait({life.gone}, timeout=self._heartbeat)
        if life.gone.done():
            return False
        try:
            await life.run(life.client.rtt(timeout=DEADLINE))  # type: ignore[arg-type]
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
    credentials: Credentials = NOBODY,
) -> NatsBus:
    """A bus that connects in the background and for ever; needs a running loop, never waits.

    `url` may name several servers, separated by commas. `heartbeat`: seconds between checks
    that the server answers. `registry` takes what is counted. `credentials`: who connects, where
    `url` does not say. Raises `Misconfigured` for a malformed `url` and files that are missing.
    """
    meters = BusMeters(registry or CollectorRegistry())
    return NatsBus(url, name, replicas, max_payload, heartbeat, meters, credentials)


def _ending(life: Connected) -> Any:
    async def closed() -> None:
        life.end()

    return closed


async def _shut(client: Client) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()
    # A peer that no longer reads keeps the driver from coming to this line itself.
    if client._transport:
        client._transport.close()  # type: ignore[no-untyped-call]


@contextmanager
def _translated(size: int, life: Connected) -> Iterator[None]:
    """The driver's errors as the one error tree."""
    try:
        yield
    except nats.js.errors.NoStreamResponseError as error:
        raise Unavailable("the stream", "run `reverie migrate` to create it") from error
    except nats.js.errors.APIError as error:
        raise Unavailable("NATS JetStream", error.description or "it refused") from error
    except nats.errors.MaxPayloadError as error:
        limit = life.client.max_payload
        raise TooLarge("payload", size, limit, "max_payload of the NATS server") from error
    except (nats.errors.BadSubjectError, nats.errors.BadHeaderError) as error:
        raise Invalid("subject", "not a subject or header that NATS takes") from error
    except DRIVER_ERRORS as error:
        raise Unavailable("NATS", "it did not confirm in time") from error
