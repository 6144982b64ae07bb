"""Queue of dream jobs: requested, claimed under a lease, committed under an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from reverie.contracts.events import (
    OutgoingEvent,
    build_outgoing_event,
    dream_subject,
    memory_subject,
)
from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind
from reverie.domain.core.memory import NewMemory
from reverie.domain.extraction.dream_log import DEFAULT_THRESHOLDS, DreamRunLog, DreamThresholds
from reverie.domain.graph.duplicate_detection import ComparedMemory
from reverie.domain.text.index_terms import searched_text
from reverie.domain.text.turns import TurnText
from reverie.store.db import row_mapping
from reverie.store.db.database import Database
from reverie.store.db.idempotency import retry_on_conflict

START_ID = UUID(int=0)
SESSIONS_PER_CLAIM = 100
REASON_REQUESTED = "asked"
"""The reason of a requested dream, which includes open topics."""


@dataclass(frozen=True)
class DreamLease:
    """A worker's lease on a scope. Every write names its epoch and fails if the lease was lost."""

    tenant: int
    tenant_name: str
    scope: str
    epoch: int
    attempts: int


@dataclass(frozen=True)
class DueScope:
    """A scope that should dream, and why; sessions silent for `silent_seconds` are settled."""

    tenant: int
    tenant_name: str
    scope: str
    reason: str
    silent_seconds: float | None


@dataclass(frozen=True)
class DreamSession:
    """A session of the scope with turns that wait. `settled`: its last topic is closed too."""

    id: UUID
    external_id: str | None
    agent: str
    user_name: str | None
    project: str | None
    branch: str | None
    started: datetime
    ended: datetime | None
    summary: str | None
    own_scopes: Sequence[str] = ()
    settled: bool = True


@dataclass(frozen=True)
class DreamQueueLengths:
    """Lengths of the queue over all tenants."""

    queued: int
    running: int
    parked: int
    oldest_seconds: float


@dataclass(frozen=True)
class ExistingMatch:
    """An existing memory, and its relation to a new one: the same, refined or contradicting."""

    id: UUID
    version: int
    verdict: Literal["same", "refined", "contradicting"]
    reason: str

    def encode(self) -> dict[str, Any]:
        """Encodes the item for the store."""
        return {**vars(self), "id": str(self.id)}


@dataclass(frozen=True)
class PromotedMemory:
    """A memory of a merged branch: promoted, or superseded if the project had the same."""

    memory: UUID
    kind: str
    outcome: Literal["promoted", "superseded"]
    reason: str


