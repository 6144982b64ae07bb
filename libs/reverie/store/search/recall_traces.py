"""Stores traces of recalls for a short time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

import asyncpg
from pydantic_core import to_json

from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import NotFound
from reverie.store.db.database import Database

_COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class RecallTraceRecord:
    """A trace of one recall. `trace`: the trace id of the request, which may have several recalls.

    `agent`: the agent whose turns were searched, None for all. `asked`: the parsed question and the
    other parameters. `details`: how the result was computed, in ids and numbers, without texts;
    pages of traces omit it.
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
    details: Mapping[str, Any]
    delivered_at: datetime | None = None
    """When a hook confirmed that it wrote out what preflow gave."""


class RecallTraceStore:
    """The traces of all tenants; a key reads those whose scopes it may all read."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def add(self, tenant: int, traces: Sequence[RecallTraceRecord], limit: int) -> None:
        """Stores traces, then deletes all but the newest `limit` of the tenant."""
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.execute_many("trace_add", [_encode_trace(trace) for trace in traces])
            await connection.fetch_rows("traces_trim", limit)

    async def find(self, principal: Principal, trace_id: UUID) -> list[RecallTraceRecord]:
        """Returns the traces of an id, their own or their request's, newest first.

        Raises `NotFound` if there is none whose scopes are all readable. A key that is bound to an
        agent sees those of its own recalls.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "trace_find", trace_id, list(principal.reads), principal.agent
            )
        if not found:
            raise NotFound("trace", str(trace_id))
        return [_parse_trace(row) for row in found]

    async def page(
        self, principal: Principal, below: UUID | None, limit: int, session: UUID | None
    ) -> list[RecallTraceRecord]:
        """Lists visible traces, newest first; of one session if given."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "trace_list", list(principal.reads), principal.agent, below, session, limit
            )
        return [_parse_trace(row) for row in found]

    async def confirm(self, principal: Principal, trace_id: UUID) -> datetime:
        """Records that what a preflow gave was written out; returns when it was first confirmed.

        Raises `NotFound` if the caller sees no preflow of this id.
        """
        async with self._db.tenant_transaction(principal.tenant) as connection:
            delivered_at = await connection.fetch_value(
                "trace_confirm", trace_id, list(principal.reads), principal.agent
            )
        if delivered_at is None:
            raise NotFound("trace", str(trace_id))
        return cast("datetime", delivered_at)

    async def sweep(self, seconds: float) -> int:
        """Deletes older traces, of all tenants; returns the count."""
        age = timedelta(seconds=seconds)
        return int(await self._db.call("delete_old_rows", "recall_trace", age))


def _encode_trace(trace: RecallTraceRecord) -> tuple[Any, ...]:
    return (
        trace.id,
        trace.trace,
        trace.at,
        trace.actor,
        trace.session,
        trace.agent,
        list(trace.scopes),
        trace.query,
        trace.asked,
        zlib.compress(to_json(trace.details), _COMPRESSION_LEVEL),
    )


def _parse_trace(row: asyncpg.Record) -> RecallTraceRecord:
    details = json.loads(zlib.decompress(row["details"])) if row["details"] else {}
    return RecallTraceRecord(**{**row, "details": details})
