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
    """Whether subject and body name the same tenant; False if the tenant was deleted.

    Compares by name. A publisher for one tenant must not cause another tenant's rows to be read.
    Raises `Reject` for a body of another tenant.
    """
    if body_tenant is not None and body_tenant != subject_tenant:
        raise Reject("its body speaks of another tenant than its subject")
    return body_tenant is not None


MAX_PAYLOAD = 512 * 1024
"""Bytes; a larger body is stored first and announced by reference."""


@dataclass(frozen=True)
class Message:
    """A message for a handler.

    `deliveries` counts from 1; it may be delivered again at any time.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    deliveries: int


@dataclass(frozen=True)
class StoredMessage:
    """A message as stored in a stream."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str]
    at: datetime


class Delivery(Protocol):
    """A message delivered to one worker, which must settle it (ack, nak or term).

    Every method raises `Unavailable` if the server did not confirm.
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
        """Reports that the work continues; the acknowledgement deadline restarts."""


class MessageBus(ABC):
    """A JetStream-like bus. Raises `Unavailable` quickly while it is out of reach."""

    max_payload: int = MAX_PAYLOAD
    metrics: BusMetrics = UNREGISTERED_METRICS

    @property
    @abstractmethod
    def connected(self) -> bool:
        """Whether the server can be reached for a publish now."""

    @abstractmethod
    async def send(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        """Stores one message and waits until the server confirms it.

        A repeated `Nats-Msg-Id` header is stored once. If the stream allows one message per subject
        and already has it, the call succeeds. Raises `Unavailable`, `PayloadTooLarge`, or
        `InvalidInput` for a subject that no server accepts.
        """

    @abstractmethod
    def deliveries(self, spec: ConsumerSpec, prefetch: int = 1) -> AsyncGenerator[Delivery, None]:
        """Yields messages for one worker, one at a time, without end; continues after every outage.

        `prefetch`: the maximum number of messages fetched in advance, plus one.
        """

    @abstractmethod
    async def read(self, stream: str, seq: int, subject: str | None = None) -> StoredMessage | None:
        """The message `seq`; with `subject` (a filter), the first at or after it that matches."""

    @abstractmethod
    async def read_page(
        self, stream: str, subject: str, after: int, limit: int
    ) -> list[StoredMessage]:
        """Returns up to `limit` messages after the number `after` that match the filter, in order.

        Returns fewer if others are deleted in the meantime, and an empty list at the end. Raises
        `Unavailable`.
        """

    @abstractmethod
    async def sequence_range(self, stream: str) -> tuple[int, int]:
        """Returns the numbers of the first message in a stream and of the last one ever stored.

        The first is one above the last if the stream is empty. Raises `Unavailable`.
        """

    @abstractmethod
    async def count_messages(self, stream: str) -> int:
        """Counts the messages of a stream. Raises `Unavailable`."""

    @abstractmethod
    def watch(self, stream: str, subject: str, after: int) -> AsyncGenerator[StoredMessage, None]:
        """Yields the messages of a stream after the number `after`, then new ones: in order, each
        once.

        `subject` is a filter. It never ends and continues after every outage; no message is
        settled.
        """

    @abstractmethod
    async def remove(self, stream: str, seq: int) -> None:
        """Delete one message from a stream; a missing one is fine."""

    @abstractmethod
    async def purge(self, stream: str, subject: str) -> int:
        """Deletes all messages of a stream whose subject matches the filter; returns the count."""

    @abstractmethod
    async def lag(self, spec: ConsumerSpec) -> int:
        """Messages that the consumer has not acknowledged: waiting and in work."""

    async def publish(self, outgoing: OutgoingEvent) -> None:
        """Put an event on the bus, once per `outgoing.id`, in the trace that wrote it.

        Raises `PayloadTooLarge` above `max_payload`, `InvalidInput`, and `Unavailable` if it is
        not stored.
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
