"""An in-memory message bus for tests, with the behaviour of the NATS bus."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf

from reverie.bus.interface import MAX_PAYLOAD, Delivery, Message, MessageBus, StoredMessage
from reverie.bus.streams import (
    DEAD_LETTER_WATCHER,
    STREAMS,
    ConsumerSpec,
    StreamSpec,
    subject_matches,
)
from reverie.domain.core.errors import InvalidInput, Unavailable

_MAX_DELIVERIES_SUBJECT = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"


@dataclass
class _Stream:
    spec: StreamSpec
    messages: dict[int, StoredMessage] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    last: int = 0


@dataclass
class _DeliveryState:
    """A message that was delivered: how often, and when (loop time) it may be again."""

    deliveries: int = 0
    due_at: float = 0.0
    settled: bool = False


class InMemoryBus(MessageBus):
    """A bus of one process. `connected` may be set to False to play an outage."""

    connected: bool = True

    def __init__(self, max_payload: int = MAX_PAYLOAD):
        self.max_payload = max_payload
        self._streams = {spec.name: _Stream(spec) for spec in STREAMS}
        self._delivery_states: dict[tuple[str, int], _DeliveryState] = {}
        self._changed = asyncio.Event()

    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        self._check()
        if (
            not subject
            or re.search(r"\s", subject)
            or any(re.search(r"\s", name) for name in headers)
        ):
            raise InvalidInput("subject", "not a subject or header that NATS takes")
        stream = self._find_stream(subject)
        message_id = headers.get("Nats-Msg-Id")
        if message_id in stream.ids:
            return
        is_occupied = any(message.subject == subject for message in stream.messages.values())
        if stream.spec.one_per_subject and is_occupied:
            return
        self._store(stream, subject, data, headers)
        if message_id:
            stream.ids.add(message_id)

    async def deliveries(
        self, spec: ConsumerSpec, prefetch: int = 1
    ) -> AsyncGenerator[Delivery, None]:
        while True:
            self._changed.clear()
            delivery = self._next_delivery(spec) if self.connected else None
            if delivery is not None:
                yield delivery
                continue
            await self._wait_until_due(spec)

    async def read(self, stream: str, seq: int, subject: str | None = None) -> StoredMessage | None:
        self._check()
        messages = self._streams[stream].messages
        if subject is None:
            return messages.get(seq)
        matching = (
            message
            for number, message in sorted(messages.items())
            if number >= seq and subject_matches(subject, message.subject)
        )
        return next(matching, None)

    async def read_page(
        self, stream: str, subject: str, after: int, limit: int
    ) -> list[StoredMessage]:
        self._check()
        messages = sorted(self._streams[stream].messages.items())
        return [
            message
            for number, message in messages
            if number > after and subject_matches(subject, message.subject)
        ][:limit]

    async def sequence_range(self, stream: str) -> tuple[int, int]:
        self._check()
        found = self._streams[stream]
        return min(found.messages, default=found.last + 1), found.last

    async def count_messages(self, stream: str) -> int:
        self._check()
        return len(self._streams[stream].messages)

    async def watch(
        self, stream: str, subject: str, after: int
    ) -> AsyncGenerator[StoredMessage, None]:
        while True:
            self._changed.clear()
            message = await self.read(stream, after + 1, subject) if self.connected else None
            if message is not None:
                after = message.seq
                yield message
                continue
            await self._wait_for_change(1.0 if self.connected else 0.01)

    async def remove(self, stream: str, seq: int) -> None:
        self._check()
        self._streams[stream].messages.pop(seq, None)

    async def purge(self, stream: str, subject: str) -> int:
        self._check()
        messages = self._streams[stream].messages
        removed = [
            seq for seq, message in messages.items() if subject_matches(subject, message.subject)
        ]
        for seq in removed:
            del messages[seq]
        return len(removed)

    async def lag(self, spec: ConsumerSpec) -> int:
        self._check()
        return sum(
            not self._delivery_state(spec, seq).settled for seq in self._matching_sequences(spec)
        )

    def settle(self, spec: ConsumerSpec, seq: int) -> None:
        """Never deliver it again; a queue forgets it."""
        self._check()
        self._delivery_state(spec, seq).settled = True
        stream = self._streams[spec.stream]
        if stream.spec.queue:
            stream.messages.pop(seq, None)

    def postpone(self, spec: ConsumerSpec, seq: int, delay: float) -> None:
        """Deliver it again after `delay` seconds."""
        self._check()
        self._delivery_state(spec, seq).due_at = _now() + delay
        self._changed.set()

    def _check(self) -> None:
        if not self.connected:
            raise Unavailable("NATS", "the connection is down; it is being re-established")

    def _find_stream(self, subject: str) -> _Stream:
        for stream in self._streams.values():
            if any(subject_matches(pattern, subject) for pattern in stream.spec.subjects):
                return stream
        raise Unavailable("the stream", "run `reverie migrate` to create it")

    def _store(
        self, stream: _Stream, subject: str, data: bytes, headers: Mapping[str, str]
    ) -> None:
        stream.last += 1
        message = StoredMessage(stream.last, subject, data, dict(headers), datetime.now(UTC))
        stream.messages[stream.last] = message
        self._changed.set()

    def _delivery_state(self, spec: ConsumerSpec, seq: int) -> _DeliveryState:
        return self._delivery_states.setdefault((spec.name, seq), _DeliveryState())

    def _matching_sequences(self, spec: ConsumerSpec) -> list[int]:
        messages = self._streams[spec.stream].messages.items()
        return [seq for seq, message in messages if subject_matches(spec.filter, message.subject)]

    def _next_delivery(self, spec: ConsumerSpec) -> Delivery | None:
        for seq in self._matching_sequences(spec):
            state = self._delivery_state(spec, seq)
            if state.settled or state.due_at > _now():
                continue
            if 0 < spec.max_deliver <= state.deliveries:
                self._give_up(spec, seq, state)
                continue
            state.deliveries += 1
            state.due_at = _now() + spec.ack_wait
            stored = self._streams[spec.stream].messages[seq]
            message = Message(stored.subject, stored.data, stored.headers, state.deliveries)
            return _Delivery(self, spec, seq, message)
        return None

    def _give_up(self, spec: ConsumerSpec, seq: int, state: _DeliveryState) -> None:
        state.settled = True
        advisory = {
            "stream": spec.stream,
            "consumer": spec.name,
            "stream_seq": seq,
            "deliveries": state.deliveries,
        }
        subject = f"{_MAX_DELIVERIES_SUBJECT}.{spec.stream}.{spec.name}"
        self._store(
            self._streams[DEAD_LETTER_WATCHER.stream], subject, json.dumps(advisory).encode(), {}
        )

    async def _wait_until_due(self, spec: ConsumerSpec) -> None:
        """Until something was stored or handed back, or a delivery becomes due again."""
        states = (self._delivery_state(spec, seq) for seq in self._matching_sequences(spec))
        due = min((state.due_at for state in states if not state.settled), default=inf)
        # An outage ends without an event of its own.
        delay = min(due - _now(), 1.0 if self.connected else 0.01)
        await self._wait_for_change(max(delay, 0))

    async def _wait_for_change(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return


@dataclass(frozen=True)
class _Delivery:
    bus: InMemoryBus
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
