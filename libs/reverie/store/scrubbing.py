"""Texts that were stored before a secret was known: read, and put back without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reverie.domain.access import Principal
from reverie.store.database import Database

MEMORIES = "memory"
ANSWERS = "idempotency"
TABLES = (
    MEMORIES,
    "memory_version",
    "turn",
    "session",
    "edge",
    "summary",
    "scope_name",
    "git_event",
    "git_file",
    "stale_mark",
    "api_key",
    "outbox",
    "recall_trace",
    "dream_decision",
    "review",
    ANSWERS,
)
"""The tables that hold texts, in the order in which they are gone through."""

WHY = "a secret of the vault was taken out"


@dataclass(frozen=True)
class Passage:
    """A way through a tenant's texts, and how far it came: a table and a row of it."""

    tenant: int
    tenant_name: str
    begun: datetime
    part: str
    place: Any


@dataclass(frozen=True)
class Texts:
    """A row's key, and all texts of it by column; `seen` tells whether they changed since."""

    place: Any
    texts: dict[str, Any]
    seen: str


@dataclass(frozen=True)
class Clean:
    """A row's texts as they are to be, with their words and the hash of the content."""

    place: Any
    seen: str
    now: dict[str, Any]
    words: str
    hash: str


@dataclass(frozen=True)
class Scrubbed:
    """How far the texts of a tenant were gone through since a secret was last put."""

    wanted: datetime
    finished: datetime | None
    passages: int
    looked: int
    scrubbed: int


class Scrubbing:
    """Each call is one transaction within one tenant; any of them may be repeated."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def claim(self, lease_seconds: float) -> Passage | None:
        """A tenant's texts to go through, nobody else's for the time of the lease."""
        found = await self._db.rows("scrub_claim", lease_seconds)
        if not found:
            return None
        one = found[0]
        part = one["part"] or TABLES[0]
        return Passage(one["tenant"], one["tenant_name"], one["begun"], part, one["place"])

    async def page(self, passage: Passage, limit: int) -> list[Texts]:
        """The rows after the passage's place."""
        async with self._db.tenant(passage.tenant) as t:
            if passage.part != ANSWERS:
                found = await t.rows("scrub_page", passage.part, passage.place, limit)
                return [Texts(**row) for row in found]
            answers = await t.rows("scrub_answers", passage.place or "", limit)
        return [
            Texts(row["key"], {"body": row["body"].decode(errors="replace")}, "") for row in answers
        ]

    async def put(self, passage: Passage, rows: Sequence[Clean]) -> bool:
        """Puts clean texts in their place; whether none of the rows changed since it was read."""
        if passage.part == ANSWERS:
            async with self._db.tenant(passage.tenant) as t:
                await t.rows("scrub_answers_out", [row.place for row in rows])
            return True
        return all([await self._put(passage, row) for row in rows])

    async def _put(self, passage: Passage, row: Clean) -> bool:
        async with self._db.tenant(passage.tenant) as t:
            if passage.part == MEMORIES:
                return bool(await t.value("scrub_memory", passage.tenant_name, vars(row), WHY))
            return bool(await t.value("scrub_row", passage.part, vars(row)))

    async def came(
        self, passage: Passage, looked: int, scrubbed: int, lease_seconds: float
    ) -> bool:
        """Notes where the passage stands; False where another goes on with it."""
        kept = await self._db.call(
            "scrub_came",
            passage.tenant,
            passage.begun,
            passage.part,
            passage.place,
            looked,
            scrubbed,
            lease_seconds,
        )
        return bool(kept)

    async def over(self, passage: Passage, grace_seconds: float) -> None:
        """Ends a passage; another follows where it began before the grace was over."""
        await self._db.call("scrub_over", passage.tenant, passage.begun, grace_seconds)

    async def state(self, who: Principal) -> Scrubbed | None:
        """How far it is; None where the tenant never put a secret."""
        async with self._db.tenant(who.tenant) as t:
            row = await t.row("scrub_state")
        return Scrubbed(**row) if row else None
