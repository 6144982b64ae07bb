"""Taking off the bus what belongs to a tenant or a scope that is deleted."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from uuid import UUID

from reverie.bus.port import Bus, Stored
from reverie.bus.streams import STREAMS
from reverie.contracts import events

PAGE = 500

Standing = Callable[[Sequence[UUID]], Awaitable[set[UUID]]]


def subjects_of(tenant: str) -> list[tuple[str, str]]:
    """Every stream with the filter of the messages of a tenant, whose name is the second token.

    A dead letter's subject is that of the message behind `dead.<stream>`; advisories name none.
    """
    found = [(events.DEAD, f"dead.*.*.{tenant}.>")]
    for spec in STREAMS:
        heads = [s.split(".")[0] for s in spec.subjects if s.split(".")[1] == "*"]
        found += [(spec.name, f"{head}.{tenant}.>") for head in heads]
    return found


async def forget_tenant(bus: Bus, tenant: str) -> dict[str, int]:
    """Deletes all messages of a tenant; how many of each stream. Raises `Unavailable`."""
    gone: dict[str, int] = {}
    for stream, subject in subjects_of(tenant):
        gone[stream] = gone.get(stream, 0) + await bus.purge(stream, subject)
    return gone


async def forget_dreams(bus: Bus, tenant: str, scopes: Iterable[str]) -> int:
    """Deletes the tickets of dreams over the scopes; how many."""
    gone = [await bus.purge(events.DREAM, events.dream_subject(tenant, one)) for one in scopes]
    return sum(gone)


async def forget_memories(bus: Bus, tenant: str, standing: Standing) -> int:
    """Deletes the events of memories that stand no more, dead letters included; how many."""
    filters = [(events.MEMORY, f"memory.{tenant}.>"), (events.DEAD, f"dead.*.memory.{tenant}.>")]
    return sum([await _forget(bus, stream, subject, standing) for stream, subject in filters])


async def _forget(bus: Bus, stream: str, subject: str, standing: Standing) -> int:
    gone, after = 0, 0
    while page := await _page(bus, stream, subject, after):
        after = page[-1].seq
        named = {one.seq: found for one in page if (found := _memory(one.data))}
        stand = await standing(list(named.values()))
        for seq, memory in named.items():
            if memory not in stand:
                await bus.remove(stream, seq)
                gone += 1
    return gone


async def _page(bus: Bus, stream: str, subject: str, after: int) -> list[Stored]:
    page: list[Stored] = []
    while len(page) < PAGE and (found := await bus.read(stream, after + 1, subject)):
        page.append(found)
        after = found.seq
    return page


def _memory(data: bytes) -> UUID | None:
    """The memory that an event tells of; None for what is no such event."""
    try:
        return UUID(json.loads(data)["id"])
    except (ValueError, KeyError, TypeError):
        return None
