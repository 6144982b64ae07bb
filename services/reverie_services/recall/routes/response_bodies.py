"""Builds the response bodies of recall from memories, turns and edges. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reverie.contracts.memories.memories import (
    EdgeBody,
    MemoryDetail,
    NeighbourBody,
    Provenance,
    TaskStateBody,
    build_memory_body,
    build_provenance,
)
from reverie.contracts.recall import RecallHit
from reverie.domain.access.principals import Principal
from reverie.domain.access.scopes import scope_matches
from reverie.domain.core.confidence import DecayPolicy
from reverie.domain.core.memory import Memory
from reverie.domain.retrieval.answer import AnswerEdge, RankedHit
from reverie.domain.retrieval.candidates import TurnHit
from reverie.domain.text.snippets import best_snippet
from reverie.store.memories.memories import MemoryNeighbour
from reverie.store.memories.tasks import TaskStatus

COARSE_DIGITS = 2
"""The digits of scores for callers who do not read the whole tenant."""


def round_score(score: float, principal: Principal) -> float:
    """A score as precise as the caller may know it."""
    return round(score, 4 if principal.reads_whole_tenant else COARSE_DIGITS)


def round_relevance(relevance: float | None, principal: Principal) -> float | None:
    """A relevance as precise as the caller may know it: words are weighed as in scores."""
    if relevance is None:
        return None
    return round(relevance, 3 if principal.reads_whole_tenant else COARSE_DIGITS)


def build_recall_hit(
    hit: RankedHit, words: str, principal: Principal, linked_scopes: Sequence[str] = ()
) -> RecallHit:
    """A hit as an agent sees it. `linked_scopes`: those of linked projects, as patterns."""
    score = round_score(min(hit.scored.score, 1.0), principal)
    is_linked = any(scope_matches(pattern, hit.item.scope) for pattern in linked_scopes)
    if isinstance(hit.item, TurnHit):
        return _build_turn_hit(hit, hit.item, words, score, is_linked)
    memory = hit.item
    return RecallHit(
        id=memory.id,
        content=hit.content,
        snippet=best_snippet(hit.content, words),
        score=score,
        relevance=round_relevance(hit.relevance, principal),
        kind=memory.kind.value,
        scope=memory.scope,
        linked=is_linked,
        key=memory.key,
        tags=list(memory.tags),
        status=memory.status.value,
        staleness=memory.staleness,
        stale_reason=memory.stale_reason,
        created_at=memory.created_at,
        provenance=build_provenance(memory),
        arms=dict(hit.scored.arm_ranks),
    )


def _build_turn_hit(
    hit: RankedHit, turn: TurnHit, words: str, score: float, is_linked: bool
) -> RecallHit:
    return RecallHit(
        id=turn.id,
        type="turn",
        content=hit.content,
        snippet=best_snippet(hit.content, words),
        score=score,
        kind="turn",
        scope=turn.scope,
        linked=is_linked,
        created_at=turn.at,
        provenance=Provenance(
            source="turn",
            session=turn.session,
            agent=turn.agent,
            turns=[member.id for member in hit.turns] or [turn.id],
        ),
        arms=dict(hit.scored.arm_ranks),
    )


def build_edge_body(edge: AnswerEdge) -> EdgeBody:
    """An edge between two memories of an answer."""
    edge_id, source, target, kind, weight = edge
    return EdgeBody(id=edge_id, source=source, target=target, type=kind, weight=weight)


def build_memory_detail(
    memory: Memory,
    neighbours: Sequence[MemoryNeighbour],
    decay: DecayPolicy,
    task_status: TaskStatus | None = None,
    at: datetime | None = None,
) -> MemoryDetail:
    """Builds a memory with its neighbours, and its state if it is a task.

    Its confidence is computed from half-lives in days, for the time `at` or now.
    """
    neighbour_bodies = [NeighbourBody.model_validate(vars(neighbour)) for neighbour in neighbours]
    task = TaskStateBody.model_validate(vars(task_status)) if task_status else None
    body = build_memory_body(memory, decay, at).model_dump()
    return MemoryDetail(**body, neighbours=neighbour_bodies, task=task)
