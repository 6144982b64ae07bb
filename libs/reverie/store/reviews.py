"""Reviews: what a language model says of memories in doubt, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import Outgoing
from reverie.domain.access import Principal
from reverie.domain.errors import Conflict, NotFound
from reverie.domain.ids import new_id
from reverie.domain.memory import Status
from reverie.store import rows
from reverie.store.database import Database, Tenant
from reverie.store.doubts import confirm_within
from reverie.store.edits import Change, change_within, worded
from reverie.store.effects import once
from reverie.store.races import retried
from reverie.store.tending import Garden


@dataclass(frozen=True)
class Doubted:
    """A memory to be looked over. `seen`: its newest mark."""

    id: UUID
    version: int
    scope: str
    kind: str
    content: str
    seen: datetime


@dataclass(frozen=True)
class Reason:
    """A mark with the hunks of the file, as far as they were told."""

    commit: str
    path: str
    grade: str
    change: str
    subject: str
    hunks: list[dict[str, Any]] | None


@dataclass(frozen=True)
class Said:
    """What is said of a memory: holds, changed (then with its new text), gone or unsure."""

    verdict: str
    content: str | None
    why: str
    made_by: str


@dataclass(frozen=True)
class Review:
    """What was said of a memory at a version. `told`: what it says now, at version `standing`."""

    id: UUID
    memory: UUID
    version: int
    verdict: str
    content: str | None
    why: str
    made_by: str
    state: str
    made: datetime
    decided: datetime | None
    who: str | None
    scope: str
    told: str
    standing: int


class Reviews:
    """The reviews of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def due(self, garden: Garden, above: UUID, limit: int) -> list[Doubted]:
        """Memories that changes of their own files put in doubt since they were looked over."""
        async with self._db.tenant(garden.tenant) as t:
            found = await t.rows("review_due", list(garden.scopes), above, limit)
        return [Doubted(**row) for row in found]

    async def reasons(self, tenant: int, memory: UUID, limit: int) -> list[Reason]:
        """Why a memory is in doubt, the weightiest reason first."""
        async with self._db.tenant(tenant) as t:
            return [Reason(**row) for row in await t.rows("review_marks", memory, limit)]

    async def put(self, tenant: int, of: Doubted, said: Said) -> UUID:
        """Notes what is said of a memory; what is unsure waits for nobody."""
        made = new_id()
        told = (said.verdict, said.content, said.why, said.made_by)
        async with self._db.tenant(tenant) as t:
            await t.rows("review_put", made, of.id, of.version, *told, of.seen)
        return made

    async def page(
        self, who: Principal, state: str, below: UUID | None, limit: int
    ) -> list[Review]:
        """Reviews in a state, the newest first."""
        async with self._db.tenant(who.tenant) as t:
            found = await t.rows("review_list", list(who.reads), state, below, limit)
        return [Review(**row) for row in found]

    async def accept(
        self, who: Principal, review: UUID, headers: Mapping[str, str]
    ) -> tuple[UUID, list[Outgoing]]:
        """Does to the memory what an open review says; answers which, and the events to publish.

        Raises `NotFound`, `Forbidden`, `Conflict` where it was decided on or the memory is another
        by now.
        """

        async def decided() -> tuple[str, list[Outgoing]]:
            events: list[Outgoing] = []

            async def decide() -> str:
                found = await _decided(tenant, who, review, "accepted")
                events.extend(await _carried_out(tenant, who, found, headers))
                return str(found.memory)

            async with self._db.tenant(who.tenant) as tenant:
                return await once(tenant, "decide", decide), events

        memory, events = await retried(decided, "the memory")
        return UUID(memory), events

    async def refuse(self, who: Principal, review: UUID) -> UUID:
        """Leaves the memory as it is; answers which. Raises `NotFound`, `Forbidden`, `Conflict`."""

        async def decide() -> str:
            return str((await _decided(tenant, who, review, "refused")).memory)

        async with self._db.tenant(who.tenant) as tenant:
            return UUID(await once(tenant, "decide", decide))


async def _decided(tenant: Tenant, who: Principal, review: UUID, state: str) -> Review:
    """The review, of which somebody decides that it is in this state now."""
    row = await tenant.row("review_get", review, list(who.reads))
    if row is None:
        raise NotFound("review", str(review))
    found = Review(**row)
    who.check_write(found.scope)
    if found.state != "open":
        raise Conflict(f"this review was {found.state} before")
    if found.standing != found.version:
        raise Conflict(f"the memory is of version {found.standing} by now, and looked over anew")
    if await tenant.row("review_decide", review, state, who.actor) is None:
        raise Conflict("somebody else decided on this review meanwhile")
    return found


async def _carried_out(
    tenant: Tenant, who: Principal, one: Review, headers: Mapping[str, str]
) -> list[Outgoing]:
    why = f"{one.made_by} looked it over: {one.why}"
    if one.verdict == "holds":
        return await confirm_within(tenant, who, one.memory, headers)
    if one.verdict == "gone":
        change = Change({"status": Status.ARCHIVED.value}, why, "archived", one.version)
        return (await change_within(tenant, who, one.memory, change, headers)).events
    row = await tenant.row("memory_get", one.memory, list(who.reads))
    if row is None:
        raise NotFound("memory", str(one.memory))
    memory = rows.memory(row)
    fields = worded(one.content or memory.content, memory.key, memory.tags)
    change = Change(fields, why, "edited", one.version)
    changed = await change_within(tenant, who, one.memory, change, headers)
    return [*changed.events, *await confirm_within(tenant, who, one.memory, headers)]
