"""Memories that say alike: found, merged, or linked as contradicting each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import Outgoing, memory_subject, outgoing
from reverie.domain.kinds import Kind
from reverie.domain.likeness import Likeness, Said
from reverie.store.counts import Counts
from reverie.store.database import Database
from reverie.store.models import Models
from reverie.store.races import retried


@dataclass(frozen=True)
class Candidate:
    """A memory to be judged against another. `cosine`: to that one, where both have vectors.

    `carried`: it came with a file in which it was judged already.
    """

    id: UUID
    version: int
    scope: str
    created: datetime
    said: Said
    carried: bool = False
    vector: Any = None
    cosine: float | None = None


@dataclass(frozen=True)
class Settled:
    """What was done: the memory that now stands at `version`, and the event that says so."""

    id: UUID
    version: int
    event: Outgoing


class Duplicates:
    """Pairs of memories of one scope."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._models = Models(database)
        self._counts = Counts()

    async def read_all(self, tenant: int, memories: Sequence[UUID]) -> list[Candidate]:
        """Those of the memories that are active and have all that is derived, in their order."""
        async with self._db.reading(tenant) as t:
            t.vectors = (await self._models.of(tenant)).vectors
            rows = await t.rows("likeness_self", list(memories))
        return [_candidate(row, vector=row["vector"]) for row in rows]

    async def candidates_all(
        self, tenant: int, of: Sequence[Candidate], limit: int
    ) -> list[list[Candidate]]:
        """Memories of the scope of each that may say the same or the opposite, nearest first.

        Up to `limit` by meaning, by shared anchors, and by shared rare words. None that comes
        after it in the list, which will find it.
        """
        found: dict[UUID, list[Candidate]] = {one.id: [] for one in of}
        if not of:
            return []
        async with self._db.reading(tenant) as t:
            t.vectors = (await self._models.of(tenant)).vectors
            walks = int(await self._counts.walks(t))
            t.own_plans = True
            mine = [one.id for one in of], [one.vector for one in of], [one.scope for one in of]
            rows = await t.rows("likeness_candidates", *mine, limit, walks)
        for row in rows:
            found[row["of"]].append(_candidate(row, cosine=row["cosine"]))
        return list(found.values())

    async def merge(
        self,
        tenant: tuple[int, str],
        older: Candidate,
        newer: Candidate,
        likeness: Likeness,
        headers: Mapping[str, str],
    ) -> Settled | None:
        """Merges the less sure into the surer; None where either changed or they stay apart."""
        pair = _pair(older, newer)
        pair["fuller"] = pair.get(likeness.fuller or "")
        made = await self._call("merge_memories", tenant, pair, likeness.reason, headers)
        if "problem" in made:
            return None
        return _settled(tenant, "merged", made | {"id": made["into"]}, ("merged",), headers)

    async def contradict(
        self,
        tenant: tuple[int, str],
        older: Candidate,
        newer: Candidate,
        likeness: Likeness,
        headers: Mapping[str, str],
    ) -> Settled | None:
        """Links the newer to the older, which is doubted; None where that was done before."""
        pair = _pair(older, newer)
        made = await self._call("contradict_memories", tenant, pair, likeness.reason, headers)
        if "problem" in made:
            return None
        return _settled(tenant, "contradicted", made | {"by": str(newer.id)}, ("by",), headers)

    async def _call(
        self,
        name: str,
        tenant: tuple[int, str],
        pair: dict[str, Any],
        why: str,
        headers: Mapping[str, str],
    ) -> dict[str, Any]:
        async def once() -> dict[str, Any]:
            async with self._db.tenant(tenant[0]) as t:
                made: dict[str, Any] = await t.value(name, tenant[1], pair, why, dict(headers))
                return made

        return await retried(once, "the memory")


def _candidate(row: asyncpg.Record, vector: Any = None, cosine: float | None = None) -> Candidate:
    said = Said(
        content=row["content"],
        kind=Kind(row["kind"]),
        key=row["key"],
        pinned=row["pinned"],
        files=frozenset(row["files"]),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
    )
    return Candidate(
        id=row["id"],
        version=row["version"],
        scope=row["scope"],
        created=row["created"],
        said=said,
        carried=row["carried"],
        vector=vector,
        cosine=cosine,
    )


def _pair(older: Candidate, newer: Candidate) -> dict[str, Any]:
    return {
        "older": str(older.id),
        "older_version": older.version,
        "newer": str(newer.id),
        "newer_version": newer.version,
    }


def _settled(
    tenant: tuple[int, str],
    event: str,
    made: Mapping[str, Any],
    told: tuple[str, ...],
    headers: Mapping[str, str],
) -> Settled:
    body = {name: made[name] for name in ("id", "version", *told)}
    subject = memory_subject(tenant[1], event)
    stored = outgoing(tenant[0], subject, body, headers, UUID(made["event"]))
    return Settled(UUID(made["id"]), made["version"], stored)
