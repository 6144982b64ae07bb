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
from reverie.store.database import Database
from reverie.store.doubts import Doubts
from reverie.store.edits import Change, Edits, worded
from reverie.store.memories import Memories
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
        self._edits, self._doubts = Edits(database), Doubts(database)
        self._memories = Memories(database)

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
    ) -> tuple[Review, list[Outgoing]]:
        """Does to the memory what an open review says; answers the events to publish.

        Raises `NotFound`, `Forbidden`, `Conflict` where it was decided on or the memory is another
        by now.
        """
        found = await self._open(who, review)
        events = await self._carried_out(who, found, headers)
        await self._decided(who, review, "accepted")
        return found, events

    async def refuse(self, who: Principal, review: UUID) -> Review:
        """Leaves the memory as it is. Raises `NotFound`, `Forbidden`, `Conflict`."""
        found = await self._open(who, review)
        await self._decided(who, review, "refused")
        return found

    async def _open(self, who: Principal, review: UUID) -> Review:
        async with self._db.tenant(who.tenant) as t:
            row = await t.row("review_get", review, list(who.reads))
        if row is None:
            raise NotFound("review", str(review))
        found = Review(**row)
        who.check_write(found.scope)
        if found.state != "open":
            raise Conflict(f"this review was {found.state} before")
        if found.standing != found.version:
            raise Conflict(
                f"the memory is of version {found.standing} by now, and looked over anew"
            )
        return found

    async def _decided(self, who: Principal, review: UUID, state: str) -> None:
        async with self._db.tenant(who.tenant) as t:
            if await t.row("review_decide", review, state, who.actor) is None:
                raise Conflict("somebody else decided on this review meanwhile")

    async def _carried_out(
        self, who: Principal, one: Review, headers: Mapping[str, str]
    ) -> list[Outgoing]:
        why = f"{one.made_by} looked it over: {one.why}"
        if one.verdict == "holds":
            return (await self._doubts.confirm(who, one.memory, headers))[2]
        if one.verdict == "gone":
            change = Change({"status": Status.ARCHIVED.value}, why, "archived", one.version)
            return (await self._edits.change(who, one.memory, change, headers)).events
        memory = await self._memories.get(who, one.memory)
        content = one.content or memory.content
        change = Change(worded(content, memory.key, memory.tags), why, "edited", one.version)
        changed = await self._edits.change(who, one.memory, change, headers)
        return [*changed.events, *(await self._doubts.confirm(who, one.memory, headers))[2]]
