"""Dream jobs: requested, claimed under a lease, committed under an epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from reverie.contracts.events import Outgoing, dream_subject, memory_subject, outgoing
from reverie.domain.access import Principal
from reverie.domain.dreaming import DEFAULT, Limits, Record
from reverie.domain.ids import new_id
from reverie.domain.kinds import Kind
from reverie.domain.likeness import Said
from reverie.domain.memory import NewMemory
from reverie.domain.turns import TurnText
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.dream_runs import Run
from reverie.store.races import retried

FIRST = UUID(int=0)
ASKED = "asked"
"""The reason of a dream that somebody asked for: it takes open topics too."""


@dataclass(frozen=True)
class Lease:
    """A worker's hold on a scope. Every write names its epoch and fails when it was lost."""

    tenant: int
    tenant_name: str
    scope: str
    epoch: int
    attempts: int


@dataclass(frozen=True)
class Wanted:
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
    settled: bool = True


@dataclass(frozen=True)
class Queue:
    """Lengths of the queue over all tenants."""

    queued: int
    running: int
    parked: int
    oldest_seconds: float


@dataclass(frozen=True)
class Like:
    """A memory that stands, and how a new one stands to it: the same, refined or contradicting."""

    id: UUID
    version: int
    verdict: Literal["same", "refined", "contradicting"]
    why: str

    def fields(self) -> dict[str, Any]:
        """As the store takes it."""
        return {"id": str(self.id), "version": self.version, "verdict": self.verdict,
                "why": self.why}  # fmt: skip


@dataclass(frozen=True)
class Promoted:
    """A memory whose branch was merged: promoted, or superseded where the project had the same."""

    memory: UUID
    kind: str
    outcome: Literal["promoted", "superseded"]
    why: str


