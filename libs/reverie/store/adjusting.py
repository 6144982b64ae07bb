"""What a turn corrects: when it may be looked at, what it may take back, what takes its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.memory import Memory, NewMemory, Written
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.effects import called_once, once
from reverie.store.races import retried


class Adjusting:
    """Corrections of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(
        self, who: Principal, session: UUID, said: bytes, seconds: float
    ) -> Literal["taken", "seen", "cooldown"]:
        """Whether this caller may look at a turn (by its hash) of a session that it may write."""

        async def take() -> Literal["taken", "seen", "cooldown"]:
            if await tenant.value("adjust_take", session, said, seconds):
                return "taken"
            same = await tenant.value("adjust_seen", session, said)
            return "seen" if same else "cooldown"

        async with self._db.tenant(who.tenant) as tenant:
            found: Literal["taken", "seen", "cooldown"] = await once(tenant, "take", take)
        return found

    async def standing(
        self, who: Principal, scopes: Sequence[str], kinds: Sequence[str], words: str, limit: int
    ) -> list[Memory]:
        """Active memories of these scopes that the key may change and that have some of the words
        (prepared as for a search): those with most of them, the surest first.

        To a request that is sent again those that it found at first: of what it wrote since, it is
        to correct nothing.
        """
        asked = (who.seen_through(scopes), list(who.writable), list(kinds), limit, words)
        found: list[Memory] = []

        async def look() -> list[str]:
            found.extend(map(rows.memory, await tenant.rows("adjustable", *asked)))
            return [str(one.id) for one in found]

        async with self._db.tenant(who.tenant) as tenant:
            known = await once(tenant, "standing", look)
            for memory in known if not found else ():
                row = await tenant.row("memory_get", UUID(memory), list(who.reads))
                found += [rows.memory(row)] if row else []
        return found

    async def replace(
        self, who: Principal, old: Memory, new: NewMemory, why: str, headers: Mapping[str, str]
    ) -> Written | None:
        """Writes the new memory, then the old one steps down; None where it changed meanwhile."""

        item = rows.item(new, list(who.reads), who.actor)
        found = await retried(
            lambda: called_once(
                self._db,
                "replace_memory",
                who.tenant,
                f"replace {old.id}",
                *(who.tenant_name, old.id, old.version, item, why, dict(headers)),
            ),
            "the memory",
        )
        return None if "problem" in found else rows.written(found)
