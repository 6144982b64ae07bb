"""Stores versioned summaries of scopes and the memories that they are based on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from reverie.domain.access.principals import Principal
from reverie.domain.context.scope_summary import (
    ComposedSummary,
    add_sentences,
    remove_lines,
    render_summary,
)
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import Memory
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.sessions.dream_queue import DreamLease

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
class SummarySentence:
    """A sentence of a language model on a scope, and the versions and contents of its memories."""

    text: str
    memories: Mapping[UUID, int]
    contents: tuple[str, ...]


@dataclass(frozen=True)
class StoredSummary:
    """A version of a scope's summary, without content that was deleted since.

    The newest version is also without outdated lines. `overview`: the sentences of a language model
    in it.
    """

    scope: str
    version: int
    content: str
    tokens: int
    created_at: datetime
    run: UUID | None
    sources: tuple[SummarySource, ...]
    overview: tuple[SummarySentence, ...] = ()


@dataclass(frozen=True)
class NarratedMemory:
    """A memory that a language model is to read."""

    id: UUID
    version: int
    kind: str
    content: str


@dataclass(frozen=True)
class NarrativeBasis:
    """The sentences on a scope that stand, and the memories that were not read for them.

    `seen`: up to when the changes are known, once these memories are; None for none yet. `shown`:
    the versions that were read of those changed since. `fallen`: the number of sentences that
    stand no more.
    """

    seen: datetime | None
    shown: Mapping[str, int]
    sentences: Sequence[SummarySentence]
    fallen: int
    changed: Sequence[NarratedMemory]


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

    async def load_narrative(self, lease: DreamLease, limit: int) -> NarrativeBasis:
        """What a language model wrote of the scope, and at most `limit` memories to read for it."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            [state] = await connection.fetch_rows("narrative_state", lease.scope)
            sentences = await _load_sentences(connection, [lease.scope])
            standing = {sentence.text for _, sentence in sentences}
            fallen = [item for item in state["content"] or () if item["text"] not in standing]
            changed = await connection.fetch_rows(
                "narrative_changes",
                lease.scope,
                [UUID(memory) for item in fallen for memory in item["memories"]],
                state["seen"] and state["seen"] - LOOKBACK,
                state["shown"] or {},
                limit,
            )
        # More may have changed than are read at once: then the rest is read next time.
        is_cut = len(changed) == limit
        return NarrativeBasis(
            state["seen"] if is_cut else state["now"],
            (state["shown"] or {}) if is_cut else {},
            [sentence for _, sentence in sentences],
            len(fallen),
            [NarratedMemory(**row) for row in changed],
        )

    async def put_narrative(
        self,
        lease: DreamLease,
        sentences: Sequence[SummarySentence],
        basis: NarrativeBasis,
    ) -> bool:
        """Stores what a language model wrote of the scope; False if the lease was lost."""
        content = [
            {
                "text": sentence.text,
                "memories": {str(memory): version for memory, version in sentence.memories.items()},
            }
            for sentence in sentences
        ]
        shown = {**basis.shown, **{str(memory.id): memory.version for memory in basis.changed}}
        return bool(
            await self._db.call(
                "put_narrative", lease.tenant, lease.scope, lease.epoch, content, shown, basis.seen
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
            sentences = await _load_sentences(connection, scopes)
            contents = await _render_current(connection, found, scopes, sentences)
            lines = await connection.fetch_rows("summary_sources", scopes, None)
        return [
            StoredSummary(
                row["scope"],
                row["version"],
                contents.get(row["scope"], ""),
                row["tokens"],
                row["updated"],
                None,
                _parse_sources([line for line in lines if line["scope"] == row["scope"]]),
                tuple(sentence for scope, sentence in sentences if scope == row["scope"]),
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


async def load_current_summaries(
    connection: TenantConnection, summaries: Sequence[Any], scopes: Sequence[str]
) -> dict[str, str]:
    """The summaries as they are shown, by scope; empty ones are left out.

    Outdated lines are removed. Sentences of a language model that stand take the place of the lines
    of their memories.
    """
    sentences = await _load_sentences(connection, scopes)
    return await _render_current(connection, summaries, scopes, sentences)


async def _render_current(
    connection: TenantConnection,
    summaries: Sequence[Any],
    scopes: Sequence[str],
    sentences: Sequence[tuple[str, SummarySentence]],
) -> dict[str, str]:
    outdated = await connection.fetch_rows("summary_outdated_lines", list(scopes))
    contents = (
        (
            scope,
            add_sentences(text, [(s.text, s.contents) for each, s in sentences if each == scope]),
        )
        for scope, text in remove_outdated_lines(summaries, outdated).items()
    )
    return {scope: text for scope, text in contents if text}


async def _load_sentences(
    connection: TenantConnection, scopes: Sequence[str]
) -> list[tuple[str, SummarySentence]]:
    rows = await connection.fetch_rows("summary_sentences", list(scopes))
    return [
        (
            row["scope"],
            SummarySentence(
                row["content"],
                dict(zip(row["memories"], row["versions"], strict=True)),
                tuple(row["texts"]),
            ),
        )
        for row in rows
    ]


def remove_outdated_lines(summaries: Sequence[Any], outdated: Sequence[Any]) -> dict[str, str]:
    """The texts of summaries by scope, without outdated lines; a text may be empty then."""
    return {
        row["scope"]: remove_lines(
            row["content"], [line["content"] for line in outdated if line["scope"] == row["scope"]]
        )
        for row in summaries
    }


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