class Dreams:
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
    ) -> tuple[Literal["queued", "running"], Outgoing]:
        """Asks for a dream over a scope. Answers its state and the ticket to publish.

        Sessions that were silent for `silent_seconds` have no open topic; none has, where somebody
        asked.
        """
        silent = 0.0 if reason == ASKED else silent_seconds
        ticket = _ticket(tenant, tenant_name, scope, headers)
        status = await self._db.call(
            "dream_request",
            tenant,
            scope,
            reason,
            silent,
            ticket.id,
            ticket.subject,
            dict(headers),
        )
        return status, ticket

    async def claim(self, worker: str, lease_seconds: float) -> Lease | None:
        """The fairest due job of all tenants, or None."""
        found = await self._db.rows("dream_claim", worker, lease_seconds)
        return Lease(**found[0]) if found else None

    async def renew(self, lease: Lease, lease_seconds: float) -> bool:
        """Keeps the lease alive; False where another has it."""
        return bool(
            await self._db.call(
                "dream_renew", lease.tenant, lease.scope, lease.epoch, lease_seconds
            )
        )

    async def start(self, lease: Lease, run: UUID, worker: str) -> bool:
        """Opens the record of a run; False where the lease was lost."""
        return bool(
            await self._db.call("dream_start", lease.tenant, lease.scope, lease.epoch, run, worker)
        )

    async def sessions(
        self, lease: Lease, above: UUID, limits: Limits = DEFAULT, limit: int = 100
    ) -> list[DreamSession]:
        """Sessions of the scope with undigested turns, by id above `above`; what they hold is fresh
        no more.

        Settled is what ended, was silent for as long as the limits say, or was asked for.
        """
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("dream_sessions", lease.scope, above, vars(limits), limit)
            ids = [row["id"] for row in found]
            await tenant.value("dream_look", lease.scope, lease.epoch, ids)
        return [DreamSession(**row) for row in found]

    async def turns(self, lease: Lease, session: UUID, after: int, limit: int) -> list[TurnText]:
        """Undigested turns in order, after the ordinal `after` (-1 for the first)."""
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("dream_turns", session, after, limit)
        return [TurnText(**row) for row in found]

    async def whole(self, lease: Lease, session: UUID, limit: int) -> list[TurnText]:
        """The first `limit` turns of a session, digested or not."""
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("session_turns", session, limit)
        return [TurnText(**row) for row in found]

    async def commit(
        self,
        lease: Lease,
        run: UUID,
        session: UUID,
        items: Sequence[NewMemory],
        turns: Sequence[UUID],
        headers: Mapping[str, str],
        record: Record | None = None,
        like: Mapping[UUID, Like] | None = None,
    ) -> list[dict[str, Any]] | None:
        """Writes the memories, marks the turns and notes the record at once; None where the lease
        was lost. What the same turns said before is `known` and left as it stands.

        `like`: what stands to a new memory, by its id. What cites turns of another session or scope
        is refused.
        """
        noted = record or Record()
        payload = [
            rows.item(new, ["*"])
            | {"why": noted.reasons.get(new.id)}
            | ({"like": like[new.id].fields()} if like and new.id in like else {})
            for new in items
        ]
        given = (lease.epoch, run, session, payload, list(turns), dict(headers), noted.fields())

        async def once() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] | None = await self._db.call(
                "dream_commit", lease.tenant, lease.tenant_name, lease.scope, *given
            )
            return found

        return await retried(once, "the scope")

    async def promote(
        self, lease: Lease, run: UUID, limit: int, headers: Mapping[str, str]
    ) -> list[Promoted] | None:
        """Lets up to `limit` memories of branches that were merged hold for the project; None where
        the lease was lost."""
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
        return [Promoted(**one | {"memory": UUID(one["memory"])}) for one in found]

    async def alike(self, lease: Lease, words: str, limit: int) -> list[tuple[UUID, int, Said]]:
        """Active memories of the scope that share rare words with a text, the likest first: id,
        version, and what each says."""
        async with self._db.tenant(lease.tenant) as tenant:
            found = await tenant.rows("dream_alike", lease.scope, words, limit)
        return [(row["id"], row["version"], _said(row)) for row in found]

    async def record(self, lease: Lease, run: UUID, record: Record) -> bool:
        """Notes a record by itself; False where the lease was lost."""
        return bool(
            await self._db.call(
                "dream_record", lease.tenant, lease.scope, lease.epoch, run, record.fields()
            )
        )

    async def finish(
        self, lease: Lease, run: UUID, headers: Mapping[str, str], limits: Limits = DEFAULT
    ) -> tuple[Literal["done", "again", "lost"], list[Outgoing]]:
        """Ends a run; `again` where it was asked for meanwhile, or so much came that it is due.

        Also answers what to publish.
        """
        ticket, told = _ticket(lease.tenant, lease.tenant_name, lease.scope, headers), new_id()
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
            told,
            vars(limits),
        )
        tickets = [ticket] if found["state"] == "again" else []
        return found["state"], [*_digested(lease, found, told, headers), *tickets]

    async def fail(
        self,
        lease: Lease,
        run: UUID,
        error: str,
        max_attempts: int | None,
        pause_seconds: float,
        letter: Outgoing | None = None,
    ) -> tuple[Literal["retry", "parked", "lost"], list[Outgoing]]:
        """Ends a run that failed; the job is due after a pause that doubles, or is parked.

        The last time, `letter` is left for the dead. Without `max_attempts` it was none. Also
        answers what to publish.
        """
        told = new_id()
        buried = letter or _ticket(lease.tenant, lease.tenant_name, lease.scope, {})
        found = await self._db.call(
            "dream_fail",
            lease.tenant,
            lease.tenant_name,
            lease.scope,
            lease.epoch,
            run,
            error,
            max_attempts,
            pause_seconds,
            {"id": str(buried.id), "subject": buried.subject, "headers": buried.headers},
            told,
        )
        letters = [buried] if found["state"] == "parked" else []
        return found["state"], [*_digested(lease, found, told, {}), *letters]

    async def release(self, lease: Lease, headers: Mapping[str, str]) -> Outgoing | None:
        """Gives a job back unfinished, due at once; answers the ticket to publish.

        None where the lease was lost.
        """
        ticket = _ticket(lease.tenant, lease.tenant_name, lease.scope, headers)
        given = await self._db.call(
            "dream_release",
            lease.tenant,
            lease.scope,
            lease.epoch,
            ticket.id,
            ticket.subject,
            dict(headers),
        )
        return ticket if given else None

    async def overdue(self, age_seconds: float, limit: int = 100) -> list[Outgoing]:
        """Tickets of jobs whose own may be lost: due so long, and nobody works on them."""
        found = await self._db.rows("dreams_overdue", age_seconds, limit)
        return [_ticket(row["tenant"], row["tenant_name"], row["scope"], {}) for row in found]

    async def wanted(self, limits: Limits, limit: int = 100) -> list[Wanted]:
        """Scopes of all tenants that should dream and have no open request."""
        found = await self._db.rows("dreams_wanted", vars(limits), limit)
        return [Wanted(**row) for row in found]

    async def told(self, lease: Lease, run: UUID) -> dict[str, Any] | None:
        """How far a run is, as watchers of events are told."""
        async with self._db.tenant(lease.tenant) as tenant:
            found: dict[str, Any] | None = await tenant.value("dream_told", run)
        return found

    async def tenant_name(self, tenant: int) -> str | None:
        """The name of a tenant; None where there is none of that number."""
        return await self._db.name_of(tenant)

    async def forget_decisions(self, age_seconds: float) -> int:
        """Deletes why runs so long ago decided what they did; the runs stay."""
        return int(await self._db.call("dream_decisions_sweep", age_seconds))

    async def queue(self) -> Queue:
        """Lengths of the queue, for metrics."""
        found = await self._db.rows("dream_queue")
        return Queue(**found[0])

    async def runs(
        self, who: Principal, below: UUID | None, scope: str | None, limit: int
    ) -> list[Run]:
        """Runs over readable scopes, newest first below the id `below`."""
        async with self._db.tenant(who.tenant) as tenant:
            found = await tenant.rows("dream_runs", list(who.reads), below, scope, limit)
        return [Run(**row) for row in found]


def _ticket(tenant: int, tenant_name: str, scope: str, headers: Mapping[str, str]) -> Outgoing:
    return outgoing(tenant, dream_subject(tenant_name, scope), {"scope": scope}, headers)


def _digested(
    lease: Lease, found: Mapping[str, Any], id: UUID, headers: Mapping[str, str]
) -> list[Outgoing]:
    """The event that says how a run ended, as it stands in the outbox."""
    if "told" not in found:
        return []
    subject = memory_subject(lease.tenant_name, "digested")
    return [outgoing(lease.tenant, subject, found["told"], headers, id)]


def _said(row: Any) -> Said:
    return Said(
        content=row["content"],
        kind=Kind(row["kind"]),
        key=row["key"],
        pinned=row["pinned"],
        files=frozenset((row["git"] or {}).get("files", ())),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
    )
