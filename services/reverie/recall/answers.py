"""From memories and turns to the bodies that recall answers with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from reverie.contracts.memories import Edge, MemoryDetail, Neighbour, Provenance, TaskState
from reverie.contracts.recall import Recalled
from reverie.contracts.sessions import Turn
from reverie.contracts.views import memory_body, provenance
from reverie.domain.confidence import HalfLives
from reverie.domain.memory import Memory
from reverie.domain.snippets import snippet
from reverie.recall.hits import Between, Hit
from reverie.store.memories import Near
from reverie.store.search import TurnHit
from reverie.store.sessions import StoredTurn
from reverie.store.tasks import Standing


def recalled(hit: Hit, words: str) -> Recalled:
    """A hit as an agent sees it."""
    if isinstance(hit.item, TurnHit):
        return _recalled_turn(hit, hit.item, words)
    memory = hit.item
    return Recalled(
        id=memory.id,
        content=memory.content,
        snippet=snippet(memory.content, words),
        score=round(min(hit.found.score, 1.0), 4),
        kind=memory.kind.value,
        scope=memory.scope,
        key=memory.key,
        tags=list(memory.tags),
        status=memory.status.value,
        staleness=memory.staleness,
        stale_reason=memory.stale_reason,
        created_at=memory.created_at,
        provenance=provenance(memory),
        arms=dict(hit.found.arms),
    )


def _recalled_turn(hit: Hit, turn: TurnHit, words: str) -> Recalled:
    return Recalled(
        id=turn.id,
        type="turn",
        content=hit.content,
        snippet=snippet(hit.content, words),
        score=round(min(hit.found.score, 1.0), 4),
        kind="turn",
        scope=turn.scope,
        created_at=turn.at,
        provenance=Provenance(
            source="turn",
            session=turn.session,
            agent=turn.agent,
            turns=[one.id for one in hit.turns] or [turn.id],
        ),
        arms=dict(hit.found.arms),
    )


def edge_body(edge: Between) -> Edge:
    """An edge between two memories of an answer."""
    one, source, target, kind, weight = edge
    return Edge(id=one, source=source, target=target, type=kind, weight=weight)


def memory_detail(
    memory: Memory,
    near: Sequence[Near],
    lives: HalfLives,
    standing: Standing | None = None,
    at: datetime | None = None,
) -> MemoryDetail:
    """A memory with its neighbours, and where it stands if it is a task.

    It is as sure as half-lives in days leave it, `at` that moment or now.
    """
    neighbours = [
        Neighbour.model_validate(
            {
                "id": one.id,
                "kind": one.kind,
                "label": one.label,
                "type": one.type,
                "direction": one.direction,
                "weight": one.weight,
            }
        )
        for one in near
    ]
    task = TaskState.model_validate(asdict(standing)) if standing else None
    body = memory_body(memory, lives, at).model_dump()
    return MemoryDetail(**body, neighbours=neighbours, task=task)


def turn_body(turn: StoredTurn) -> Turn:
    """A turn as it is listed."""
    return Turn(
        id=turn.id,
        session=turn.session,
        ord=turn.ord,
        role=turn.role,
        content=turn.content,
        at=turn.at,
        tool=turn.tool,
        external_id=turn.external_id,
        digested=turn.digested,
    )
