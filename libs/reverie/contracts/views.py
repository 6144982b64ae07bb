"""From the values of the domain to the bodies that several services answer with."""

from __future__ import annotations

from datetime import UTC, datetime

from reverie.contracts.memories import MemoryBody, Provenance
from reverie.domain.confidence import HALF_LIVES, HalfLives, present
from reverie.domain.ids import short_id
from reverie.domain.memory import Memory


def provenance(memory: Memory) -> Provenance:
    """Where a memory came from."""
    return Provenance(
        source=memory.source,
        session=memory.session,
        agent=memory.agent,
        turns=list(memory.turns),
        git=memory.git,
    )


def memory_body(
    memory: Memory, lives: HalfLives = HALF_LIVES, now: datetime | None = None
) -> MemoryBody:
    """A memory as lists show it, as sure as it is at `now`; by default, at this moment."""
    return MemoryBody(
        id=memory.id,
        short_id=short_id(memory.id),
        scope=memory.scope,
        kind=memory.kind.value,
        content=memory.content,
        key=memory.key,
        summary=memory.summary,
        tags=list(memory.tags),
        tier=memory.tier.value,
        confidence=round(present(memory, now or datetime.now(UTC), lives), 4),
        base_confidence=memory.confidence,
        pinned=memory.pinned,
        status=memory.status.value,
        version=memory.version,
        staleness=memory.staleness,
        stale_grade=memory.stale_grade,
        provenance=provenance(memory),
        metadata=memory.metadata,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        accessed_at=memory.use.last,
        access_count=memory.use.count,
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
    )
