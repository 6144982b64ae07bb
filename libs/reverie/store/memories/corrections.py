"""Finds memories that a turn corrects and replaces them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.core.memory import Memory, NewMemory, WriteResult
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.db.idempotent_writes import call_once, retry_on_conflict, run_once


class CorrectionStore:
    """Corrections of all tenants."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def claim_turn(
        self, principal: Principal, session: UUID, turn_hash: bytes, cooldown_seconds: float
    ) -> Literal["taken", "seen", "cooldown"]:
        """Whether this caller may look at a turn (by its hash) of a session that it may write."""

        async def take() -> Literal["taken", "seen", "cooldown"]:
            if await connection.fetch_value(
                "correction_claim_turn", session, turn_hash, cooldown_seconds
            ):
                return "taken"
            is_same_turn = await connection.fetch_value(
                "correction_is_same_turn", session, turn_hash
            )
            return "seen" if is_same_turn else "cooldown"

        async with self._db.tenant_transaction(principal.tenant) as connection:
            claim_state: Literal["taken", "seen", "cooldown"] = await run_once(
                connection, "take", take
            )
        return claim_state

    async def find_candidates(
        self,
        principal: Principal,
        scopes: Sequence[str],
        kinds: Sequence[str],
        words: str,
        limit: int,
    ) -> list[Memory]:
        """Active memories of these scopes that the key may change and that have some of the words
        (prepared as for a search): those with most of them, the surest first.

        To a request that is sent again those that it found at first: of what it wrote since, it is
        to correct nothing.
        """
        args = (
            principal.narrow_to_readable(scopes),
            list(principal.writable_patterns),
            list(kinds),
            limit,
            words,
        )
        found: list[Memory] = []

        async def look() -> list[str]:
            found.extend(
                map(
                    row_mapping.parse_memory,
                    await connection.fetch_rows("correction_candidates", *args),
                )
            )
            return [str(candidate.id) for candidate in found]

        async with self._db.tenant_transaction(principal.tenant) as connection:
            memory_ids = await run_once(connection, "standing", look)
            for memory_id in memory_ids if not found else ():
                row = await connection.fetch_row(
                    "memory_get", UUID(memory_id), list(principal.reads)
                )
                found += [row_mapping.parse_memory(row)] if row else []
        return found

    async def replace(
        self,
        principal: Principal,
        old: Memory,
        new: NewMemory,
        reason: str,
        headers: Mapping[str, str],
    ) -> WriteResult | None:
        """Writes the new memory, then the old one steps down; None where it changed meanwhile."""

        item = row_mapping.encode_memory(new, list(principal.reads), principal.actor)
        found = await retry_on_conflict(
            lambda: call_once(
                self._db,
                "replace_memory",
                principal.tenant,
                f"replace {old.id}",
                *(principal.tenant_name, old.id, old.version, item, reason, dict(headers)),
            ),
            "the memory",
        )
        return None if "problem" in found else row_mapping.parse_written(found)
