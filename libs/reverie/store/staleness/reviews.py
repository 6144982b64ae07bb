"""Stores reviews of stale memories by a language model and applies accepted ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from reverie.contracts.events import OutgoingEvent
from reverie.domain.access.principals import Principal
from reverie.domain.core.errors import Conflict, NotFound
from reverie.domain.core.ids import new_id
from reverie.domain.core.memory import MemoryStatus
from reverie.store.db import row_mapping
from reverie.store.db.database import Database, TenantConnection
from reverie.store.db.idempotency import retry_on_conflict, run_once
from reverie.store.maintenance.items import MaintenanceScope
from reverie.store.memories.edits import (
    MemoryChange,
    build_content_fields,
    change_in_transaction,
    remove_record,
)
from reverie.store.staleness.stale_marks import confirm_in_transaction


@dataclass(frozen=True)
class ReviewCandidate:
    """A memory to be looked over. `seen`: its newest mark."""

    id: UUID
    version: int
    scope: str
    kind: str
    content: str
    seen: datetime


@dataclass(frozen=True)
class StalenessReason:
    """A mark with the known hunks of the file."""

    commit: str
    path: str
    grade: str
    change: str
    subject: str
    hunks: list[dict[str, Any]] | None


@dataclass(frozen=True)
class ReviewVerdict:
    """The verdict on a memory: holds, changed (then with its new text), gone or unsure."""

    verdict: str
    content: str | None
    reason: str
    generated_by: str


@dataclass(frozen=True)
class MemoryReview:
    """The review of a memory at a version.

    `current_content`: the text of the memory now, at the version `standing`.
    """

    id: UUID
    memory: UUID
    version: int
    verdict: str
    content: str | None
    reason: str
    generated_by: str
    state: str
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    scope: str
    current_content: str
    standing: int


class ReviewStore:
    """The reviews of all tenants, each call within one."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_due(
        self, scope: MaintenanceScope, above: UUID, limit: int
    ) -> list[ReviewCandidate]:
        """Memories that changes of their own files put in doubt since they were looked over."""
        async with self._db.tenant_transaction(scope.tenant) as connection:
            found = await connection.fetch_rows("review_due", list(scope.scopes), above, limit)
        return [ReviewCandidate(**row) for row in found]

    async def list_reasons(self, tenant: int, memory: UUID, limit: int) -> list[StalenessReason]:
        """Why a memory is in doubt, the weightiest reason first."""
        async with self._db.tenant_transaction(tenant) as connection:
            return [
                StalenessReason(**row)
                for row in await connection.fetch_rows("review_marks", memory, limit)
            ]

    async def put(self, tenant: int, candidate: ReviewCandidate, verdict: ReviewVerdict) -> UUID:
        """Stores the review of a memory; an unsure one is not left open."""
        review_id = new_id()
        values = (verdict.verdict, verdict.content, verdict.reason, verdict.generated_by)
        async with self._db.tenant_transaction(tenant) as connection:
            await connection.fetch_rows(
                "review_put", review_id, candidate.id, candidate.version, *values, candidate.seen
            )
        return review_id

    async def page(
        self, principal: Principal, state: str, below: UUID | None, limit: int
    ) -> list[MemoryReview]:
        """Reviews in a state, the newest first."""
        async with self._db.tenant_transaction(principal.tenant) as connection:
            found = await connection.fetch_rows(
                "review_list", list(principal.reads), state, below, limit, None
            )
        return [MemoryReview(**row) for row in found]

    async def accept(
        self, principal: Principal, review_id: UUID, headers: Mapping[str, str]
    ) -> tuple[UUID, list[OutgoingEvent]]:
        """Applies an open review to the memory; returns the memory and the events to publish.

        Raises `NotFound`, `Forbidden`, `Conflict` if it is already decided or the memory has
        changed.
        """

        async def decided() -> tuple[str, list[OutgoingEvent]]:
            events: list[OutgoingEvent] = []

            async def decide() -> str:
                found = await _decide(connection, principal, review_id, "accepted")
                events.extend(await _apply_review(connection, principal, found, headers))
                return str(found.memory)

            async with self._db.tenant_transaction(principal.tenant) as connection:
                return await run_once(connection, "decide", decide), events

        memory, events = await retry_on_conflict(decided, "the memory")
        return UUID(memory), events

    async def refuse(self, principal: Principal, review_id: UUID) -> UUID:
        """Rejects a review; returns the memory, unchanged. Raises `NotFound`, `Forbidden`,
        `Conflict`."""

        async def decide() -> str:
            return str((await _decide(connection, principal, review_id, "rejected")).memory)

        async with self._db.tenant_transaction(principal.tenant) as connection:
            return UUID(await run_once(connection, "decide", decide))


async def _decide(
    connection: TenantConnection, principal: Principal, review_id: UUID, state: str
) -> MemoryReview:
    """The review, of which somebody decides that it is in this state now."""
    row = await connection.fetch_row("review_list", list(principal.reads), None, None, 1, review_id)
    if row is None:
        raise NotFound("review", str(review_id))
    found = MemoryReview(**row)
    principal.check_write(found.scope)
    if found.state != "open":
        raise Conflict(f"this review was {found.state} before")
    if found.standing != found.version:
        raise Conflict(f"the memory has version {found.standing} now; it is reviewed again")
    if await connection.fetch_row("review_decide", review_id, state, principal.actor) is None:
        raise Conflict("somebody else decided on this review meanwhile")
    return found


async def _apply_review(
    connection: TenantConnection,
    principal: Principal,
    review: MemoryReview,
    headers: Mapping[str, str],
) -> list[OutgoingEvent]:
    reason = f"{review.generated_by} looked it over: {review.reason}"
    if review.verdict == "holds":
        return await confirm_in_transaction(connection, principal, review.memory, headers)
    if review.verdict == "gone":
        change = MemoryChange(
            {"status": MemoryStatus.ARCHIVED.value}, reason, "archived", review.version
        )
        return (
            await change_in_transaction(connection, principal, review.memory, change, headers)
        ).events
    row = await connection.fetch_row("memory_get", review.memory, list(principal.reads))
    if row is None:
        raise NotFound("memory", str(review.memory))
    memory = row_mapping.parse_memory(row)
    content = review.content or memory.content
    metadata = memory.metadata if content == memory.content else remove_record(memory.metadata)
    fields = build_content_fields(content, memory.key, memory.tags, metadata)
    change = MemoryChange({**fields, "metadata": metadata}, reason, "edited", review.version)
    changed = await change_in_transaction(connection, principal, review.memory, change, headers)
    return [
        *changed.events,
        *await confirm_in_transaction(connection, principal, review.memory, headers),
    ]
