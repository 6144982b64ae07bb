"""Time travel and provenance: what was known at a moment, and where a memory came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from reverie.domain.access import Principal
from reverie.domain.errors import NotFound
from reverie.domain.ids import part_of_id
from reverie.domain.memory import Memory, was_true
from reverie.domain.worth import Facts
from reverie.store import rows
from reverie.store.database import Database
from reverie.store.memories import Near, parse_id
from reverie.store.search import Candidate, Filter, Link, Scored
from reverie.store.short_ids import only_id


@dataclass(frozen=True)
class SourceTurn:
    """A turn that a memory was made of."""

    id: UUID
    session: UUID
    ord: int
    role: str
    content: str
    at: datetime


@dataclass(frozen=True)
class SourceSession:
    """The session in which a memory was learned."""

    id: UUID
    agent: str
    external_id: str | None
    project: str | None
    branch: str | None
    started: datetime
    ended: datetime | None


@dataclass(frozen=True)
class Replaced:
    """A memory that another replaced, `step` steps back."""

    id: UUID
    version: int
    content: str
    created: datetime
    agent: str | None
    step: int


@dataclass(frozen=True)
class Origin:
    """Where a memory came from: its session, its turns, what it replaced."""

    session: SourceSession | None
    turns: list[SourceTurn]
    replaced: list[Replaced]


class Past:
    """Reads of earlier states; a memory forgotten since is still known at an earlier moment."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, who: Principal, memory: UUID, at: datetime) -> Memory:
        """The memory as it was known at `at`. Raises `NotFound`."""
        async with self._db.looking(who.tenant) as tenant:
            row = await tenant.row("memory_then", memory, list(who.reads), at)
        if row is None:
            raise NotFound("memory", f"{memory} at {at.isoformat()}")
        return rows.memory(row)

    async def resolve(self, who: Principal, text: str, at: datetime) -> UUID:
        """The id that a full or short form meant at `at`: of one merged by then, where it went.

        Raises `NotFound` or `Invalid`.
        """
        named = await self.named(who, text, at)
        async with self._db.looking(who.tenant) as tenant:
            end = await tenant.value("merged_then", named, list(who.reads), at)
        return UUID(str(end)) if end else named

    async def named(self, who: Principal, text: str, at: datetime) -> UUID:
        """The id that a full or short form names, also of what was forgotten since `at`."""
        if (part := part_of_id(text)) is None:
            return parse_id(text)
        given = (part.digits, part.low, part.high)
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("resolve_then", *given, list(who.reads), at)
        return only_id("memory", text, found)

    async def around(
        self,
        who: Principal,
        ids: Sequence[UUID],
        scopes: Sequence[str],
        fan_out: int,
        at: datetime,
    ) -> list[Link]:
        """Edges at `at` between the memories of `ids` and their neighbours, `fan_out` a memory."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("edges_around_then", list(ids), list(scopes), fan_out, at)
        return [Link(r["near"], r["far"], r["kind"], r["weight"]) for r in found]

    async def neighbours(
        self, who: Principal, memory: UUID, at: datetime, limit: int = 50
    ) -> list[Near]:
        """Memories one edge away at `at`, strongest first."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("neighbours_then", memory, list(who.reads), at, limit)
        return [
            Near(r["id"], r["kind"], r["label"], r["type"], r["direction"], r["weight"])
            for r in found
        ]

    async def words(
        self, who: Principal, text: str, at: datetime, only: Filter, limit: int
    ) -> list[Scored]:
        """Memories by BM25 of the prepared question over what was known at `at`, best first."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows(
                "words_then",
                text,
                at,
                list(only.scopes),
                list(only.status),
                only.kinds,
                limit,
                only.asked,
            )
        return [Scored(r["id"], r["score"]) for r in found]

    async def load(
        self, who: Principal, ids: Sequence[UUID], scopes: Sequence[str], at: datetime
    ) -> dict[UUID, Memory]:
        """The memories of `ids` as they were known at `at`."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("memories_then", list(ids), list(scopes), at)
        return {row["id"]: rows.memory(row) for row in found}

    async def candidates(
        self, who: Principal, ids: Sequence[UUID], only: Filter, at: datetime
    ) -> dict[UUID, Candidate]:
        """Those of `ids` that the filter lets through, as they were known at `at`."""
        known = await self.load(who, ids, only.scopes, at)
        return {
            one: Candidate(_facts(memory), memory.content)
            for one, memory in known.items()
            if _passes(memory, only)
        }

    async def among(
        self, who: Principal, ids: Sequence[UUID], at: datetime
    ) -> list[tuple[UUID, UUID, UUID, str, float]]:
        """Edges between memories of `ids` that were open at `at`."""
        async with self._db.looking(who.tenant) as tenant:
            found = await tenant.rows("edges_then", list(ids), at)
        return [(r["id"], r["src"], r["dst"], r["kind"], r["weight"]) for r in found]

    async def origin(self, who: Principal, memory: UUID) -> Origin:
        """Back to session, turns and what was replaced, as far as the key may read."""
        async with self._db.looking(who.tenant) as tenant:
            session = await tenant.row("provenance_session", memory, list(who.reads))
            turns = await tenant.rows("provenance_turns", memory, list(who.reads), who.agent)
            replaced = await tenant.rows("provenance_chain", memory, list(who.reads))
        return Origin(
            session=SourceSession(**session) if session else None,
            turns=[SourceTurn(**row) for row in turns],
            replaced=[Replaced(**row) for row in replaced],
        )


def _passes(memory: Memory, only: Filter) -> bool:
    at = memory.valid_from or memory.created_at
    return (
        memory.status.value in only.status
        and (only.kinds is None or memory.kind.value in only.kinds)
        and (only.tiers is None or memory.tier.value in only.tiers)
        and (only.tags is None or set(only.tags) <= set(memory.tags))
        and (only.since is None or only.since <= at)
        and (only.until is None or at < only.until)
        and (only.valid_at is None or was_true(memory, only.valid_at))
    )


def _facts(memory: Memory) -> Facts:
    return Facts(
        id=memory.id,
        kind=memory.kind,
        tier=memory.tier,
        status=memory.status,
        scope=memory.scope,
        confidence=memory.confidence,
        pinned=memory.pinned,
        created_at=memory.created_at,
        content_hash=bytes.fromhex(memory.content_hash),
        session=memory.session,
        confirmed_at=memory.confirmed_at,
        valid_from=memory.valid_from,
        superseded_by=memory.superseded_by,
        linked=memory.linked,
        staleness=memory.staleness,
        use=memory.settled,
    )