class DreamQueue:
    """The queue in Postgres; tickets on the bus only wake its workers."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def request(
        self,
        tenant: int,
        tenant_name: str,
        scope: str,
        reason: str,
        headers: Mapping[str, str],
        silent_seconds: float | None = None,
    ) -> tuple[Literal["queued", "running"], OutgoingEvent]:
        """Requests a dream over a scope. Returns its state and the ticket to publish.

        Sessions that were silent for `silent_seconds` have no open topic; in a user's request, no
        session has one.
        """
        if reason == REASON_REQUESTED:
            silent_seconds = 0.0
        ticket = _build_ticket(tenant, tenant_name, scope, headers)
        status = await self._db.call(
            "dream_request",
            tenant,
            scope,
            reason,
            None if silent_seconds is None else timedelta(seconds=silent_seconds),
            ticket.id,
            ticket.subject,
            dict(headers),
        )
        return status, ticket

    async def claim(self, worker: str, lease_seconds: float) -> DreamLease | None:
        """Claims the fairest due job of all tenants, or returns None."""
        found = await self._db.fetch_rows("dream_claim", worker, timedelta(seconds=lease_seconds))
        return DreamLease(**found[0]) if found else None

    async def renew(self, lease: DreamLease, lease_seconds: float) -> bool:
        """Renews the lease; False if another worker has it."""
        return bool(
            await self._db.call(
                "dream_renew",
                lease.tenant,
                lease.scope,
                lease.epoch,
                timedelta(seconds=lease_seconds),
            )
        )

    async def start(self, lease: DreamLease, run: UUID, worker: str) -> bool:
        """Opens the record of a run; False if the lease was lost."""
        return bool(
            await self._db.call("dream_start", lease.tenant, lease.scope, lease.epoch, run, worker)
        )

    async def claim_sessions(
        self,
        lease: DreamLease,
        above: UUID,
        limits: DreamThresholds = DEFAULT_THRESHOLDS,
    ) -> list[DreamSession]:
        """Returns sessions of the scope with undigested turns, by id above `above`.

        Their turns are marked as seen: they no longer count as new. A session is settled if it
        ended, was silent for the time in the limits, or was requested.
        """
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows(
                "dream_sessions", lease.scope, above, vars(limits), SESSIONS_PER_CLAIM
            )
            ids = [row["id"] for row in found]
            await connection.fetch_value("dream_poll", lease.scope, lease.epoch, ids)
        return [DreamSession(**row) for row in found]

    async def list_turns(
        self, lease: DreamLease, session: UUID, after: int, limit: int
    ) -> list[TurnText]:
        """Undigested turns in order, after the ordinal `after` (-1 for the first)."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows("dream_turns", session, after, limit)
        return [TurnText(**row) for row in found]

    async def load_session_turns(
        self, lease: DreamLease, session: UUID, limit: int
    ) -> list[TurnText]:
        """The first `limit` turns of a session, digested or not."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows("session_turns", session, limit)
        return [TurnText(**row) for row in found]

    async def commit(
        self,
        lease: DreamLease,
        run: UUID,
        session: UUID,
        items: Sequence[NewMemory],
        turns: Sequence[UUID],
        headers: Mapping[str, str],
        record: DreamRunLog | None = None,
        matches: Mapping[UUID, ExistingMatch] | None = None,
    ) -> list[dict[str, Any]] | None:
        """Writes the memories, marks the turns and stores the record at once; None if the lease was
        lost.

        An item already written from the same turns is `known` and left unchanged. `matches`: the
        existing match of a new memory, by its id. Items that cite turns of another session or scope
        are refused.
        """
        record = record or DreamRunLog()
        payload = [
            row_mapping.encode_memory(new, ["*"])
            | {"decision_reason": record.reasons.get(new.id)}
            | ({"like": matches[new.id].encode()} if matches and new.id in matches else {})
            for new in items
        ]
        job = lease.tenant, lease.tenant_name, lease.scope, lease.epoch
        changes = payload, list(turns), dict(headers), record.to_json()
        found: list[dict[str, Any]] | None = await retry_on_conflict(
            lambda: self._db.call("dream_commit", *job, run, session, *changes), "the scope"
        )
        return found

    async def promote(
        self, lease: DreamLease, run: UUID, limit: int, headers: Mapping[str, str]
    ) -> list[PromotedMemory] | None:
        """Promotes up to `limit` memories of merged branches to the project.

        Returns None if the lease was lost.
        """
        found = await self._db.call(
            "dream_promote",
            lease.tenant,
            lease.tenant_name,
            lease.scope,
            lease.epoch,
            run,
            limit,
            dict(headers),
        )
        if found is None:
            return None
        return [PromotedMemory(**row | {"memory": UUID(row["memory"])}) for row in found]

    async def find_similar(
        self, lease: DreamLease, words: str, limit: int
    ) -> list[tuple[UUID, int, ComparedMemory]]:
        """Returns active memories of the scope that share rare words with a text, most similar
        first.

        Each with id, version, and the text by which it is found.
        """
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found = await connection.fetch_rows("dream_similar_memories", lease.scope, words, limit)
        return [(row["id"], row["version"], _parse_statement(row)) for row in found]

    async def write_record(self, lease: DreamLease, run: UUID, record: DreamRunLog) -> bool:
        """Stores a record alone; False if the lease was lost."""
        return bool(
            await self._db.call(
                "dream_record", lease.tenant, lease.scope, lease.epoch, run, record.to_json()
            )
        )

    async def finish(
        self,
        lease: DreamLease,
        run: UUID,
        headers: Mapping[str, str],
        limits: DreamThresholds = DEFAULT_THRESHOLDS,
    ) -> tuple[Literal["done", "again", "lost"], list[OutgoingEvent]]:
        """Ends a run; `again` if a dream was requested in the meantime, or enough turns are due.

        Also returns the events to publish.
        """
        ticket = _build_ticket(lease.tenant, lease.tenant_name, lease.scope, headers)
        event_id = new_id()
        found = await self._db.call(
            "dream_finish",
            lease.tenant,
            lease.tenant_name,
            lease.scope,
            lease.epoch,
            run,
            ticket.id,
            ticket.subject,
            dict(headers),
            event_id,
            vars(limits),
        )
        tickets = [ticket] if found["state"] == "again" else []
        return found["state"], [*_build_digested_events(lease, found, event_id, headers), *tickets]

    async def fail(
        self,
        lease: DreamLease,
        run: UUID,
        error: str,
        max_attempts: int | None,
        pause_seconds: float,
        dead_letter: OutgoingEvent | None = None,
    ) -> tuple[Literal["retry", "parked", "lost"], list[OutgoingEvent]]:
        """Ends a failed run; the job is due after a pause that doubles, or is parked.

        The last failure writes a `dead_letter`. Without `max_attempts` it does not count as a
        failure. Also returns the events to publish.
        """
        event_id = new_id()
        message = dead_letter or _build_ticket(lease.tenant, lease.tenant_name, lease.scope, {})
        found = await self._db.call(
            "dream_fail",
            lease.tenant,
            lease.tenant_name,
            lease.scope,
            lease.epoch,
            run,
            error,
            max_attempts,
            timedelta(seconds=pause_seconds),
            {"id": str(message.id), "subject": message.subject, "headers": message.headers},
            event_id,
        )
        dead_letters = [message] if found["state"] == "parked" else []
        return found["state"], [*_build_digested_events(lease, found, event_id, {}), *dead_letters]

    async def release(self, lease: DreamLease, headers: Mapping[str, str]) -> OutgoingEvent | None:
        """Returns a job unfinished, due at once; returns the ticket to publish.

        None if the lease was lost.
        """
        ticket = _build_ticket(lease.tenant, lease.tenant_name, lease.scope, headers)
        released = await self._db.call(
            "dream_release",
            lease.tenant,
            lease.scope,
            lease.epoch,
            ticket.id,
            ticket.subject,
            dict(headers),
        )
        return ticket if released else None

    async def list_overdue(self, age_seconds: float, limit: int = 100) -> list[OutgoingEvent]:
        """Lists tickets of jobs whose message may be lost: due for that time, without a worker."""
        found = await self._db.fetch_rows("dreams_overdue", timedelta(seconds=age_seconds), limit)
        return [_build_ticket(row["tenant"], row["tenant_name"], row["scope"], {}) for row in found]

    async def list_due_scopes(self, limits: DreamThresholds, limit: int = 100) -> list[DueScope]:
        """Scopes of all tenants that should dream and have no open request."""
        found = await self._db.fetch_rows("due_dreams", vars(limits), limit)
        return [DueScope(**row) for row in found]

    async def load_progress(self, lease: DreamLease, run: UUID) -> dict[str, Any] | None:
        """Loads the progress of a run for watchers of events."""
        async with self._db.tenant_transaction(lease.tenant) as connection:
            found: dict[str, Any] | None = await connection.fetch_value("dream_progress", run)
        return found

    async def load_queue_lengths(self) -> DreamQueueLengths:
        """Lengths of the queue, for metrics."""
        found = await self._db.fetch_rows("dream_queue")
        return DreamQueueLengths(**found[0])


def _build_ticket(
    tenant: int, tenant_name: str, scope: str, headers: Mapping[str, str]
) -> OutgoingEvent:
    return build_outgoing_event(
        tenant, dream_subject(tenant_name, scope), {"scope": scope}, headers
    )


def _build_digested_events(
    lease: DreamLease, found: Mapping[str, Any], event_id: UUID, headers: Mapping[str, str]
) -> list[OutgoingEvent]:
    """Builds the event for the end of a run, as in the outbox."""
    if "progress" not in found:
        return []
    subject = memory_subject(lease.tenant_name, "digested")
    return [build_outgoing_event(lease.tenant, subject, found["progress"], headers, event_id)]


def _parse_statement(row: Any) -> ComparedMemory:
    return ComparedMemory(
        content=searched_text(row["content"], row["metadata"]),
        kind=Kind(row["kind"]),
        key=row["key"],
        pinned=row["pinned"],
        files=frozenset((row["git"] or {}).get("files", ())),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
    )
