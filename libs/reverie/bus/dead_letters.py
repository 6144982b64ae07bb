"""Dead letters: messages that no worker could handle are stored, listed and replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import structlog

from reverie.bus.interface import Message, MessageBus, Reject, StoredMessage
from reverie.bus.streams import QUEUES, is_own_consumer
from reverie.contracts.events import DEAD_LETTER_STREAM, OutgoingEvent, build_outgoing_event
from reverie.domain.core.errors import Conflict, NotFound

HEADER_PREFIX: Final = "Reverie-Dead-"
REASON_HEADER: Final = HEADER_PREFIX + "Reason"
STREAM_HEADER: Final = HEADER_PREFIX + "Stream"
CONSUMER_HEADER: Final = HEADER_PREFIX + "Consumer"
SUBJECT_HEADER: Final = HEADER_PREFIX + "Subject"
REF_HEADER: Final = HEADER_PREFIX + "Ref"
DELIVERIES_HEADER: Final = HEADER_PREFIX + "Deliveries"
TIME_HEADER: Final = HEADER_PREFIX + "At"
DROPPED_BYTES_HEADER: Final = HEADER_PREFIX + "Dropped-Bytes"

log = structlog.get_logger("reverie.bus")


@dataclass(frozen=True)
class DeadLetterOrigin:
    """Origin of a dead letter: stream, component that gave it up, and sequence or row there."""

    stream: str
    consumer: str
    ref: str


@dataclass(frozen=True)
class DeadLetter:
    """One buried message; `seq` is its number in `DEAD_LETTER_STREAM`.

    `dropped_bytes`: the size in bytes of a body that was too large to keep, else 0.
    """

    seq: int
    origin: DeadLetterOrigin
    subject: str
    reason: str
    deliveries: int
    at: datetime
    dropped_bytes: int
    data: bytes
    headers: Mapping[str, str]


async def publish_dead_letter(
    bus: MessageBus, origin: DeadLetterOrigin, message: Message, reason: str
) -> None:
    """Copy a message to `DEAD_LETTER_STREAM`, once per origin. Raises `Unavailable`."""
    origin_headers = _dead_letter_headers(origin, message.subject, message.deliveries, reason)
    message_id = uuid5(
        NAMESPACE_URL, f"{origin.stream}/{origin.consumer}/{origin.ref}/{message.subject}"
    )
    headers = {
        **_sender_headers(message.headers),
        **origin_headers,
        "Nats-Msg-Id": str(message_id),
    }
    data = message.data
    if len(data) > bus.max_payload:
        # Only a foreign publisher can have sent it.
        data, headers[DROPPED_BYTES_HEADER] = b"", str(len(data))
    await bus.send(f"dead.{origin.stream}.{message.subject}", data, headers)


def build_dead_letter_event(
    tenant: int, origin: DeadLetterOrigin, event: OutgoingEvent, deliveries: int, reason: str
) -> OutgoingEvent:
    """The dead letter of an event, to be stored with whatever gives it up and published after."""
    origin_headers = _dead_letter_headers(origin, event.subject, deliveries, reason)
    subject = f"dead.{origin.stream}.{event.subject}"
    body = json.loads(event.payload)
    return build_outgoing_event(
        tenant, subject, body, {**_sender_headers(event.headers), **origin_headers}, event.id
    )


def _dead_letter_headers(
    origin: DeadLetterOrigin, subject: str, deliveries: int, reason: str
) -> dict[str, str]:
    return {
        REASON_HEADER: reason,
        STREAM_HEADER: origin.stream,
        CONSUMER_HEADER: origin.consumer,
        REF_HEADER: origin.ref,
        SUBJECT_HEADER: subject,
        DELIVERIES_HEADER: str(deliveries),
        TIME_HEADER: datetime.now(UTC).isoformat(),
    }


def _sender_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The sender's headers, without those that steered or described an earlier delivery."""
    return {
        name: value
        for name, value in headers.items()
        if not name.startswith(("Nats-", HEADER_PREFIX))
    }


async def list_dead_letters(
    bus: MessageBus,
    stream: str | None = None,
    limit: int = 50,
    after: int = 0,
    tenant: str | None = None,
) -> list[DeadLetter]:
    """Up to `limit` dead letters in order, those after number `after`.

    Those of one stream and of one tenant, if named.
    """
    letters: list[DeadLetter] = []
    async for letter in _iterate_dead_letters(bus, stream, after, tenant):
        letters.append(letter)
        if len(letters) >= limit:
            break
    return letters


