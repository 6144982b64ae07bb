"""Taking off the bus what belongs to a tenant or a scope that is deleted."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from reverie.bus.port import Bus, Stored
from reverie.bus.streams import STREAMS
from reverie.contracts import events
from reverie.domain.scopes import matches

PAGE = 500
AT_ONCE = 50
_STREAM = 2**56
_ENDS = ("from", "to")
_OTHERS = ("merged", "by", "into")

Standing = Callable[[Sequence[UUID]], Awaitable[set[UUID]]]


@dataclass(frozen=True)
class Lost:
    """What was deleted: all that lies in scopes, perhaps a project, memories that do not stand."""

    patterns: Sequence[str]
    project: str | None
    standing: Standing


def subjects_of(tenant: str) -> list[tuple[str, str]]:
    """Every stream with the filter of the messages of a tenant, whose name is the second token.

    A dead letter's subject is that of the message behind `dead.<stream>`; advisories name none.
    Dead letters come last, for what dies meanwhile goes there.
    """
    found = []
    for spec in STREAMS:
        heads = [s.split(".")[0] for s in spec.subjects if s.split(".")[1] == "*"]
        found += [(spec.name, f"{head}.{tenant}.>") for head in heads]
    return [*found, (events.DEAD, f"dead.*.*.{tenant}.>")]


async def forget_tenant(bus: Bus, tenant: str) -> dict[str, int]:
    """Deletes all messages of a tenant; how many of each stream. Raises `Unavailable`."""
    gone: dict[str, int] = {}
    for stream, subject in subjects_of(tenant):
        gone[stream] = gone.get(stream, 0) + await bus.purge(stream, subject)
    return gone


async def forget_scopes(
    bus: Bus, tenant: str, lost: Lost, start: int = 0
) -> AsyncGenerator[tuple[Counter[str], int], None]:
    """Deletes a tenant's messages about what is lost, dead letters included, a page at a time.

    Yields how many went of each stream, and the place from which another call goes on
    (`start`; 0 is the beginning). Raises `Unavailable`.
    """
    first, after = divmod(start, _STREAM)
    for nth, (stream, subject) in enumerate(subjects_of(tenant)):
        if nth < first:
            continue
        while page := await bus.page(stream, subject, after, PAGE):
            after = page[-1].seq
            gone = await _lost_of(page, lost)
            await _remove(bus, stream, gone)
            yield Counter({stream: len(gone)}), nth * _STREAM + after
        after = 0


async def _lost_of(page: Sequence[Stored], lost: Lost) -> list[int]:
    """The numbers of the messages that speak of what is lost."""
    told = {one.seq: (body, _memories(one.subject, body)) for one in page for body in [_body(one)]}
    named = {memory for _, memories in told.values() for memory in memories}
    missing = named - await lost.standing(list(named))
    return [seq for seq, (body, memories) in told.items() if missing & memories or _of(body, lost)]


async def _remove(bus: Bus, stream: str, numbers: Sequence[int]) -> None:
    for nth in range(0, len(numbers), AT_ONCE):
        await asyncio.gather(*(bus.remove(stream, seq) for seq in numbers[nth : nth + AT_ONCE]))


def _of(body: dict[str, Any], lost: Lost) -> bool:
    """Whether a message names a scope or the project that is lost."""
    scope, project = body.get("scope"), body.get("project")
    return (lost.project is not None and project == lost.project) or (
        isinstance(scope, str) and any(matches(pattern, scope) for pattern in lost.patterns)
    )


def _memories(subject: str, body: dict[str, Any]) -> set[UUID]:
    """The memories that an event tells of: of an edge its ends, else its own and the others."""
    tokens = subject.split(".")
    if tokens[2 if tokens[0] == "dead" else 0] != "memory":
        return set()
    own = [name for name in _ENDS if name in body] or ["id"]
    return {found for name in [*own, *_OTHERS] if (found := _id(body.get(name)))}


def _id(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _body(one: Stored) -> dict[str, Any]:
    """What a message says; nothing where it is none of ours."""
    try:
        found = json.loads(one.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
