"""What stands in the files that people read: memories by scope, their links, summaries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.linked_notes import Link
from reverie.domain.memory import Memory
from reverie.domain.scopes import shown_scope
from reverie.domain.summary import without
from reverie.store import rows
from reverie.store.carry import PAGE
from reverie.store.database import Database, Tenant
from reverie.store.names import names_of


@dataclass(frozen=True)
class ScopeNotes:
    """The active memories of one scope, oldest first, with their links where they were asked."""

    scope: str
    summary: str | None
    memories: list[Memory]
    links: dict[UUID, list[Link]]
    shown: str
    """The scope as people read it."""


class Notes:
    """Reads scopes whole, one at a time."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def scopes(
        self, who: Principal, within: Sequence[str], linked: bool = False
    ) -> AsyncIterator[ScopeNotes]:
        """Each scope that the key may read, in order, as of one moment."""
        async with self._db.snapshot(who.tenant) as tenant:
            held: list[Memory] = []
            async for memory in _memories(tenant, who, within):
                if held and memory.scope != held[0].scope:
                    yield await _scope(tenant, who, within, held, linked)
                    held = []
                held.append(memory)
            if held:
                yield await _scope(tenant, who, within, held, linked)

    async def standing(self, who: Principal, scope: str) -> tuple[list[Memory], str | None]:
        """The active memories of a scope and its summary."""
        async with self._db.snapshot(who.tenant) as tenant:
            found = [one async for one in _memories(tenant, who, [scope])]
            return found, await _summary(tenant, scope, list(who.reads))

    async def forgotten(self, who: Principal, scope: str, short: Sequence[str]) -> set[str]:
        """Which of the short ids belong to forgotten memories of the scope."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("carry_forgotten", scope, list(short))
        return {row["short"] for row in found}


async def _memories(tenant: Tenant, who: Principal, within: Sequence[str]) -> AsyncIterator[Memory]:
    at: tuple[str | None, UUID | None] = (None, None)
    while page := await tenant.rows("carry_notes", list(who.reads), list(within), *at, PAGE):
        for row in page:
            yield rows.memory(row)
        at = (page[-1]["scope"], page[-1]["id"])


async def _scope(
    tenant: Tenant, who: Principal, within: Sequence[str], held: list[Memory], linked: bool
) -> ScopeNotes:
    scope, reads = held[0].scope, list(who.reads)
    summary = await _summary(tenant, scope, reads)
    links: dict[UUID, list[Link]] = {}
    if linked:
        links = await _links(tenant, reads, list(within), [one.id for one in held])
    names = await names_of(tenant, reads, [scope])
    return ScopeNotes(scope, summary, held, links, shown_scope(scope, names))


async def _summary(tenant: Tenant, scope: str, reads: list[str]) -> str | None:
    """What the summary of a scope says that stands."""
    told = await tenant.value("carry_summary", scope, reads)
    gone = await tenant.rows("summaries_outlived", [scope]) if told else []
    return without(told, [row["content"] for row in gone]) if told else None


async def _links(
    tenant: Tenant, reads: list[str], within: list[str], ids: list[UUID]
) -> dict[UUID, list[Link]]:
    edges = await tenant.rows("carry_note_edges", ids, reads, within)
    far = await tenant.rows("memories_by_ids", list({row["dst"] for row in edges}), reads)
    known = {row["id"]: rows.memory(row) for row in far}
    links: dict[UUID, list[Link]] = {}
    for row in edges:
        if row["dst"] in known:
            links.setdefault(row["src"], []).append(Link(row["kind"], known[row["dst"]]))
    return links