async def load_dead_letter(bus: MessageBus, seq: int, tenant: str | None = None) -> DeadLetter:
    """One dead letter. Raises `NotFound` for an unknown number, or one of another tenant."""
    stored = await bus.read(DEAD_LETTER_STREAM, seq)
    letter = _parse_dead_letter(stored) if stored else None
    if letter is None or tenant not in (None, letter.subject.split(".")[1]):
        raise NotFound("dead letter", str(seq))
    return letter


async def _iterate_dead_letters(
    bus: MessageBus, stream: str | None, after: int, tenant: str | None = None
) -> AsyncIterator[DeadLetter]:
    subject = f"dead.{stream or '*'}.*.{tenant or '*'}.>"
    while stored := await bus.read(DEAD_LETTER_STREAM, after + 1, subject):
        yield _parse_dead_letter(stored)
        after = stored.seq


def _parse_dead_letter(stored: StoredMessage) -> DeadLetter:
    headers = stored.headers
    stream, subject = stored.subject.split(".", 2)[1:]
    return DeadLetter(
        seq=stored.seq,
        origin=DeadLetterOrigin(
            stream, headers.get(CONSUMER_HEADER, ""), headers.get(REF_HEADER, "")
        ),
        subject=headers.get(SUBJECT_HEADER, subject),
        reason=headers.get(REASON_HEADER, ""),
        deliveries=int(headers.get(DELIVERIES_HEADER, "0")),
        at=datetime.fromisoformat(headers[TIME_HEADER]) if TIME_HEADER in headers else stored.at,
        dropped_bytes=int(headers.get(DROPPED_BYTES_HEADER, "0")),
        data=stored.data,
        headers=_sender_headers(headers),
    )


async def replay_dead_letters(
    bus: MessageBus, seq: int | None = None, stream: str | None = None, tenant: str | None = None
) -> int:
    """Sends dead letters back to their stream and removes them from `DEAD_LETTER_STREAM`.

    Selects by number, one stream, or all, of one tenant if it is named; messages whose body was
    dropped stay. Returns the count. After a crash between the two steps, the next replay is
    recognised as a repetition. Raises `NotFound` for an unknown number, `Conflict` for one without
    its body, `Unavailable`.
    """
    if seq is not None:
        await _republish(bus, await load_dead_letter(bus, seq, tenant))
        return 1
    # Messages that fail again in the meantime get new numbers, which are not in this list.
    sequences = [
        letter.seq
        async for letter in _iterate_dead_letters(bus, stream, 0, tenant)
        if not letter.dropped_bytes
    ]
    for sequence in sequences:
        await _republish(bus, await load_dead_letter(bus, sequence, tenant))
    return len(sequences)


async def _republish(bus: MessageBus, letter: DeadLetter) -> None:
    if letter.dropped_bytes:
        raise Conflict(f"its body of {letter.dropped_bytes} bytes was not kept: publish it again")
    message_id = uuid5(NAMESPACE_URL, f"replay/{letter.seq}/{letter.at.isoformat()}")
    await bus.send(letter.subject, letter.data, {**letter.headers, "Nats-Msg-Id": str(message_id)})
    await bus.remove(DEAD_LETTER_STREAM, letter.seq)


async def handle_max_deliveries(bus: MessageBus, advisory: Message) -> None:
    """Handle the advisory that a consumer gave a message up (its last worker was killed).

    A work queue keeps such a message, and with one message per subject that subject refuses all
    others: so it is buried, then removed. Other streams keep it for their other consumers.
    Run it with `consume(bus, DEAD_WATCH, partial(rescue, bus))`; several may run at once.
    """
    stream, consumer, seq, deliveries = _parse_advisory(advisory.data)
    if not is_own_consumer(stream, consumer):
        return
    stored = await bus.read(stream, seq)
    if stored is None:
        return
    message = Message(stored.subject, stored.data, stored.headers, deliveries)
    reason = f"no worker answered for any of {deliveries} deliveries"
    log.error(
        "message_dead_lettered", stream=stream, consumer=consumer, seq=seq, deliveries=deliveries
    )
    await publish_dead_letter(bus, DeadLetterOrigin(stream, consumer, str(seq)), message, reason)
    if stream in QUEUES:
        await bus.remove(stream, seq)


def _parse_advisory(data: bytes) -> tuple[str, str, int, int]:
    try:
        advisory = json.loads(data)
        return (
            advisory["stream"],
            advisory["consumer"],
            int(advisory["stream_seq"]),
            int(advisory["deliveries"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Reject("not a max-deliveries advisory") from error
