"""The bus in memory: the same face and manners as on NATS, without a server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf

from reverie.bus.port import MAX_PAYLOAD, Bus, Delivery, Message, Stored
from reverie.bus.streams import DEAD_WATCH, STREAMS, ConsumerSpec, StreamSpec, matches
from reverie.domain.errors import Invalid, Unavailable

_GIVEN_UP = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"


@dataclass
class _Stream:
    spec: StreamSpec
    messages: dict[int, Stored] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    last: int = 0


@dataclass
class _Flight:
    """A message that was delivered: how often, and when (loop time) it may be again."""

    deliveries: int = 0
    due: float = 0.0
    settled: bool = False


class MemoryBus(Bus):
    """A bus of one process. `connected` may be set to False to play an outage."""

    connected: bool = True

    def __init__(self, max_payload: int = MAX_PAYLOAD):
        self.max_payload = max_payload
        self._streams = {spec.name: _Stream(spec) for spec in STREAMS}
        self._flights: dict[tuple[str, int], _Flight] = {}
        self._news = asyncio.Event()

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        self._check()
        if not subject or re.search(r"\s", subject) or any(re.search(r"\s", n) for n in headers):
            raise Invalid("subject", "not a subject or header that NATS takes")
        stream = self._stream_of(subject)
        once = headers.get("Nats-Msg-Id")
        if once in stream.ids:
            return
        occupied = any(m.subject == subject for m in stream.messages.values())
        if stream.spec.one_per_subject and occupied:
            return
        self._store(stream, subject, data, headers)
        if once:
            stream.ids.add(once)

    async def deliveries(
        self, spec: ConsumerSpec, ahead: int = 1
    ) -> AsyncGenerator[Delivery, None]:
        while True:
            self._news.clear()
            found = self._take(spec) if self.connected else None
            if found is not None:
                yield found
                continue
            await self._wait(spec)

    async def read(self, stream: str, seq: int, subject: str | None = None) -> Stored | None:
        self._check()
        messages = self._streams[stream].messages
        if subject is None:
            return messages.get(seq)
        later = (m for n, m in sorted(messages.items()) if n >= seq and matches(subject, m.subject))
        return next(later, None)

    async def page(self, stream: str, subject: str, after: int, limit: int) -> list[Stored]:
        self._check()
        held = sorted(self._streams[stream].messages.items())
        return [m for n, m in held if n > after and matches(subject, m.subject)][:limit]

    async def ends(self, stream: str) -> tuple[int, int]:
        self._check()
        held = self._streams[stream]
        return min(held.messages, default=held.last + 1), held.last

    async def held(self, stream: str) -> int:
        self._check()
        return len(self._streams[stream].messages)

    async def watch(self, stream: str, subject: str, after: int) -> AsyncGenerator[Stored, None]:
        while True:
            self._news.clear()
            found = await self.read(stream, after + 1, subject) if self.connected else None
            if found is not None:
                after = found.seq
                yield found
                continue
            await self._until_news(1.0 if self.connected else 0.01)

    async def remove(self, stream: str, seq: int) -> None:
        self._check()
        self._streams[stream].messages.pop(seq, None)

    async def purge(self, stream: str, subject: str) -> int:
        self._check()
        messages = self._streams[stream].messages
        gone = [seq for seq, one in messages.items() if matches(subject, one.subject)]
        for seq in gone:
            del messages[seq]
        return len(gone)

    async def lag(self, spec: ConsumerSpec) -> int:
        self._check()
        return sum(not self._flight(spec, seq).settled for seq in self._matching(spec))

    def settle(self, spec: ConsumerSpec, seq: int) -> None:
        """Never deliver it again; a queue forgets it."""
        self._check()
        self._flight(spec, seq).settled = True
        stream = self._streams[spec.stream]
        if stream.spec.queue:
            stream.messages.pop(seq, None)

    def postpone(self, spec: ConsumerSpec, seq: int, delay: float) -> None:
        """Deliver it again after `delay` seconds."""
        self._check()
        self._flight(spec, seq).due = _now() + delay
        self._news.set()

    def _check(self) -> None:
        if not self.connected:
            raise Unavailable("NATS", "the connection is down; it is being re-established")

    def _stream_of(self, subject: str) -> _Stream:
        for stream in self._streams.values():
            if any(matches(pattern, subject) for pattern in stream.spec.subjects):
                return stream
        raise Unavailable("the stream", "run `reverie migrate` to create it")

    def _store(
        self, stream: _Stream, subject: str, data: bytes, headers: Mapping[str, str]
    ) -> None:
        stream.last += 1
        message = Stored(stream.last, subject, data, dict(headers), datetime.now(UTC))
        stream.messages[stream.last] = message
        self._news.set()

    def _flight(self, spec: ConsumerSpec, seq: int) -> _Flight:
        return self._flights.setdefault((spec.name, seq), _Flight())

    def _matching(self, spec: ConsumerSpec) -> list[int]:
        messages = self._streams[spec.stream].messages.items()
        return [seq for seq, m in messages if matches(spec.filter, m.subject)]

    def _take(self, spec: ConsumerSpec) -> Delivery | None:
        for seq in self._matching(spec):
            flight = self._flight(spec, seq)
            if flight.settled or flight.due > _now():
                continue
            if 0 < spec.max_deliver <= flight.deliveries:
                self._give_up(spec, seq, flight)
                continue
            flight.deliveries += 1
            flight.due = _now() + spec.ack_wait
            stored = self._streams[spec.stream].messages[seq]
            message = Message(stored.subject, stored.data, stored.headers, flight.deliveries)
            return _Delivery(self, spec, seq, message)
        return None

    def _give_up(self, spec: ConsumerSpec, seq: int, flight: _Flight) -> None:
        flight.settled = True
        told = {
            "stream": spec.stream,
            "consumer": spec.name,
            "stream_seq": seq,
            "deliveries": flight.deliveries,
        }
        subject = f"{_GIVEN_UP}.{spec.stream}.{spec.name}"
        self._store(self._streams[DEAD_WATCH.stream], subject, json.dumps(told).encode(), {})

    async def _wait(self, spec: ConsumerSpec) -> None:
        """Until something was stored or handed back, or a delivery becomes due again."""
        flights = (self._flight(spec, seq) for seq in self._matching(spec))
        due = min((f.due for f in flights if not f.settled), default=inf)
        # An outage ends without an event of its own.
        pause = min(due - _now(), 1.0 if self.connected else 0.01)
        await self._until_news(max(pause, 0))

    async def _until_news(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return


@dataclass(frozen=True)
class _Delivery:
    bus: MemoryBus
    spec: ConsumerSpec
    seq: int
    message: Message

    async def ack(self) -> None:
        self.bus.settle(self.spec, self.seq)

    async def nak(self, delay: float) -> None:
        self.bus.postpone(self.spec, self.seq, delay)

    async def term(self) -> None:
        self.bus.settle(self.spec, self.seq)

    async def progress(self) -> None:
        self.bus.postpone(self.spec, self.seq, self.spec.ack_wait)


def _now() -> float:
    return asyncio.get_running_loop().time()
