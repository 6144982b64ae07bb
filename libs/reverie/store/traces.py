"""How recalls came to their answers, kept for a short while."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
from pydantic_core import to_json

from reverie.domain.access import Principal
from reverie.domain.errors import NotFound
from reverie.store.database import Database

_FAST = 1


@dataclass(frozen=True)
class StoredTrace:
    """A trace of one recall. `trace`: that of the request, which may have led to several.

    `agent`: whose turns were looked through, None for all. `asked`: how the question was read, and
    what else was asked. `told`: how the answer came about, ids and numbers, no texts; not in pages.
    """

    id: UUID
    trace: UUID | None
    at: datetime
    actor: str
    session: UUID | None
    agent: str | None
    scopes: Sequence[str]
    query: str
    asked: Mapping[str, Any]
    told: Mapping[str, Any]


class Traces:
    """Written many at a time; read by whoever may read all that a recall looked through."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, tenant: int, traces: Sequence[StoredTrace], keep: int) -> None:
        """Keeps traces, and of all of the tenant the newest `keep`."""
        async with self._db.tenant(tenant) as t:
            await t.many("trace_add", [_row(one) for one in traces])
            await t.rows("traces_trim", keep)

    async def find(self, who: Principal, one: UUID) -> list[StoredTrace]:
        """The traces under an id, their own or their request's, newest first.

        Raises `NotFound` where there is none whose scopes are all readable; a key that is bound
        to an agent sees those of its own recalls.
        """
        async with self._db.tenant(who.tenant) as t:
            found = await t.rows("traces_of", one, list(who.reads), who.agent)
        if not found:
            raise NotFound("trace", str(one))
        return [_stored(row) for row in found]

    async def page(
        self, who: Principal, below: UUID | None, limit: int, session: UUID | None
    ) -> list[StoredTrace]:
        """Traces that may be seen, newest first; of one session where it is given."""
        async with self._db.tenant(who.tenant) as t:
            found = await t.rows("traces_page", list(who.reads), who.agent, below, session, limit)
        return [_stored(row) for row in found]

    async def sweep(self, seconds: float) -> int:
        """Forgets traces older than that, of all tenants; says how many."""
        found = await self._db.rows("recall_trace_sweep", seconds)
        return int(found[0][0])


def _row(one: StoredTrace) -> tuple[Any, ...]:
    return (
        one.id,
        one.trace,
        one.at,
        one.actor,
        one.session,
        one.agent,
        list(one.scopes),
        one.query,
        one.asked,
        zlib.compress(to_json(one.told), _FAST),
    )


def _stored(row: asyncpg.Record) -> StoredTrace:
    told = json.loads(zlib.decompress(row["told"])) if row["told"] else {}
    return StoredTrace(**{**row, "told": told})
