"""Stores versioned summaries of scopes and the memories that they are based on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.context.scope_summary import ComposedSummary, remove_lines, render_summary
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.sessions.dreams import DreamLease

LOOKBACK = timedelta(minutes=5)
"""Changes are looked for so long before the last look: a transaction ends later than it began."""


@dataclass(frozen=True)
class SummaryBasis:
    """The sources of the newest version: versions by memory.

    `seen`: None if all memories are to be read; `now`: the moment of reading; `complete`: nothing
    was cut off.
    """

    now: datetime
    seen: datetime | None
    complete: bool
    sources: Mapping[UUID, int]


@dataclass(frozen=True)
class SummarySource:
    """A source memory of a summary, at the version used; whether it still has that text."""

    memory: UUID
    version: int
    current: bool


@dataclass(frozen=True)
class StoredSummary:
    """A version of a scope's summary, without content that was deleted since.

    The newest version is also without outdated lines.
    """

    scope: str
    version: int
    content: str
    tokens: int
    created_at: datetime
    run: UUID | None
    sources: tuple[SummarySource, ...]


class SummaryStore:
    """One summary for each scope, kept by dreams."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def load_basis(self, lease: DreamLease) -> SummaryBasis:
        """Loads the sources of the scope's summary."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            [row] = await connection.fetch_rows("summary_state", lease.scope)
        sources = dict(zip(row["memories"], row["versions"], strict=True))
        return SummaryBasis(row["now"], row["seen"], row["complete"], sources)

    async def list_memories(self, lease: DreamLease, limit: int) -> list[Memory]:
        """Active memories of the scope, the weightiest first."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows("summary_input_memories", lease.scope, limit)
        return [row_mapping.parse_memory(row) for row in found]

    async def list_changed(
        self, lease: DreamLease, run: UUID, basis: SummaryBasis, read_at: datetime, limit: int
    ) -> list[Memory]:
        """Returns the current sources of a summary, recent changes, and memories found by a run.

        Changes: the last `limit` memories of the scope that changed since.
        """
        since, source_ids = read_at - LOOKBACK, list(basis.sources)
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows(
                "summary_changed_memories", lease.scope, source_ids, since, run, limit
            )
        return [row_mapping.parse_memory(row) for row in found]

    async def put(
        self,
        lease: DreamLease,
        run: UUID,
        content: str,
        tokens: int,
        summary: ComposedSummary[Memory],
        read_at: datetime,
    ) -> bool:
        """Stores the summary of the scope; False if the lease was lost."""
        sources = {
            "run": str(run),
            "seen": read_at.isoformat(),
            "complete": summary.is_complete,
            "memories": [str(memory.id) for memory in summary.sources],
            "versions": [memory.version for memory in summary.sources],
        }
        return bool(
            await self._db.call(
                "put_summary", lease.tenant, lease.scope, lease.epoch, content, tokens, sources
            )
        )

    async def page(
        self, principal: Principal, scope: str | None, after: str | None, limit: int
    ) -> list[StoredSummary]:
        """The newest summaries of readable scopes, by scope above `after`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "summary_list", list(principal.reads), scope, after, limit
            )
            scopes = [row["scope"] for row in found]
            outdated = await connection.fetch_rows("summary_outdated_lines", scopes)
            lines = await connection.fetch_rows("summary_sources", scopes, None)
        contents = dict(remove_outdated_lines(found, outdated))
        return [
            StoredSummary(
                row["scope"],
                row["version"],
                contents.get(row["scope"], ""),
                row["tokens"],
                row["updated"],
                None,
                _parse_sources([line for line in lines if line["scope"] == row["scope"]]),
            )
            for row in found
        ]

    async def list_versions(
        self, principal: Principal, scope: str, below: int | None, limit: int
    ) -> list[StoredSummary]:
        """The versions of a readable scope's summary, newest first below `below`."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "summary_versions", list(principal.reads), scope, below, limit
            )
            versions = [row["version"] for row in found]
            lines = (
                await connection.fetch_rows("summary_sources", [scope], versions)
                if versions
                else []
            )
        return [
            _parse_version(
                scope, row, [line for line in lines if line["version"] == row["version"]]
            )
            for row in found
        ]


def remove_outdated_lines(
    summaries: Sequence[Any], outdated: Sequence[Any]
) -> tuple[tuple[str, str], ...]:
    """Removes outdated lines from summaries by scope; empty ones are left out."""
    contents = [
        (
            row["scope"],
            remove_lines(
                row["content"],
                [line["content"] for line in outdated if line["scope"] == row["scope"]],
            ),
        )
        for row in summaries
    ]
    return tuple((scope, text) for scope, text in contents if text)


def _parse_version(scope: str, row: Any, lines: Sequence[Any]) -> StoredSummary:
    existing_lines = [line for line in lines if line["status"] != "deleted"]
    text = render_summary((Kind(line["kind"]), line["content"]) for line in existing_lines)
    return StoredSummary(
        scope,
        row["version"],
        text,
        row["tokens"],
        row["created_at"],
        row["run"],
        _parse_sources(existing_lines),
    )


def _parse_sources(lines: Sequence[Any]) -> tuple[SummarySource, ...]:
    return tuple(
        SummarySource(line["memory"], line["cited_version"], line["is_current"]) for line in lines
    )
