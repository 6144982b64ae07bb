"""Converts between database rows and the domain's memory objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from reverie.domain.core.ids import new_id
from reverie.domain.core.kinds import Kind, Tier
from reverie.domain.core.memory import (
    Memory,
    MemoryStatus,
    MemoryUsage,
    NewEdge,
    NewMemory,
    SupersededMemory,
    WriteOutcome,
    WriteResult,
)


def parse_memory(row: asyncpg.Record) -> Memory:
    """A memory from a row of `memory_view`."""
    return Memory(
        id=row["id"],
        scope=row["scope"],
        kind=Kind(row["kind"]),
        content=row["content"],
        content_hash=row["hash"].hex(),
        tier=Tier(row["tier"]),
        status=MemoryStatus(row["status"]),
        version=row["version"],
        confidence=round(row["confidence"], 4),
        pinned=row["pinned"],
        created_at=row["created"],
        updated_at=row["updated"],
        key=row["key"],
        summary=row["summary"],
        tags=tuple(row["tags"]),
        session=row["session"],
        agent=row["agent"],
        source=row["source"],
        turns=tuple(row["turns"]),
        git=row["git"],
        metadata=row["metadata"],
        valid_from=row["valid_from"],
        valid_to=row["valid_to"],
        enriched=row["enriched"],
        superseded_by=row["superseded_by"],
        staleness=round(row["staleness"], 4),
        stale_grade=row["stale_grade"],
        stale_reason=row["stale_reason"],
        confirmed_at=row.get("confirmed"),
        linked=row.get("linked", True),
        use=MemoryUsage(row.get("uses", 0), row.get("used"), round(row.get("boost", 0.0), 4)),
        settled_use=MemoryUsage(
            last=row.get("used_at_hour_start"), boost=round(row.get("boost_at_hour_start", 0.0), 4)
        ),
    )


def encode_memory(new: NewMemory, reads: Sequence[str], actor: str | None = None) -> dict[str, Any]:
    """Encodes a memory for the SQL function `remember`; `reads` limits the targets of its edges.

    `actor`: the writer for the history, if no agent wrote it.
    """
    fields: dict[str, Any] = {
        "id": str(new.id),
        "event": str(new_id()),
        "scope": new.scope,
        "kind": new.kind.value,
        "tier": new.tier.value,
        "content": new.content,
        "hash": new.content_hash,
        "words": new.words,
        "confidence": new.confidence,
        "pinned": new.pinned,
        "source": new.source,
        "metadata": new.metadata,
        "key": new.key,
        "reason": new.supersede_reason,
        "soft": new.soft,
        "summary": new.summary,
        "session": str(new.session) if new.session else None,
        "agent": new.agent,
        "actor": new.agent or actor,
        "git": new.git,
        "tags": list(new.tags),
        "turns": [str(turn) for turn in new.turns],
        "valid_from": new.valid_from.isoformat() if new.valid_from else None,
        "valid_to": new.valid_to.isoformat() if new.valid_to else None,
    }
    if new.edges:
        fields |= {"edges": [_encode_edge(edge) for edge in new.edges], "reads": list(reads)}
    return {name: value for name, value in fields.items() if value is not None}


def parse_written(found: Mapping[str, Any]) -> WriteResult:
    """The outcome that the SQL function `remember` answered."""
    event, old = found.get("event"), found.get("superseded")
    return WriteResult(
        UUID(found["id"]),
        WriteOutcome(found["outcome"]),
        found["version"],
        UUID(event) if event else None,
        SupersededMemory(UUID(old["id"]), old["version"], UUID(old["event"])) if old else None,
    )


def _encode_edge(edge: NewEdge) -> dict[str, Any]:
    return {
        "id": str(new_id()),
        "to": str(edge.to),
        "type": edge.kind.value,
        "weight": edge.weight,
        "metadata": edge.metadata,
    }
