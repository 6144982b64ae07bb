"""Claims that were learned: a later verification takes the place of an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.errors import Conflict
from reverie.domain.memory import Memory, NewMemory, Written
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.effects import called_once
from reverie.store.names import Names
from reverie.store.races import busy, retried


class Claims:
    """The claims of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names = Names(database)

    async def learn(self, who: Principal, new: NewMemory, headers: Mapping[str, str]) -> Written:
        """Writes the claim. Raises `Conflict` where a later verification stands."""
        await self._names.keep(who, new.scope_names)
        item = rows.item(new, who.reads, who.actor)
        found: dict[str, Any] = await retried(
            lambda: called_once(
                self._db, "learn", who.tenant, "learn", who.tenant_name, item, dict(headers)
            ),
            "the claim",
        )
        if found.get("problem") == "later":
            raise Conflict(
                f"this claim was verified on {found['verified']} already",
                {"id": found["id"], "verified": found["verified"]},
            )
        if "problem" in found:
            raise busy("the claim")
        return rows.written(found)

    async def page(
        self, who: Principal, below: UUID | None, limit: int, scope: str | None, topic: str | None
    ) -> list[Memory]:
        """Claims newest first, below the id `below`; `topic` is a slug."""
        keys = None if topic is None else f"learn:{_literal(topic)}:%"
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("claim_list", list(who.reads), below, scope, keys, limit)
        return [rows.memory(row) for row in found]


def _literal(text: str) -> str:
    """A text that stands for itself in a pattern."""
    return text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
