"""Stores which memories a session has received, with a small cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import asyncpg

from reverie.domain.access.principals import Principal
from reverie.domain.context.active_set import ActiveMemorySet, ActiveSetEntry, DeliveredEntry
from reverie.store.db.database import Database

CACHE_SIZE = 1024
RETENTION_DAYS = 30
MAX_RECORD_ATTEMPTS = 5


class ActiveMemorySetStore:
    """Active memory sets; those read last are kept in memory, by version."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._cache: OrderedDict[tuple[int, UUID], ActiveMemorySet] = OrderedDict()

    async def get(self, principal: Principal, session: UUID) -> ActiveMemorySet:
        """Returns the memories given to the session; empty if it has not asked yet."""
        cached = self._cache.get((principal.tenant, session), ActiveMemorySet())
        async with self._db.tenant_transaction(principal.tenant) as connection:
            row = await connection.fetch_row(
                "active_memory_set_get", session, list(principal.reads), cached.version
            )
        if row is None:
            return ActiveMemorySet()
        if row["members"] is None:
            return cached
        return self._put_in_cache(principal, session, _parse_active_set(row))

    async def put(self, principal: Principal, session: UUID, new: ActiveMemorySet) -> bool:
        """Stores a set derived from the result of `get`; False if another write was faster.

        It does not wait for the disk: if one is lost, some memories are given a second time.
        """
        entries = list(new.delivered.values())
        async with self._db.tenant_transaction(principal.tenant, durable=False) as connection:
            version = await connection.fetch_value(
                "active_memory_set_put",
                session,
                list(principal.reads),
                new.version,
                new.turn,
                list(new.delivered),
                [entry.fingerprint for entry in entries],
                [entry.weight for entry in entries],
                [entry.last_turn for entry in entries],
            )
            if version and not new.version:
                await connection.fetch_rows("active_memory_sets_expire", RETENTION_DAYS)
        if version:
            self._put_in_cache(principal, session, replace(new, version=version))
        return version is not None

    async def record(
        self,
        principal: Principal,
        session: UUID,
        entries: Sequence[ActiveSetEntry],
        compacted: bool = False,
    ) -> None:
        """Adds entries that the session was given between two turns.

        `compacted` drops what it was given before. If other writers are faster each time, nothing
        is recorded, and the entries may be given again.
        """
        for _ in range(MAX_RECORD_ATTEMPTS):
            active_set = await self.get(principal, session)
            base = active_set.after_compaction() if compacted else active_set
            if await self.put(principal, session, base.with_entries(entries, begins_turn=False)):
                return

    def _put_in_cache(
        self, principal: Principal, session: UUID, active_set: ActiveMemorySet
    ) -> ActiveMemorySet:
        self._cache[principal.tenant, session] = active_set
        self._cache.move_to_end((principal.tenant, session))
        if len(self._cache) > CACHE_SIZE:
            self._cache.popitem(last=False)
        return active_set


def _parse_active_set(row: asyncpg.Record) -> ActiveMemorySet:
    entries = zip(row["marks"], row["weights"], row["seen"], strict=True)
    return ActiveMemorySet(
        row["version"],
        row["turn"],
        {
            member: DeliveredEntry(*entry)
            for member, entry in zip(row["members"], entries, strict=True)
        },
    )
