"""Finds memories that duplicate or contradict each other, then merges or links them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from reverie.contracts.events import OutgoingEvent, build_outgoing_event, memory_subject
from reverie.domain.core.kinds import Kind
from reverie.domain.graph.duplicate_detection import (
    MERGEABLE_VERDICTS,
    ComparedMemory,
    DuplicateVerdict,
    MemoryComparison,
    compare_memories,
)
from reverie.store.db.database import Database
from reverie.store.db.idempotency import retry_on_conflict
from reverie.store.search.corpus_counts import CorpusCounts
from reverie.store.search.embedding_models import EmbeddingModelStore


@dataclass(frozen=True)
class DuplicateCandidate:
    """A memory to be compared with another.

    `cosine`: to that one, if both have vectors. `imported`: it was compared before it was exported.
    """

    id: UUID
    version: int
    scope: str
    created: datetime
    statement: ComparedMemory
    imported: bool = False
    vector: Any = None
    cosine: float | None = None


@dataclass(frozen=True)
class DuplicateOutcome:
    """The result of a comparison: the memory with its new `version`, and its event."""

    id: UUID
    version: int
    event: OutgoingEvent


class DuplicateStore:
    """Pairs of memories of one scope."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._models = EmbeddingModelStore(database)
        self._counts = CorpusCounts()

    async def load_candidates(
        self, tenant: int, memories: Sequence[UUID]
    ) -> list[DuplicateCandidate]:
        """Those of the memories that are active and have all that is derived, in their order."""
        async with self._db.tenant_reader(tenant) as connection:
            connection.vector_table = (await self._models.get(tenant)).vector_table
            rows = await connection.fetch_rows("duplicate_subjects", list(memories))
        return [_parse_candidate(row, vector=row["vector"]) for row in rows]

    async def find_similar(
        self, tenant: int, memories: Sequence[DuplicateCandidate], limit: int
    ) -> list[list[DuplicateCandidate]]:
        """Finds memories of each scope that may be duplicates or contradictions, nearest first.

        Up to `limit` by meaning, by shared anchors, and by shared rare words. Memories later in the
        list are left out, because they will find this one.
        """
        found: dict[UUID, list[DuplicateCandidate]] = {memory.id: [] for memory in memories}
        if not memories:
            return []
        async with self._db.snapshot(tenant, own_plans=True) as connection:
            connection.vector_table = (await self._models.get(tenant)).vector_table
            use_index = int(await self._counts.uses_vector_index(connection))
            args = (
                [memory.id for memory in memories],
                [memory.vector for memory in memories],
                [memory.scope for memory in memories],
            )
            rows = await connection.fetch_rows("duplicate_candidates", *args, limit, use_index)
        for row in rows:
            found[row["of"]].append(_parse_candidate(row, cosine=row["cosine"]))
        return list(found.values())

    async def merge(
        self,
        tenant: tuple[int, str],
        older: DuplicateCandidate,
        newer: DuplicateCandidate,
        similarity: MemoryComparison,
        headers: Mapping[str, str],
    ) -> DuplicateOutcome | None:
        """Merges the less certain memory; None if either changed or they stay apart."""
        pair = _encode_pair(older, newer)
        pair["fuller"] = pair.get(similarity.fuller_side or "")
        result = await self._call_function(
            "merge_memories", tenant, pair, similarity.reason, headers
        )
        if "problem" in result:
            return None
        return _parse_outcome(
            tenant, "merged", result | {"id": result["into"]}, ("merged",), headers
        )

    async def contradict(
        self,
        tenant: tuple[int, str],
        older: DuplicateCandidate,
        newer: DuplicateCandidate,
        similarity: MemoryComparison,
        headers: Mapping[str, str],
    ) -> DuplicateOutcome | None:
        """Links the newer to the older, which becomes doubtful, or superseded where the newer one
        replaces it; None if that was done before."""
        pair: dict[str, Any] = {**_encode_pair(older, newer), "replaces": similarity.replaces}
        result = await self._call_function(
            "contradict_memories", tenant, pair, similarity.reason, headers
        )
        if "problem" in result:
            return None
        by = ("by",) if result["name"] == "contradicted" else ()
        return _parse_outcome(tenant, result["name"], result | {"by": str(newer.id)}, by, headers)

    async def _call_function(
        self,
        name: str,
        tenant: tuple[int, str],
        pair: dict[str, Any],
        reason: str,
        headers: Mapping[str, str],
    ) -> dict[str, Any]:
        async def once() -> dict[str, Any]:
            async with self._db.tenant_transaction(tenant[0]) as connection:
                result: dict[str, Any] = await connection.fetch_value(
                    name, tenant[1], pair, reason, dict(headers)
                )
                return result

        return await retry_on_conflict(once, "the memory")


def _parse_candidate(
    row: asyncpg.Record, vector: Any = None, cosine: float | None = None
) -> DuplicateCandidate:
    statement = ComparedMemory(
        content=row["content"],
        kind=Kind(row["kind"]),
        key=row["key"],
        pinned=row["pinned"],
        files=frozenset(row["files"]),
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
    )
    return DuplicateCandidate(
        id=row["id"],
        version=row["version"],
        scope=row["scope"],
        created=row["created"],
        statement=statement,
        imported=row["carried"],
        vector=vector,
        cosine=cosine,
    )


