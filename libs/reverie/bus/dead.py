"""Dead letters: what no worker could handle, kept with the reason until someone looks.

A message is buried by its worker, or, when the worker died on the last allowed delivery, by
the watcher of the server's advisories.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import NAMESPACE_URL, uuid5

import structlog

from reverie.bus.errors import Reject
from reverie.bus.port import Bus, Message, Stored
from reverie.bus.streams import CONSUMERS, QUEUES
from reverie.contracts.events import DEAD, Outgoing, outgoing
from reverie.domain.errors import Conflict, NotFound

PREFIX: Final = "Reverie-Dead-"
REASON: Final = PREFIX + "Reason"
STREAM: Final = PREFIX + "Stream"
CONSUMER: Final = PREFIX + "Consumer"
SUBJECT: Final = PREFIX + "Subject"
REF: Final = PREFIX + "Ref"
DELIVERIES: Final = PREFIX + "Deliveries"
AT: Final = PREFIX + "At"
DROPPED: Final = PREFIX + "Dropped-Bytes"

_OURS: Final = frozenset((spec.stream, spec.name) for spec in CONSUMERS)

log = structlog.get_logger("reverie.bus")


@dataclass(frozen=True)
class Origin:
    """Where a message died: the stream, who gave it up, and its number (or row) there."""

    stream: str
    consumer: str
    ref: str


@dataclass(frozen=True)
class DeadLetter:
    """One buried message; `seq` is its number in `DEAD`.

    `dropped`: the size in bytes of a body that was too large to keep, else 0.
    """

    seq: int
    origin: Origin
    subject: str
    reason: str
    deliveries: int
    at: datetime
    dropped: int
    data: bytes
    headers: Mapping[str, str]


async def bury(bus: Bus, origin: Origin, message: Message, reason: str) -> None:
    """Copy a message to `DEAD`, once per origin. Raises `Unavailable`."""
    facts = _facts(origin, message.subject, message.deliveries, reason)
    once = uuid5(NAMESPACE_URL, f"{origin.stream}/{origin.consumer}/{origin.ref}/{message.subject}")
    data, more = _fitting(message.data, bus.max_payload)
    headers = {**_own(message.headers), **facts, **more, "Nats-Msg-Id": str(once)}
    await bus.send(f"dead.{origin.stream}.{message.subject}", data, headers)


def letter(tenant: int, origin: Origin, event: Outgoing, deliveries: int, reason: str) -> Outgoing:
    """The dead letter of an event, to be stored with whatever gives it up and published after."""
    facts = _facts(origin, event.subject, deliveries, reason)
    subject = f"dead.{origin.stream}.{event.subject}"
    body = json.loads(event.payload)
    return outgoing(tenant, subject, body, {**_own(event.headers), **facts}, event.id)


def _facts(origin: Origin, subject: str, deliveries: int, reason: str) -> dict[str, str]:
    return {
        REASON: reason,
        STREAM: origin.stream,
        CONSUMER: origin.consumer,
        REF: origin.ref,
        SUBJECT: subject,
        DELIVERIES: str(deliveries),
        AT: datetime.now(UTC).isoformat(),
    }


def _fitting(data: bytes, limit: int) -> tuple[bytes, dict[str, str]]:
    """A body that only a foreign publisher can have sent is dropped, and its size told."""
    return (data, {}) if len(data) <= limit else (b"", {DROPPED: str(len(data))})


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    """The sender's headers, without those that steered or described an earlier delivery."""
    return {k: v for k, v in headers.items() if not k.startswith(("Nats-", PREFIX))}


async def list_dead(
    bus: Bus, stream: str | None = None, limit: int = 50, after: int = 0
) -> list[DeadLetter]:
    """Up to `limit` dead letters in order, those after number `after`; of one stream if named."""
    letters: list[DeadLetter] = []
    async for letter in _letters(bus, stream, after):
        letters.append(letter)
        if len(letters) >= limit:
            break
    return letters


async def _letters(bus: Bus, stream: str | None, after: int) -> AsyncIterator[DeadLetter]:
    subject = f"dead.{stream}.>" if stream else "dead.>"
    while stored := await bus.read(DEAD, after + 1, subject):
        yield _letter(stored)
        after = stored.seq


def _letter(stored: Stored) -> DeadLetter:
    facts = stored.headers
    stream, subject = stored.subject.split(".", 2)[1:]
    return DeadLetter(
        seq=stored.seq,
        origin=Origin(stream, facts.get(CONSUMER, ""), facts.get(REF, "")),
        subject=facts.get(SUBJECT, subject),
        reason=facts.get(REASON, ""),
        deliveries=int(facts.get(DELIVERIES, "0")),
        at=datetime.fromisoformat(facts[AT]) if AT in facts else stored.at,
        dropped=int(facts.get(DROPPED, "0")),
        data=stored.data,
        headers=_own(facts),
    )


async def replay(bus: Bus, seq: int | None = None, stream: str | None = None) -> int:
    """Send dead letters to where they came from and take them off `DEAD`; how many.

    By number, or all of one stream, or all; those whose body was dropped stay. After a crash
    between the two steps the next replay is recognised as a repetition.
    Raises `NotFound` for an unknown number, `Conflict` for one without its body, `Unavailable`.
    """
    if seq is not None:
        await _revive(bus, await _one(bus, seq))
        return 1
    # Those that die again meanwhile get new numbers, which are not in this list.
    numbers = [letter.seq async for letter in _letters(bus, stream, 0) if not letter.dropped]
    for number in numbers:
        await _revive(bus, await _one(bus, number))
    return len(numbers)


async def _one(bus: Bus, seq: int) -> DeadLetter:
    stored = await bus.read(DEAD, seq)
    if stored is None:
        raise NotFound("dead letter", str(seq))
    letter = _letter(stored)
    if letter.dropped:
        raise Conflict(f"its body of {letter.dropped} bytes was not kept: publish it again")
    return letter


async def _revive(bus: Bus, letter: DeadLetter) -> None:
    once = uuid5(NAMESPACE_URL, f"replay/{letter.seq}/{letter.at.isoformat()}")
    await bus.send(letter.subject, letter.data, {**letter.headers, "Nats-Msg-Id": str(once)})
    await bus.remove(DEAD, letter.seq)


async def rescue(bus: Bus, advisory: Message) -> None:
    """Handle the advisory that a consumer gave a message up (its last worker was killed).

    A work queue keeps such a message, and with one message per subject that subject refuses all
    others: so it is buried, then removed. Other streams keep it for their other consumers.
    Run it with `consume(bus, DEAD_WATCH, partial(rescue, bus))`; several may run at once.
    """
    stream, consumer, seq, deliveries = _advised(advisory.data)
    if (stream, consumer) not in _OURS:
        return
    stored = await bus.read(stream, seq)
    if stored is None:
        return
    message = Message(stored.subject, stored.data, stored.headers, deliveries)
    reason = f"no worker answered for any of {deliveries} deliveries"
    log.error("message_rescued", stream=stream, consumer=consumer, seq=seq, deliveries=deliveries)
    await bury(bus, Origin(stream, consumer, str(seq)), message, reason)
    if stream in QUEUES:
        await bus.remove(stream, seq)


def _advised(data: bytes) -> tuple[str, str, int, int]:
    try:
        told = json.loads(data)
        return told["stream"], told["consumer"], int(told["stream_seq"]), int(told["deliveries"])
    except (ValueError, KeyError, TypeError) as error:
        raise Reject("not a max-deliveries advisory") from error
