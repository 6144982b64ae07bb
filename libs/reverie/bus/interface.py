"""The bus interface, with its messages and errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from reverie.bus import telemetry
from reverie.bus.streams import ConsumerSpec
from reverie.bus.telemetry import UNREGISTERED_METRICS, BusMetrics
from reverie.contracts.events import OutgoingEvent
from reverie.domain.core.errors import PayloadTooLarge


class Retry(Exception):
    """The message is to be delivered again after `delay` seconds; it counts as a delivery."""

    def __init__(self, delay: float = 1.0, reason: str = "the handler asked for another try"):
        super().__init__(reason)
        self.delay = delay


class Reject(Exception):
    """The message can never be handled: it goes to the dead letters with the reason."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def verify_tenant(subject_tenant: str, body_tenant: str | None) -> bool:
    """Whether subject and body of a message speak of one tenant, by name; False where it is gone.

    Who may publish for one tenant must not have another's rows read. Raises `Reject` for a body of
    another tenant.
    """
    if body_tenant is not None and body_tenant != subject_tenant:
        raise Reject("its body speaks of another tenant than its subject")
    return body_tenant is not None


MAX_PAYLOAD = 512 * 1024
"""Bytes; a larger body is stored first and announced by reference."""


@dataclass(frozen=True)
class Message:
    """What a handler gets. `deliveries` counts from 1; a second one may come at any time."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    deliveries: int


@dataclass(frozen=True)
class StoredMessage:
    """A message as it lies in a stream."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str]
    at: datetime


class Delivery(Protocol):
    """A message in the hands of one worker, which must settle it (ack, nak or term).

    Every method raises `Unavailable` where the server did not confirm.
    """

    @property
    def message(self) -> Message: ...

    @property
    def seq(self) -> int:
        """The number of the message in its stream."""

    async def ack(self) -> None:
        """Done: never again."""

    async def nak(self, delay: float) -> None:
        """Deliver again after `delay` seconds; 0 means at once."""

    async def term(self) -> None:
        """Never again, though it was not done."""

    async def progress(self) -> None:
        """Still at it: the acknowledgement deadline starts anew."""


class MessageBus(ABC):
    """A JetStream-like bus. Raises `Unavailable` quickly while it is out of reach."""

    max_payload: int = MAX_PAYLOAD
    metrics: BusMetrics = UNREGISTERED_METRICS

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether a publish would reach the server now."""

    @abstractmethod
    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Store one message and wait for the server's word that it did.

        A repeated `Nats-Msg-Id` header is stored once. Where the stream holds one message per
        subject and has it already, the call counts as done.
        Raises `Unavailable`, `PayloadTooLarge`, `Invalid` (a subject no server takes).
        """

    @abstractmethod
    def deliveries(self, spec: ConsumerSpec, prefetch: int = 1) -> AsyncGenerator[Delivery, None]:
        """Messages for one worker, one at a time, for ever; outlives every outage.

        `prefetch`: how many it may hold that nobody asked for yet, less one.
        """

    @abstractmethod
    async def read(self, stream: str, seq: int, subject: str | None = None) -> StoredMessage | None:
        """The message `seq`; with `subject` (a filter), the first at or after it that matches."""

    @abstractmethod
    async def read_page(
        self, stream: str, subject: str, after: int, limit: int
    ) -> list[StoredMessage]:
        """Up to `limit` messages after the number `after` that match the filter, in order.

        Fewer where others are deleted meanwhile; none where none is left. Raises `Unavailable`.
        """

    @abstractmethod
    async def sequence_range(self, stream: str) -> tuple[int, int]:
        """The number of the first message that a stream holds, and of the last it ever took.

        The first is one above the last where it holds none. Raises `Unavailable`.
        """

    @abstractmethod
    async def count_messages(self, stream: str) -> int:
        """How many messages a stream holds. Raises `Unavailable`."""

    @abstractmethod
    def watch(self, stream: str, subject: str, after: int) -> AsyncGenerator[StoredMessage, None]:
        """What lies in a stream after the number `after`, then what comes: in order, each once.

        `subject` is a filter. It goes on for ever and outlives every outage; nothing is settled.
        """

    @abstractmethod
    async def remove(self, stream: str, seq: int) -> None:
        """Delete one message from a stream; a missing one is fine."""

    @abstractmethod
    async def purge(self, stream: str, subject: str) -> int:
        """Delete all messages of a stream whose subject fits the filter; how many."""

    @abstractmethod
    async def lag(self, spec: ConsumerSpec) -> int:
        """Messages that the consumer has not acknowledged: waiting and in work."""

    async def publish(self, outgoing: OutgoingEvent) -> None:
        """Put an event on the bus, once per `outgoing.id`, in the trace that wrote it.

        Raises `PayloadTooLarge` above `max_payload`, `Invalid`, and `Unavailable` when it is not
        stored.
        """
        data = outgoing.payload.encode()
        if len(data) > self.max_payload:
            raise PayloadTooLarge(
                "payload",
                len(data),
                self.max_payload,
                "max_payload of the bus",
            )
        with (
            telemetry.publish_span(outgoing.subject, outgoing.headers) as headers,
            self.metrics.time_publish(outgoing.subject),
        ):
            await self.send(outgoing.subject, data, {**headers, "Nats-Msg-Id": str(outgoing.id)})