def _encode_pair(older: DuplicateCandidate, newer: DuplicateCandidate) -> dict[str, Any]:
    return {
        "older": str(older.id),
        "older_version": older.version,
        "newer": str(newer.id),
        "newer_version": newer.version,
    }


def _parse_outcome(
    tenant: tuple[int, str],
    event: str,
    result: Mapping[str, Any],
    extra_fields: tuple[str, ...],
    headers: Mapping[str, str],
) -> DuplicateOutcome:
    body = {name: result[name] for name in ("id", "version", *extra_fields)}
    subject = memory_subject(tenant[1], event)
    event_message = build_outgoing_event(tenant[0], subject, body, headers, UUID(result["event"]))
    return DuplicateOutcome(UUID(result["id"]), result["version"], event_message)


CANDIDATE_LIMIT = 8

_JudgedCandidate = tuple[DuplicateCandidate, MemoryComparison]


@dataclass(frozen=True)
class DeduplicationAction:
    """One thing that was settled, what it is called (merged, contradicted), and why."""

    kind: str
    reason: str
    outcome: DuplicateOutcome


async def deduplicate(
    duplicates: DuplicateStore, tenant: tuple[int, str], memory: UUID, headers: Mapping[str, str]
) -> list[DeduplicationAction]:
    """Compares one memory with the others of its scope, once its derived data is complete."""
    return await deduplicate_all(duplicates, tenant, {memory: headers})


async def deduplicate_all(
    duplicates: DuplicateStore, tenant: tuple[int, str], memories: Mapping[UUID, Mapping[str, str]]
) -> list[DeduplicationAction]:
    """Compares memories in order. The argument maps each memory to the headers of its events."""
    remaining, done = list(memories), list[DeduplicationAction]()
    while remaining:
        candidates = await duplicates.load_candidates(tenant[0], remaining)
        others = await duplicates.find_similar(tenant[0], candidates, CANDIDATE_LIMIT)
        remaining = []
        for index, (subject, similar) in enumerate(zip(candidates, others, strict=True), start=1):
            if actions := await _deduplicate_memory(
                duplicates, tenant, subject, similar, memories[subject.id]
            ):
                done += actions
                # What was read of the others may be outdated by now.
                remaining = [candidate.id for candidate in candidates[index:]]
                break
    return done


async def _deduplicate_memory(
    duplicates: DuplicateStore,
    tenant: tuple[int, str],
    subject: DuplicateCandidate,
    others: Sequence[DuplicateCandidate],
    headers: Mapping[str, str],
) -> list[DeduplicationAction]:
    """Handles contradictions first, because a merge may end the memory.

    Merges at most once, with the nearest. Two imported memories were compared before their export.
    """
    judged = [
        (candidate, _judge_pair(subject, candidate))
        for candidate in others
        if not (subject.imported and candidate.imported)
    ]
    done: list[DeduplicationAction] = []
    for other, similarity in _find_contradictions(subject, judged):
        outcome = await duplicates.contradict(
            tenant, *_order_by_age(subject, other), similarity, headers
        )
        done += [DeduplicationAction("contradicted", similarity.reason, outcome)] if outcome else []
        if outcome and outcome.id == subject.id:
            subject = replace(subject, version=outcome.version)
    for other, similarity in judged:
        if similarity.verdict in MERGEABLE_VERDICTS:
            outcome = await duplicates.merge(
                tenant, *_order_by_age(subject, other), similarity, headers
            )
            if outcome:
                return [*done, DeduplicationAction("merged", similarity.reason, outcome)]
    return done


def _find_contradictions(
    subject: DuplicateCandidate, judged: Sequence[_JudgedCandidate]
) -> list[_JudgedCandidate]:
    """Returns the memories that contradict a memory.

    Of a series of values, only the previous and the next one: earlier values are doubtful already.
    """
    found = [
        judged_candidate
        for judged_candidate in judged
        if judged_candidate[1].verdict is DuplicateVerdict.CONTRADICTING
    ]
    value_series = sorted(
        (judged_candidate for judged_candidate in found if judged_candidate[1].differs_by_value),
        key=lambda judged_candidate: _age_key(judged_candidate[0]),
    )
    before = [
        judged_candidate
        for judged_candidate in value_series
        if _age_key(judged_candidate[0]) < _age_key(subject)
    ]
    after = [
        judged_candidate
        for judged_candidate in value_series
        if _age_key(judged_candidate[0]) > _age_key(subject)
    ]
    return [
        judged_candidate
        for judged_candidate in found
        if not judged_candidate[1].differs_by_value
        or judged_candidate in (*before[-1:], *after[:1])
    ]


def _judge_pair(subject: DuplicateCandidate, other: DuplicateCandidate) -> MemoryComparison:
    older, newer = _order_by_age(subject, other)
    return compare_memories(older.statement, newer.statement, other.cosine)


def _order_by_age(
    first: DuplicateCandidate, second: DuplicateCandidate
) -> tuple[DuplicateCandidate, DuplicateCandidate]:
    return (first, second) if _age_key(first) <= _age_key(second) else (second, first)


def _age_key(candidate: DuplicateCandidate) -> tuple[datetime, UUID]:
    return candidate.created, candidate.id
