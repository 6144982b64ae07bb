"""What a turn corrects: when it may be looked at, what it may take back, what takes its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.memory import Memory, NewMemory, Written
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.races import retried


class Adjusting:
    """Corrections of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(
        self, who: Principal, session: UUID, said: bytes, seconds: float
    ) -> Literal["taken", "seen", "cooldown"]:
        """Whether this caller may look at a turn (by its hash) of a session that it may write."""
        async with self._db.tenant(who.tenant) as tenant:
            if await tenant.value("adjust_take", session, said, seconds):
                return "taken"
            same = await tenant.value("adjust_seen", session, said)
        return "seen" if same else "cooldown"

    async def standing(
        self, who: Principal, scopes: Sequence[str], kinds: Sequence[str], words: str, limit: int
    ) -> list[Memory]:
        """Active memories of these scopes that the key may change and that have some of the words
        (prepared as for a search): those with most of them, the surest first."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows(
                "adjustable",
                who.seen_through(scopes),
                list(who.writable),
                list(kinds),
                limit,
                words,
            )
        return [rows.memory(row) for row in found]

    async def replace(
        self, who: Principal, old: Memory, new: NewMemory, why: str, headers: Mapping[str, str]
    ) -> Written | None:
        """Writes the new memory, then the old one steps down; None where it changed meanwhile."""

        async def once() -> Written | None:
            found = await self._db.call(
                "replace_memory",
                who.tenant,
                who.tenant_name,
                old.id,
                old.version,
                rows.item(new, list(who.reads), who.actor),
                why,
                dict(headers),
            )
            return None if "problem" in found else rows.written(found)

        return await retried(once, "the memory")
