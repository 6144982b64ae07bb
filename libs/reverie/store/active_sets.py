"""What sessions were given of their memories: in Postgres, for several gateways may serve one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from uuid import UUID

import asyncpg

from reverie.domain.access import Principal
from reverie.domain.active_set import ActiveSet, Given
from reverie.store.database import Database

CACHED = 1024
KEPT_DAYS = 30


class ActiveSets:
    """Active memory sets; those read last are kept in memory, by version."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._cache: OrderedDict[tuple[int, UUID], ActiveSet] = OrderedDict()

    async def get(self, who: Principal, session: UUID) -> ActiveSet:
        """What the session was given; nothing where it has not asked yet."""
        cached = self._cache.get((who.tenant, session), ActiveSet())
        async with self._db.tenant(who.tenant) as tenant:
            row = await tenant.row("active_set", session, list(who.reads), cached.version)
        if row is None:
            return ActiveSet()
        if row["members"] is None:
            return cached
        return self._keep(who, session, _active_set(row))

    async def put(self, who: Principal, session: UUID, new: ActiveSet) -> bool:
        """Stores a set made of what `get` gave; False where another was faster.

        It does not wait for the disk: of one that is lost, something is given a second time.
        """
        one_by_one = list(new.given.values())
        async with self._db.tenant(who.tenant, flushed=False) as tenant:
            version = await tenant.value(
                "active_set_put",
                session,
                list(who.reads),
                new.version,
                new.turn,
                list(new.given),
                [one.mark for one in one_by_one],
                [one.weight for one in one_by_one],
                [one.seen for one in one_by_one],
            )
            if version and not new.version:
                await tenant.rows("active_sets_forget", KEPT_DAYS)
        if version:
            self._keep(who, session, replace(new, version=version))
        return version is not None

    def _keep(self, who: Principal, session: UUID, one: ActiveSet) -> ActiveSet:
        self._cache[who.tenant, session] = one
        self._cache.move_to_end((who.tenant, session))
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return one


def _active_set(row: asyncpg.Record) -> ActiveSet:
    given = zip(row["marks"], row["weights"], row["seen"], strict=True)
    return ActiveSet(
        row["version"],
        row["turn"],
        {member: Given(*one) for member, one in zip(row["members"], given, strict=True)},
    )
