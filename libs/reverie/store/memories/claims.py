"""Stores verified claims; a later verification replaces an earlier one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict
from reverie.domain.core.memory import Memory, NewMemory, WriteResult
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.db.idempotent_writes import build_busy_error, call_once, retry_on_conflict
from reverie.store.memories.memories import ScopeNameStore


class ClaimStore:
    """The claims of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._names = ScopeNameStore(database)

    async def learn(
        self, principal: Principal, new: NewMemory, headers: Mapping[str, str]
    ) -> WriteResult:
        """Writes the claim. Raises `Conflict` where a later verification stands."""
        await self._names.save(principal, new.scope_names)
        item = row_mapping.encode_memory(new, principal.reads, principal.actor)
        found: dict[str, Any] = await retry_on_conflict(
            lambda: call_once(
                self._db,
                "claim_put",
                principal.tenant,
                "claim_put",
                principal.tenant_name,
                item,
                dict(headers),
            ),
            "the claim",
        )
        if found.get("problem") == "later":
            raise Conflict(
                f"this claim was verified on {found['verified']} already",
                {"id": found["id"], "verified": found["verified"]},
            )
        if "problem" in found:
            raise build_busy_error("the claim")
        return row_mapping.parse_written(found)

    async def page(
        self,
        principal: Principal,
        below: UUID | None,
        limit: int,
        scope: str | None,
        topic: str | None,
    ) -> list[Memory]:
        """Claims newest first, below the id `below`; `topic` is a slug."""
        key_pattern = None if topic is None else f"learn:{_escape_like(topic)}:%"
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "claim_list", list(principal.reads), below, scope, key_pattern, limit
            )
        return [row_mapping.parse_memory(row) for row in found]


def _escape_like(text: str) -> str:
    """A text that stands for itself in a pattern."""
    return text.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%")
